-- The row itself, once.
INSERT INTO payonce_migration_lock (id) VALUES (1) ON CONFLICT (id) DO NOTHING
