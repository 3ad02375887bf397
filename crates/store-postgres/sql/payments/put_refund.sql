-- New refunds or their new states. Their amounts count as reserved from here on (I7).
INSERT INTO refunds (tenant, id, payment_id, n, refund_id, account, channel_ref, status, amount, doc)
SELECT $1, u.id, $2, u.n, u.refund_id, u.account, u.channel_ref, u.status, u.amount, u.doc
FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])
    AS u (id, n, refund_id, account, channel_ref, status, amount, doc)
ORDER BY u.n
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, refund_id = excluded.refund_id, account = excluded.account, channel_ref = excluded.channel_ref,
    status = excluded.status, amount = excluded.amount, doc = excluded.doc
WHERE refunds.payment_id = excluded.payment_id
