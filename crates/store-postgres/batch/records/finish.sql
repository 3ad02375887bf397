-- As `sql/records/finish`, for a batch. Rows are disjoint between processes, because each has one holder; the key order is for the rest of them. The
-- limit keeps the planner from counting, as in `read`.
UPDATE records AS r
SET state = u.state,
    locked_until = CASE
        WHEN u.state = 0 THEN u.lease + COALESCE($9::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
        ELSE r.locked_until
    END,
    answer = u.answer
FROM (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::smallint[], $7::bigint[], $8::bytea[])
        WITH ORDINALITY AS u (tenant, key, scope, claim_id, fence, state, lease, answer, n)
    ORDER BY u.tenant COLLATE "C", u.key COLLATE "C", u.scope COLLATE "C"
    LIMIT (SELECT cardinality($1))
) AS u
WHERE r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope AND r.claim_id = u.claim_id AND r.fence = u.fence AND r.state = 0
RETURNING u.n
