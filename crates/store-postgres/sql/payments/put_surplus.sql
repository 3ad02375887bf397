-- Money beside the payment. A row of the same channel transaction stands in the way of booking it twice (I9).
INSERT INTO surpluses (tenant, id, payment_id, n, account, channel_txn, amount, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, account = excluded.account, channel_txn = excluded.channel_txn, amount = excluded.amount, doc = excluded.doc
WHERE surpluses.payment_id = excluded.payment_id
