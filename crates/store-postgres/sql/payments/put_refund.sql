-- A new refund or its new state. Its amount counts as reserved from here on (I7).
INSERT INTO refunds (tenant, id, payment_id, n, refund_id, account, channel_ref, status, amount, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, refund_id = excluded.refund_id, account = excluded.account, channel_ref = excluded.channel_ref,
    status = excluded.status, amount = excluded.amount, doc = excluded.doc
WHERE refunds.payment_id = excluded.payment_id
