-- Money beside the payment. A row of the same channel transaction stands in the way of booking it twice (I9).
INSERT INTO surpluses (tenant, id, payment_id, n, account, channel_txn, amount, doc)
SELECT $1, u.id, $2, u.n, u.account, u.channel_txn, u.amount, u.doc
FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[]) AS u (id, n, account, channel_txn, amount, doc)
ORDER BY u.n
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, account = excluded.account, channel_txn = excluded.channel_txn, amount = excluded.amount, doc = excluded.doc
WHERE surpluses.payment_id = excluded.payment_id
