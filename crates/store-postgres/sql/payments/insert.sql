-- A payment is stored once per order. No row: the order, or the id, is there.
INSERT INTO payments (tenant, id, order_id, version, status, currency, amount, due_at, created_at, updated_at, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING
