-- A new attempt or its new state. Callers write those that are no longer live first, so that the index of I1 never sees two at once.
INSERT INTO attempts (tenant, id, payment_id, n, channel, account, channel_ref, status, live, doc)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, channel = excluded.channel, account = excluded.account, channel_ref = excluded.channel_ref,
    status = excluded.status, live = excluded.live, doc = excluded.doc
WHERE attempts.payment_id = excluded.payment_id
