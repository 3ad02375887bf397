-- New captures or their new states.
INSERT INTO captures (tenant, id, payment_id, n, status, amount, doc)
SELECT $1, u.id, $2, u.n, u.status, u.amount, u.doc
FROM unnest($3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::text[]) AS u (id, n, status, amount, doc)
ORDER BY u.n
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, status = excluded.status, amount = excluded.amount, doc = excluded.doc
WHERE captures.payment_id = excluded.payment_id
