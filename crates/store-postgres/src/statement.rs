//! Every statement of the store: its name, its text and the types of its parameters.
//!
//! In: one file each under `sql/`, of the same name in both engines, and under `batch/` the forms for many rows at once of some of them, which SQLite does
//! not need. Out: values that are sent with their types, so that a statement needs no name on the server and works behind a transaction pooler. A test
//! prepares every one and compares the types with the server's own.

use tokio_postgres::types::{Kind, Type};

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// Its path in this crate, without the ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The types of its parameters, in order.
    pub params: &'static [Type],
}

impl Statement {
    /// Whether its plan is the same whatever the tables hold. Not so for those that take arrays: after some uses a server plans them once and for all,
    /// without knowing the arrays' length and perhaps while the tables are empty, and such a plan is a time bomb unless the session pins it.
    pub(crate) fn is_simple(&self) -> bool {
        !self.params.iter().any(|one| matches!(one.kind(), Kind::Array(_)))
    }
}

macro_rules! statements {
    ($($name:ident = $path:literal ($($param:ident),*);)*) => {
        $(pub(crate) static $name: Statement = Statement {
            name: $path,
            text: include_str!(concat!("../", $path, ".sql")),
            params: &[$(Type::$param),*],
        };)*

        /// Every statement.
        pub static STATEMENTS: &[&Statement] = &[$(&$name),*];
    };
}

