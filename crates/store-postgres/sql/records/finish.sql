-- Renews (state 0, with a lease), parks (1) or answers (2) rows that their holders still hold. Touches no indexed column. Rows are disjoint between
-- processes, because each has one holder; the key order is for the rest of them.
-- The arrays stand in sub-selects so that the planner does not count them: for a long one it would walk the whole table instead of its key.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($9::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now
)
UPDATE records AS r
SET state = u.state,
    locked_until = CASE WHEN u.state = 0 THEN clock.now + u.lease ELSE r.locked_until END,
    answer = u.answer
FROM (
    SELECT *
    FROM unnest(
        (SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::uuid[]),
        (SELECT $5::bigint[]), (SELECT $6::smallint[]), (SELECT $7::bigint[]), (SELECT $8::bytea[])
    ) WITH ORDINALITY AS u (tenant, key, scope, claim_id, fence, state, lease, answer, n)
    ORDER BY u.tenant COLLATE "C", u.key COLLATE "C", u.scope COLLATE "C"
) AS u
CROSS JOIN clock
WHERE r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope AND r.claim_id = u.claim_id AND r.fence = u.fence AND r.state = 0
RETURNING u.n
