-- Rows as they are, in the order asked for, with the clock. Decisions are taken on them, so they are never read from a replica (B042).
-- The arrays stand in sub-selects so that the planner does not count them: for a long one it would walk the whole table instead of its key.
SELECT u.n, clock.now, r.fingerprint, r.claim_id, r.fence, r.state, r.created_at, r.locked_until, r.expires_at, r.answer
FROM unnest(
    (SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[])
) WITH ORDINALITY AS u (tenant, key, scope, n)
CROSS JOIN (SELECT COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now) AS clock
LEFT JOIN records AS r ON r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope
ORDER BY u.n
