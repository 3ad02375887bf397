-- As `sql/records/read`, for a batch, in the order asked for. The limit changes nothing but what the planner believes: it cannot count the keys any
-- more, and so looks each up by the index, where for a long list it would walk the whole table.
SELECT COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint),
    r.fingerprint, r.claim_id, r.fence, r.state, r.created_at, r.locked_until, r.expires_at, r.answer
FROM (
    SELECT *
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u (tenant, key, scope, n)
    LIMIT (SELECT cardinality($1))
) AS u
LEFT JOIN records AS r ON r.tenant = u.tenant AND r.key = u.key AND r.scope = u.scope
ORDER BY u.n
