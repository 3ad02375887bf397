-- For operators.
SELECT id, tenant, label, hash, created_at, revoked_at
FROM api_keys
WHERE $1::text IS NULL OR tenant = $1
ORDER BY tenant, created_at, id
