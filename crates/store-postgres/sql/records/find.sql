-- For operators: a key in every scope, or the newest rows of a tenant.
SELECT fingerprint, claim_id, fence, state, created_at, locked_until, expires_at, answer, key, scope
FROM records
WHERE tenant = $1 AND ($2::text IS NULL OR key = $2)
ORDER BY created_at DESC, key, scope
LIMIT $3
