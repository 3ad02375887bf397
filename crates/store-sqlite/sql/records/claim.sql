-- An absent row is ours by this one statement (I8); a row that stands there is left alone and read by `read`. No rows affected: somebody has it.
INSERT INTO records (tenant, key, scope, fingerprint, claim_id, fence, state, created_at, locked_until, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, ?6 + ?7, ?6 + ?8)
ON CONFLICT (tenant, key, scope) DO NOTHING
