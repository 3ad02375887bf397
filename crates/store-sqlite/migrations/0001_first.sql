-- The whole schema. Columns are what the database constrains or searches; the rest of a row is its JSON in `doc`, as text, so that bytes stay as they were.
-- Every key begins with the tenant, except where a row is looked up before the tenant is known. Times are milliseconds since the Unix epoch, UTC.

CREATE TABLE tenants (
    id TEXT NOT NULL PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 64),
    created_at INTEGER NOT NULL
) STRICT;

-- Keyed without the tenant: the hash of a bearer token is all that a request brings, and it decides the tenant. Revoking names the id alone.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (id),
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_tenant ON api_keys (tenant);

-- Keyed by the name alone: a webhook's path has no tenant, so a name is unique in the installation.
CREATE TABLE accounts (
    name TEXT NOT NULL PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 64),
    tenant TEXT NOT NULL,
    channel TEXT NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    settings BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- The guard's table (I8). The key stands before the scope, so that an operator finds a key in every scope by the same index.
CREATE TABLE records (
    tenant TEXT NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
    key TEXT NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    scope TEXT NOT NULL CHECK (octet_length(scope) BETWEEN 1 AND 2048),
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 36),
    claim_id BLOB NOT NULL CHECK (length(claim_id) = 16),
    fence INTEGER NOT NULL CHECK (fence >= 1),
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    created_at INTEGER NOT NULL,
    locked_until INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answer BLOB,
    CONSTRAINT records_pk PRIMARY KEY (tenant, key, scope),
    -- An answered row has an answer, and a running one has none.
    CONSTRAINT records_answer CHECK (CASE state WHEN 0 THEN answer IS NULL WHEN 2 THEN answer IS NOT NULL ELSE 1 END)
) STRICT;
CREATE INDEX records_expiry ON records (expires_at);

CREATE TABLE payments (
    tenant TEXT NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    order_id TEXT NOT NULL CHECK (octet_length(order_id) BETWEEN 1 AND 64),
    version INTEGER NOT NULL CHECK (version >= 1),
    status TEXT NOT NULL CHECK (status IN ('pending', 'authorized', 'paid', 'closed', 'failed', 'review')),
    currency TEXT NOT NULL CHECK (octet_length(currency) = 3),
    amount INTEGER NOT NULL CHECK (amount > 0),
    due_at INTEGER,
    held_until INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc TEXT NOT NULL,
    CONSTRAINT payments_pk PRIMARY KEY (tenant, id),
    CONSTRAINT payments_order UNIQUE (tenant, order_id)
) STRICT;
CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX payments_status ON payments (tenant, status, id);

CREATE TABLE attempts (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 1),
    channel TEXT NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    account TEXT NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_ref TEXT NOT NULL CHECK (octet_length(channel_ref) BETWEEN 1 AND 128),
    status TEXT NOT NULL CHECK (status IN ('prepared', 'pending', 'unknown', 'authorized', 'succeeded', 'declined', 'closed')),
    live INTEGER NOT NULL CHECK (live IN (0, 1)),
    doc TEXT NOT NULL,
    CONSTRAINT attempts_pk PRIMARY KEY (tenant, id),
    CONSTRAINT attempts_ref UNIQUE (tenant, account, channel_ref),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
CREATE INDEX attempts_payment ON attempts (tenant, payment_id, n);
-- I1: at most one live attempt per payment, on whatever channel. The database refuses the second one even where the code is wrong.
CREATE UNIQUE INDEX attempts_live ON attempts (tenant, payment_id) WHERE live = 1;

