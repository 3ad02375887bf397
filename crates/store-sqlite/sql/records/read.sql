-- A row as it is. Decisions are taken on it, so it is never read from a copy.
SELECT fingerprint, claim_id, fence, state, created_at, locked_until, expires_at, answer
FROM records
WHERE tenant = ?1 AND key = ?2 AND scope = ?3
