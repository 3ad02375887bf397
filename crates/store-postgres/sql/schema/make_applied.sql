-- Which migrations ran, and the checksum of their text.
CREATE TABLE IF NOT EXISTS payonce_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)
