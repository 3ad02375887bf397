-- As `sql/records/release`, for a batch. The limit keeps the planner from counting, as in `read`.
DELETE FROM records AS r
USING (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[])
        WITH ORDINALITY AS u (tenant, key, scope, claim_id, fence, n)
    ORDER BY u.tenant COLLATE "C", u.key COLLATE "C", u.scope COLLATE "C"
    LIMIT (SELECT cardinality($1))
) AS u
WHERE r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope AND r.claim_id = u.claim_id AND r.fence = u.fence AND r.state = 0
RETURNING u.n