CREATE TABLE captures (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 1),
    status TEXT NOT NULL CHECK (status IN ('pending', 'unknown', 'succeeded', 'failed')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    doc TEXT NOT NULL,
    CONSTRAINT captures_pk PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
CREATE INDEX captures_payment ON captures (tenant, payment_id, n);

CREATE TABLE refunds (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 1),
    refund_id TEXT CHECK (octet_length(refund_id) BETWEEN 1 AND 64),
    account TEXT NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_ref TEXT NOT NULL CHECK (octet_length(channel_ref) BETWEEN 1 AND 128),
    status TEXT NOT NULL CHECK (status IN ('pending', 'unknown', 'succeeded', 'failed')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    doc TEXT NOT NULL,
    CONSTRAINT refunds_pk PRIMARY KEY (tenant, id),
    CONSTRAINT refunds_ref UNIQUE (tenant, account, channel_ref),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
CREATE INDEX refunds_payment ON refunds (tenant, payment_id, n);
-- I7: a merchant's refund number is one refund, whatever key it comes under.
CREATE UNIQUE INDEX refunds_merchant ON refunds (tenant, payment_id, refund_id) WHERE refund_id IS NOT NULL;

CREATE TABLE surpluses (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 1),
    account TEXT NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_txn TEXT NOT NULL CHECK (octet_length(channel_txn) BETWEEN 1 AND 255),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    doc TEXT NOT NULL,
    CONSTRAINT surpluses_pk PRIMARY KEY (tenant, id),
    -- I9: money beside a payment is booked once.
    CONSTRAINT surpluses_txn UNIQUE (tenant, account, channel_txn),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
CREATE INDEX surpluses_payment ON surpluses (tenant, payment_id, n);

CREATE TABLE inbox (
    tenant TEXT NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    channel TEXT NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    account TEXT NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    identity TEXT NOT NULL CHECK (octet_length(identity) BETWEEN 1 AND 255),
    status TEXT NOT NULL CHECK (status IN ('waiting', 'settled', 'unmatched', 'foreign')),
    received_at INTEGER NOT NULL,
    next_try_at INTEGER,
    held_until INTEGER,
    tries INTEGER NOT NULL CHECK (tries >= 0),
    payment_id TEXT,
    note TEXT,
    doc TEXT NOT NULL,
    raw BLOB NOT NULL,
    CONSTRAINT inbox_pk PRIMARY KEY (tenant, id),
    -- The same event is one row, however often the channel delivers it and however long ago the first delivery was.
    CONSTRAINT inbox_identity UNIQUE (tenant, account, identity)
) STRICT;
CREATE INDEX inbox_due ON inbox (next_try_at) WHERE status IN ('waiting', 'unmatched');
CREATE INDEX inbox_newest ON inbox (tenant, received_at, id);
CREATE INDEX inbox_age ON inbox (received_at);

CREATE TABLE events (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    n INTEGER NOT NULL CHECK (n >= 0),
    created_at INTEGER NOT NULL,
    position INTEGER CHECK (position >= 1),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'acknowledged', 'dead', 'feed_only')),
    next_try_at INTEGER NOT NULL,
    held_until INTEGER,
    tries INTEGER NOT NULL CHECK (tries >= 0),
    notify_url TEXT,
    note TEXT,
    doc TEXT NOT NULL,
    CONSTRAINT events_pk PRIMARY KEY (tenant, id),
    CONSTRAINT events_place UNIQUE (tenant, payment_id, version, n),
    CONSTRAINT events_position UNIQUE (tenant, position),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
CREATE INDEX events_due ON events (next_try_at) WHERE state = 'waiting';
CREATE INDEX events_unnumbered ON events (tenant, created_at) WHERE position IS NULL;

-- The last position of a tenant's feed. Its row lock serialises the numbering of one tenant; tenants do not wait for each other.
CREATE TABLE feed_heads (
    tenant TEXT NOT NULL PRIMARY KEY,
    last_position INTEGER NOT NULL CHECK (last_position >= 0)
) STRICT;

CREATE TABLE audit (
    tenant TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    n INTEGER NOT NULL CHECK (n >= 1),
    doc TEXT NOT NULL,
    CONSTRAINT audit_pk PRIMARY KEY (tenant, payment_id, n),
    FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) STRICT;
