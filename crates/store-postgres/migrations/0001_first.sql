-- The whole schema. Columns are what the database constrains or searches; the rest of a row is its JSON in `doc`, as text and never as JSONB, so that bytes stay as they were.
-- Every key begins with the tenant, except where a row is looked up before the tenant is known: so the schema distributes by hash of the tenant.
-- No sequences, no triggers, no advisory locks. Times are milliseconds since the Unix epoch, UTC. Text is compared byte by byte.

CREATE TABLE tenants (
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 64),
    created_at BIGINT NOT NULL,
    CONSTRAINT tenants_pk PRIMARY KEY (id)
);

-- Keyed without the tenant: the hash of a bearer token is all that a request brings, and it decides the tenant. Revoking names the id alone.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL,
    tenant TEXT COLLATE "C" NOT NULL REFERENCES tenants (id),
    label TEXT NOT NULL,
    hash BYTEA NOT NULL CHECK (octet_length(hash) = 32),
    created_at BIGINT NOT NULL,
    revoked_at BIGINT,
    CONSTRAINT api_keys_pk PRIMARY KEY (id),
    CONSTRAINT api_keys_hash UNIQUE (hash)
);
CREATE INDEX api_keys_tenant ON api_keys (tenant);

-- Keyed by the name alone: a webhook's path has no tenant, so a name is unique in the installation.
CREATE TABLE accounts (
    name TEXT COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
    tenant TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    settings BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT accounts_pk PRIMARY KEY (name)
);

-- The guard's table (I8). The key stands before the scope, so that an operator finds a key in every scope by the same index. Half of each page stays
-- free for the update that ends a claim: it touches no indexed column and no index predicate, so it stays on its page and writes no index.
-- One check, on what a mistake would be dear in: every other one would be compiled anew for each statement. Lengths are held by the types and by the store.
CREATE TABLE records (
    tenant TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    claim_id UUID NOT NULL,
    fence BIGINT NOT NULL,
    state SMALLINT NOT NULL,
    created_at BIGINT NOT NULL,
    locked_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    answer BYTEA,
    CONSTRAINT records_pk PRIMARY KEY (tenant, key, scope),
    -- An answered row has an answer, and a running one has none.
    CONSTRAINT records_answer CHECK (CASE state WHEN 0 THEN answer IS NULL WHEN 1 THEN true WHEN 2 THEN answer IS NOT NULL ELSE false END)
) WITH (
    fillfactor = 50,
    -- A fixed number of changed rows, not a share: a share of a large table comes too late.
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000
);
CREATE INDEX records_expiry ON records (expires_at);

CREATE TABLE payments (
    tenant TEXT COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    order_id TEXT COLLATE "C" NOT NULL CHECK (octet_length(order_id) BETWEEN 1 AND 64),
    version BIGINT NOT NULL CHECK (version >= 1),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'authorized', 'paid', 'closed', 'failed', 'review')),
    currency TEXT COLLATE "C" NOT NULL CHECK (octet_length(currency) = 3),
    amount BIGINT NOT NULL CHECK (amount > 0),
    due_at BIGINT,
    held_until BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    doc TEXT NOT NULL,
    CONSTRAINT payments_pk PRIMARY KEY (tenant, id),
    CONSTRAINT payments_order UNIQUE (tenant, order_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX payments_status ON payments (tenant, status, id);

CREATE TABLE attempts (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL CHECK (n >= 1),
    channel TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    account TEXT COLLATE "C" NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_ref TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel_ref) BETWEEN 1 AND 128),
    status TEXT COLLATE "C" NOT NULL
        CHECK (status IN ('prepared', 'pending', 'unknown', 'authorized', 'succeeded', 'declined', 'closed')),
    live BOOLEAN NOT NULL,
    doc TEXT NOT NULL,
    CONSTRAINT attempts_pk PRIMARY KEY (tenant, id),
    CONSTRAINT attempts_ref UNIQUE (tenant, account, channel_ref),
    CONSTRAINT attempts_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) WITH (fillfactor = 80);
CREATE INDEX attempts_of_payment ON attempts (tenant, payment_id, n);
-- I1: at most one live attempt per payment, on whatever channel. The database refuses the second one even where the code is wrong.
CREATE UNIQUE INDEX attempts_live ON attempts (tenant, payment_id) WHERE live;

CREATE TABLE captures (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL CHECK (n >= 1),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'unknown', 'succeeded', 'failed')),
    amount BIGINT NOT NULL CHECK (amount > 0),
    doc TEXT NOT NULL,
    CONSTRAINT captures_pk PRIMARY KEY (tenant, id),
    CONSTRAINT captures_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
);
CREATE INDEX captures_of_payment ON captures (tenant, payment_id, n);

