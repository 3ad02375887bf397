-- The key that a request brings.
SELECT id, tenant, label, hash, created_at, revoked_at FROM api_keys WHERE hash = $1