statements! {
    RECORDS_CLAIM = "sql/records/claim" (TEXT, TEXT, TEXT, BYTEA, UUID, INT8, INT8, INT8);
    RECORDS_READ = "sql/records/read" (TEXT, TEXT, TEXT, INT8);
    RECORDS_TAKE_OVER = "sql/records/take_over" (TEXT, TEXT, TEXT, UUID, INT8, INT2, UUID, BYTEA, INT8, INT8, INT8);
    RECORDS_PARK_LAPSED = "sql/records/park_lapsed" (TEXT, TEXT, TEXT, UUID, INT8, INT8);
    RECORDS_FINISH = "sql/records/finish" (TEXT, TEXT, TEXT, UUID, INT8, INT2, INT8, INT8, BYTEA);
    RECORDS_RELEASE = "sql/records/release" (TEXT, TEXT, TEXT, UUID, INT8);
    RECORDS_FIND = "sql/records/find" (TEXT, TEXT, INT8);
    RECORDS_REMOVE_STUCK = "sql/records/remove_stuck" (TEXT, TEXT, TEXT, INT8);
    RECORDS_SWEEP = "sql/records/sweep" (INT8, INT8);

    BATCH_CLAIM = "batch/records/claim" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8);
    BATCH_READ = "batch/records/read" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8);
    BATCH_FINISH = "batch/records/finish" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8_ARRAY, INT2_ARRAY, INT8_ARRAY, BYTEA_ARRAY, INT8);
    BATCH_RELEASE = "batch/records/release" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8_ARRAY);

    PAYMENTS_INSERT = "sql/payments/insert" (TEXT, TEXT, TEXT, INT8, TEXT, TEXT, INT8, INT8, INT8, INT8, TEXT);
    PAYMENTS_MOVE = "sql/payments/move" (TEXT, TEXT, INT8, INT8, TEXT, TEXT, INT8, INT8, INT8, TEXT);
    PAYMENTS_PUT_ATTEMPT = "sql/payments/put_attempt" (TEXT, TEXT, TEXT, INT8, TEXT, TEXT, TEXT, TEXT, BOOL, TEXT);
    PAYMENTS_PUT_CAPTURE = "sql/payments/put_capture" (TEXT, TEXT, TEXT, INT8, TEXT, INT8, TEXT);
    PAYMENTS_PUT_REFUND = "sql/payments/put_refund" (TEXT, TEXT, TEXT, INT8, TEXT, TEXT, TEXT, TEXT, INT8, TEXT);
    PAYMENTS_PUT_SURPLUS = "sql/payments/put_surplus" (TEXT, TEXT, TEXT, INT8, TEXT, TEXT, INT8, TEXT);
    PAYMENTS_PUT_AUDIT = "sql/payments/put_audit" (TEXT, TEXT, INT8, TEXT);
    PAYMENTS_LOAD = "sql/payments/load" (TEXT, TEXT);
    PAYMENTS_LOAD_ORDER = "sql/payments/load_order" (TEXT, TEXT);
    PAYMENTS_ORDER_OWNER = "sql/payments/order_owner" (TEXT, TEXT);
    PAYMENTS_FIND_ATTEMPT = "sql/payments/find_attempt" (TEXT, TEXT, TEXT);
    PAYMENTS_FIND_REFUND = "sql/payments/find_refund" (TEXT, TEXT);
    PAYMENTS_LIST = "sql/payments/list" (TEXT, TEXT, TEXT, TEXT, TEXT, INT8);
    PAYMENTS_TAKE_DUE = "sql/payments/take_due" (INT8, INT8, INT8);
    PAYMENTS_LET_GO = "sql/payments/let_go" (TEXT, TEXT);
    PAYMENTS_TIMELINE = "sql/payments/timeline" (TEXT, TEXT);

    INBOX_RECEIVE = "sql/inbox/receive" (TEXT, TEXT, TEXT, TEXT, TEXT, INT8, TEXT, BYTEA);
    INBOX_TAKE_WAITING = "sql/inbox/take_waiting" (INT8, INT8, INT8);
    INBOX_JUDGE = "sql/inbox/judge" (TEXT, TEXT, TEXT, TEXT, INT8);
    INBOX_SETTLE = "sql/inbox/settle" (TEXT, TEXT, TEXT, TEXT);
    INBOX_ROW = "sql/inbox/row" (TEXT, TEXT);
    INBOX_LIST = "sql/inbox/list" (TEXT, TEXT, INT8);
    INBOX_SWEEP = "sql/inbox/sweep" (INT8, INT8);

    OUTBOX_PUT = "sql/outbox/put" (TEXT, TEXT, TEXT, INT8, INT8, INT8, TEXT, TEXT);
    OUTBOX_TAKE = "sql/outbox/take" (INT8, INT8, INT8);
    OUTBOX_DELIVERED = "sql/outbox/delivered" (TEXT, TEXT, TEXT, INT8, TEXT);
    OUTBOX_UNNUMBERED = "sql/outbox/unnumbered" (INT8);
    OUTBOX_MAKE_HEAD = "sql/outbox/make_head" (TEXT);
    OUTBOX_LOCK_HEAD = "sql/outbox/lock_head" (TEXT);
    OUTBOX_NUMBER = "sql/outbox/number" (TEXT, INT8, INT8);
    OUTBOX_RAISE_HEAD = "sql/outbox/raise_head" (TEXT, INT8);
    OUTBOX_PLACE = "sql/outbox/place" (TEXT, TEXT);
    OUTBOX_FEED = "sql/outbox/feed" (TEXT, INT8, INT8);
    OUTBOX_OF_PAYMENT = "sql/outbox/of_payment" (TEXT, TEXT);

    DIRECTORY_PUT_TENANT = "sql/directory/put_tenant" (TEXT, INT8);
    DIRECTORY_PUT_API_KEY = "sql/directory/put_api_key" (TEXT, TEXT, TEXT, BYTEA, INT8, INT8);
    DIRECTORY_API_KEY = "sql/directory/api_key" (BYTEA);
    DIRECTORY_API_KEYS = "sql/directory/api_keys" (TEXT);
    DIRECTORY_REVOKE_API_KEY = "sql/directory/revoke_api_key" (TEXT, INT8);
    DIRECTORY_PUT_ACCOUNT = "sql/directory/put_account" (TEXT, TEXT, TEXT, BYTEA, INT8);
    DIRECTORY_ACCOUNT = "sql/directory/account" (TEXT);
    DIRECTORY_ACCOUNTS = "sql/directory/accounts" ();

    SCHEMA_MAKE_APPLIED = "sql/schema/make_applied" ();
    SCHEMA_MAKE_LOCK = "sql/schema/make_lock" ();
    SCHEMA_FILL_LOCK = "sql/schema/fill_lock" ();
    SCHEMA_LOCK = "sql/schema/lock" ();
    SCHEMA_APPLIED = "sql/schema/applied" ();
    SCHEMA_NOTE_APPLIED = "sql/schema/note_applied" (INT8, TEXT, TEXT, INT8);
}
