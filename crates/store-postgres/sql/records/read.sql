-- A row as it is, with the clock. Decisions are taken on it, so it is never read from a replica (B042).
SELECT COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint),
    fingerprint, claim_id, fence, state, created_at, locked_until, expires_at, answer
FROM records
WHERE tenant = $1 AND key = $2 AND scope = $3
