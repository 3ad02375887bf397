-- A key, by its hash only. An id or a hash that is there is an error: a key is made once.
INSERT INTO api_keys (id, tenant, label, hash, created_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, $6)
