//! Every statement of the store by name: one file each under `sql/`, of the same name in both engines.
//!
//! In: the files, at build time. Out: their texts. A test prepares every one against the migrated schema.

macro_rules! statements {
    ($($name:ident = $path:literal;)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", $path, ".sql"));)*

        /// Every statement: its path under `sql/` without the ending, and its text.
        pub const STATEMENTS: &[(&str, &str)] = &[$(($path, $name)),*];
    };
}

statements! {
    RECORDS_CLAIM = "records/claim";
    RECORDS_READ = "records/read";
    RECORDS_TAKE_OVER = "records/take_over";
    RECORDS_PARK_LAPSED = "records/park_lapsed";
    RECORDS_FINISH = "records/finish";
    RECORDS_RELEASE = "records/release";
    RECORDS_FIND = "records/find";
    RECORDS_REMOVE_STUCK = "records/remove_stuck";
    RECORDS_SWEEP = "records/sweep";

    PAYMENTS_INSERT = "payments/insert";
    PAYMENTS_MOVE = "payments/move";
    PAYMENTS_PUT_ATTEMPT = "payments/put_attempt";
    PAYMENTS_PUT_CAPTURE = "payments/put_capture";
    PAYMENTS_PUT_REFUND = "payments/put_refund";
    PAYMENTS_PUT_SURPLUS = "payments/put_surplus";
    PAYMENTS_PUT_AUDIT = "payments/put_audit";
    PAYMENTS_LOAD = "payments/load";
    PAYMENTS_LOAD_ORDER = "payments/load_order";
    PAYMENTS_ORDER_OWNER = "payments/order_owner";
    PAYMENTS_FIND_ATTEMPT = "payments/find_attempt";
    PAYMENTS_FIND_REFUND = "payments/find_refund";
    PAYMENTS_LIST = "payments/list";
    PAYMENTS_TAKE_DUE = "payments/take_due";
    PAYMENTS_LET_GO = "payments/let_go";
    PAYMENTS_TIMELINE = "payments/timeline";

    INBOX_RECEIVE = "inbox/receive";
    INBOX_TAKE_WAITING = "inbox/take_waiting";
    INBOX_JUDGE = "inbox/judge";
    INBOX_SETTLE = "inbox/settle";
    INBOX_ROW = "inbox/row";
    INBOX_LIST = "inbox/list";
    INBOX_SWEEP = "inbox/sweep";

    OUTBOX_PUT = "outbox/put";
    OUTBOX_TAKE = "outbox/take";
    OUTBOX_DELIVERED = "outbox/delivered";
    OUTBOX_UNNUMBERED = "outbox/unnumbered";
    OUTBOX_MAKE_HEAD = "outbox/make_head";
    OUTBOX_LOCK_HEAD = "outbox/lock_head";
    OUTBOX_NUMBER = "outbox/number";
    OUTBOX_RAISE_HEAD = "outbox/raise_head";
    OUTBOX_PLACE = "outbox/place";
    OUTBOX_FEED = "outbox/feed";
    OUTBOX_OF_PAYMENT = "outbox/of_payment";

    DIRECTORY_PUT_TENANT = "directory/put_tenant";
    DIRECTORY_PUT_API_KEY = "directory/put_api_key";
    DIRECTORY_API_KEY = "directory/api_key";
    DIRECTORY_API_KEYS = "directory/api_keys";
    DIRECTORY_REVOKE_API_KEY = "directory/revoke_api_key";
    DIRECTORY_PUT_ACCOUNT = "directory/put_account";
    DIRECTORY_ACCOUNT = "directory/account";
    DIRECTORY_ACCOUNTS = "directory/accounts";

    SCHEMA_MAKE_APPLIED = "schema/make_applied";
    SCHEMA_MAKE_LOCK = "schema/make_lock";
    SCHEMA_FILL_LOCK = "schema/fill_lock";
    SCHEMA_LOCK = "schema/lock";
    SCHEMA_APPLIED = "schema/applied";
    SCHEMA_NOTE_APPLIED = "schema/note_applied";
}
