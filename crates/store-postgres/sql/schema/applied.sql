-- What was migrated, and from which text.
SELECT version, checksum FROM payonce_migrations ORDER BY version