CREATE TABLE refunds (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL CHECK (n >= 1),
    refund_id TEXT COLLATE "C" CHECK (octet_length(refund_id) BETWEEN 1 AND 64),
    account TEXT COLLATE "C" NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_ref TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel_ref) BETWEEN 1 AND 128),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('pending', 'unknown', 'succeeded', 'failed')),
    amount BIGINT NOT NULL CHECK (amount > 0),
    doc TEXT NOT NULL,
    CONSTRAINT refunds_pk PRIMARY KEY (tenant, id),
    CONSTRAINT refunds_ref UNIQUE (tenant, account, channel_ref),
    CONSTRAINT refunds_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) WITH (fillfactor = 80);
CREATE INDEX refunds_of_payment ON refunds (tenant, payment_id, n);
-- I7: a merchant's refund number is one refund, whatever key it comes under.
CREATE UNIQUE INDEX refunds_merchant ON refunds (tenant, payment_id, refund_id) WHERE refund_id IS NOT NULL;

CREATE TABLE surpluses (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL CHECK (n >= 1),
    account TEXT COLLATE "C" NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    channel_txn TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel_txn) BETWEEN 1 AND 255),
    amount BIGINT NOT NULL CHECK (amount >= 0),
    doc TEXT NOT NULL,
    CONSTRAINT surpluses_pk PRIMARY KEY (tenant, id),
    -- I9: money beside a payment is booked once.
    CONSTRAINT surpluses_txn UNIQUE (tenant, account, channel_txn),
    CONSTRAINT surpluses_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
);
CREATE INDEX surpluses_of_payment ON surpluses (tenant, payment_id, n);

CREATE TABLE inbox (
    tenant TEXT COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    channel TEXT COLLATE "C" NOT NULL CHECK (octet_length(channel) BETWEEN 1 AND 64),
    account TEXT COLLATE "C" NOT NULL CHECK (octet_length(account) BETWEEN 1 AND 64),
    identity TEXT COLLATE "C" NOT NULL CHECK (octet_length(identity) BETWEEN 1 AND 255),
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('waiting', 'settled', 'unmatched', 'foreign')),
    received_at BIGINT NOT NULL,
    next_try_at BIGINT,
    held_until BIGINT,
    tries BIGINT NOT NULL CHECK (tries >= 0),
    payment_id TEXT COLLATE "C",
    note TEXT,
    doc TEXT NOT NULL,
    raw BYTEA NOT NULL,
    CONSTRAINT inbox_pk PRIMARY KEY (tenant, id),
    -- The same event is one row, however often the channel delivers it and however long ago the first delivery was.
    CONSTRAINT inbox_identity UNIQUE (tenant, account, identity)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX inbox_due ON inbox (next_try_at) WHERE status IN ('waiting', 'unmatched');
CREATE INDEX inbox_newest ON inbox (tenant, received_at, id);
CREATE INDEX inbox_age ON inbox (received_at);

CREATE TABLE events (
    tenant TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL CHECK (octet_length(id) = 36),
    payment_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL CHECK (version >= 1),
    n BIGINT NOT NULL CHECK (n >= 0),
    created_at BIGINT NOT NULL,
    position BIGINT CHECK (position >= 1),
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'acknowledged', 'dead', 'feed_only')),
    next_try_at BIGINT NOT NULL,
    held_until BIGINT,
    tries BIGINT NOT NULL CHECK (tries >= 0),
    notify_url TEXT,
    note TEXT,
    doc TEXT NOT NULL,
    CONSTRAINT events_pk PRIMARY KEY (tenant, id),
    CONSTRAINT events_place UNIQUE (tenant, payment_id, version, n),
    CONSTRAINT events_position UNIQUE (tenant, position),
    CONSTRAINT events_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX events_due ON events (next_try_at) WHERE state = 'waiting';
CREATE INDEX events_unnumbered ON events (tenant, created_at) WHERE position IS NULL;

-- The last position of a tenant's feed. Its row lock serialises the numbering of one tenant; tenants do not wait for each other.
CREATE TABLE feed_heads (
    tenant TEXT COLLATE "C" NOT NULL,
    last_position BIGINT NOT NULL CHECK (last_position >= 0),
    CONSTRAINT feed_heads_pk PRIMARY KEY (tenant)
) WITH (fillfactor = 50);

CREATE TABLE audit (
    tenant TEXT COLLATE "C" NOT NULL,
    payment_id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL CHECK (n >= 1),
    doc TEXT NOT NULL,
    CONSTRAINT audit_pk PRIMARY KEY (tenant, payment_id, n),
    CONSTRAINT audit_payment FOREIGN KEY (tenant, payment_id) REFERENCES payments (tenant, id)
);
