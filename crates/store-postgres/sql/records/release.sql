-- Proved that nothing happened: the keys are free again. Only for their holders.
-- The arrays stand in sub-selects so that the planner does not count them: for a long one it would walk the whole table instead of its key.
DELETE FROM records AS r
USING (
    SELECT *
    FROM unnest(
        (SELECT $1::text[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::uuid[]),
        (SELECT $5::bigint[])
    ) WITH ORDINALITY AS u (tenant, key, scope, claim_id, fence, n)
    ORDER BY u.tenant COLLATE "C", u.key COLLATE "C", u.scope COLLATE "C"
) AS u
WHERE r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope AND r.claim_id = u.claim_id AND r.fence = u.fence AND r.state = 0
RETURNING u.n
