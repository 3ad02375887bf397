-- One migrates, the others wait and find nothing left to do. A row lock, because advisory locks do not survive a transaction pooler.
SELECT id FROM payonce_migration_lock FOR UPDATE
