-- One migrates, the others wait and find nothing left to do. Here the writer's transaction locks the whole file anyway.
SELECT id FROM payonce_migration_lock
