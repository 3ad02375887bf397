-- An absent row is ours by this one statement (I8); a row that stands there is left alone and read by `read`. No rows affected: somebody has it.
INSERT INTO records (tenant, key, scope, fingerprint, claim_id, fence, state, created_at, locked_until, expires_at)
SELECT $1, $2, $3, $4::bytea, $5::uuid, 1, 0, clock.now, clock.now + $7, clock.now + $8
FROM (SELECT COALESCE($6::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now) AS clock
ON CONFLICT (tenant, key, scope) DO NOTHING
