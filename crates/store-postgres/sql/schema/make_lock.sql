-- The one row whose lock lets one node migrate at a time.
CREATE TABLE IF NOT EXISTS payonce_migration_lock (id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1))
