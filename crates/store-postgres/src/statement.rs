//! Every statement of the store: its name, its text and the types of its parameters.
//!
//! In: one file each under `sql/`, of the same name in both engines. Out: values that are sent with their types, so that a statement needs no
//! name on the server and works behind a transaction pooler. A test prepares every one and compares the types with the server's own.

use tokio_postgres::types::{Kind, Type};

/// A statement.
#[derive(Debug)]
pub struct Statement {
    /// Its path under `sql/`, without the ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The types of its parameters, in order.
    pub params: &'static [Type],
}

impl Statement {
    /// Whether the server may keep it prepared. Not those that take arrays: after some uses a server plans them once and for all, without knowing the
    /// arrays' length and perhaps while the tables are empty, and such a plan is a time bomb. For a batch the planning costs next to nothing.
    pub(crate) fn may_be_kept(&self) -> bool {
        !self.params.iter().any(|one| matches!(one.kind(), Kind::Array(_)))
    }
}

macro_rules! statements {
    ($($name:ident = $path:literal ($($param:ident),*);)*) => {
        $(pub(crate) static $name: Statement = Statement {
            name: $path,
            text: include_str!(concat!("../sql/", $path, ".sql")),
            params: &[$(Type::$param),*],
        };)*

        /// Every statement.
        pub static STATEMENTS: &[&Statement] = &[$(&$name),*];
    };
}

statements! {
    RECORDS_CLAIM = "records/claim" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BYTEA_ARRAY, UUID_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8);
    RECORDS_READ = "records/read" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8);
    RECORDS_TAKE_OVER = "records/take_over" (TEXT, TEXT, TEXT, UUID, INT8, INT2, UUID, BYTEA, INT8, INT8, INT8);
    RECORDS_PARK_LAPSED = "records/park_lapsed" (TEXT, TEXT, TEXT, UUID, INT8, INT8);
    RECORDS_FINISH = "records/finish" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8_ARRAY, INT2_ARRAY, INT8_ARRAY, BYTEA_ARRAY, INT8);
    RECORDS_RELEASE = "records/release" (TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, UUID_ARRAY, INT8_ARRAY);
    RECORDS_FIND = "records/find" (TEXT, TEXT, INT8);
    RECORDS_REMOVE_STUCK = "records/remove_stuck" (TEXT, TEXT, TEXT, INT8);
    RECORDS_SWEEP = "records/sweep" (INT8, INT8);

    PAYMENTS_INSERT = "payments/insert" (TEXT, TEXT, TEXT, INT8, TEXT, TEXT, INT8, INT8, INT8, INT8, TEXT);
    PAYMENTS_MOVE = "payments/move" (TEXT, TEXT, INT8, INT8, TEXT, TEXT, INT8, INT8, INT8, TEXT);
    PAYMENTS_PUT_ATTEMPT = "payments/put_attempt"
        (TEXT, TEXT, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, BOOL_ARRAY, TEXT_ARRAY);
    PAYMENTS_PUT_CAPTURE = "payments/put_capture" (TEXT, TEXT, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    PAYMENTS_PUT_REFUND = "payments/put_refund"
        (TEXT, TEXT, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    PAYMENTS_PUT_SURPLUS = "payments/put_surplus" (TEXT, TEXT, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    PAYMENTS_PUT_AUDIT = "payments/put_audit" (TEXT, TEXT, INT8_ARRAY, TEXT_ARRAY);
    PAYMENTS_LOAD = "payments/load" (TEXT, TEXT);
    PAYMENTS_LOAD_ORDER = "payments/load_order" (TEXT, TEXT);
    PAYMENTS_ORDER_OWNER = "payments/order_owner" (TEXT, TEXT);
    PAYMENTS_FIND_ATTEMPT = "payments/find_attempt" (TEXT, TEXT, TEXT);
    PAYMENTS_FIND_REFUND = "payments/find_refund" (TEXT, TEXT);
    PAYMENTS_LIST = "payments/list" (TEXT, TEXT, TEXT, TEXT, TEXT, INT8);
    PAYMENTS_TAKE_DUE = "payments/take_due" (INT8, INT8, INT8);
    PAYMENTS_LET_GO = "payments/let_go" (TEXT, TEXT);
    PAYMENTS_TIMELINE = "payments/timeline" (TEXT, TEXT);

    INBOX_RECEIVE = "inbox/receive" (TEXT, TEXT, TEXT, INT8, BYTEA, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY);
    INBOX_TAKE_WAITING = "inbox/take_waiting" (INT8, INT8, INT8);
    INBOX_JUDGE = "inbox/judge" (TEXT, TEXT, TEXT, TEXT, INT8);
    INBOX_SETTLE = "inbox/settle" (TEXT, TEXT, TEXT, TEXT);
    INBOX_ROW = "inbox/row" (TEXT, TEXT);
    INBOX_LIST = "inbox/list" (TEXT, TEXT, INT8);
    INBOX_SWEEP = "inbox/sweep" (INT8, INT8);

    OUTBOX_PUT = "outbox/put" (TEXT, TEXT, TEXT, TEXT_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, TEXT_ARRAY);
    OUTBOX_TAKE = "outbox/take" (INT8, INT8, INT8);
    OUTBOX_DELIVERED = "outbox/delivered" (TEXT, TEXT, TEXT, INT8, TEXT);
    OUTBOX_UNNUMBERED = "outbox/unnumbered" (INT8);
    OUTBOX_MAKE_HEAD = "outbox/make_head" (TEXT);
    OUTBOX_LOCK_HEAD = "outbox/lock_head" (TEXT);
    OUTBOX_NUMBER = "outbox/number" (TEXT, INT8, INT8);
    OUTBOX_RAISE_HEAD = "outbox/raise_head" (TEXT, INT8);
    OUTBOX_PLACE = "outbox/place" (TEXT, TEXT);
    OUTBOX_FEED = "outbox/feed" (TEXT, INT8, INT8);
    OUTBOX_OF_PAYMENT = "outbox/of_payment" (TEXT, TEXT);

    DIRECTORY_PUT_TENANT = "directory/put_tenant" (TEXT, INT8);
    DIRECTORY_PUT_API_KEY = "directory/put_api_key" (TEXT, TEXT, TEXT, BYTEA, INT8, INT8);
    DIRECTORY_API_KEY = "directory/api_key" (BYTEA);
    DIRECTORY_API_KEYS = "directory/api_keys" (TEXT);
    DIRECTORY_REVOKE_API_KEY = "directory/revoke_api_key" (TEXT, INT8);
    DIRECTORY_PUT_ACCOUNT = "directory/put_account" (TEXT, TEXT, TEXT, BYTEA, INT8);
    DIRECTORY_ACCOUNT = "directory/account" (TEXT);
    DIRECTORY_ACCOUNTS = "directory/accounts" ();

    SCHEMA_MAKE_APPLIED = "schema/make_applied" ();
    SCHEMA_MAKE_LOCK = "schema/make_lock" ();
    SCHEMA_FILL_LOCK = "schema/fill_lock" ();
    SCHEMA_LOCK = "schema/lock" ();
    SCHEMA_APPLIED = "schema/applied" ();
    SCHEMA_NOTE_APPLIED = "schema/note_applied" (INT8, TEXT, TEXT, INT8);
}
