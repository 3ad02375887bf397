-- In the transaction of the migration itself.
INSERT INTO payonce_migrations (version, name, checksum, applied_at)
VALUES ($1, $2, $3, COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint))
