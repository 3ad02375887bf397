-- A row as it is, with the clock, or the clock alone. Decisions are taken on it, so it is never read from a replica (B042).
SELECT clock.now, r.fingerprint, r.claim_id, r.fence, r.state, r.created_at, r.locked_until, r.expires_at, r.answer
FROM (SELECT COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now) AS clock
LEFT JOIN records AS r ON r.tenant = $1 AND r.key = $2 AND r.scope = $3
