-- In the transaction of the migration itself.
INSERT INTO payonce_migrations (version, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)
