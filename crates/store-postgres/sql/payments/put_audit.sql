-- The next entries of the timeline. They are only ever added: a number that is taken is an error.
INSERT INTO audit (tenant, payment_id, n, doc)
SELECT $1, $2, u.n, u.doc
FROM unnest($3::bigint[], $4::text[]) AS u (n, doc)
