-- A new capture or its new state.
INSERT INTO captures (tenant, id, payment_id, n, status, amount, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, status = excluded.status, amount = excluded.amount, doc = excluded.doc
WHERE captures.payment_id = excluded.payment_id
