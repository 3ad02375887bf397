-- New attempts or their new states. Those that are no longer live go first, so that the index of I1 never sees two at once.
INSERT INTO attempts (tenant, id, payment_id, n, channel, account, channel_ref, status, live, doc)
SELECT $1, u.id, $2, u.n, u.channel, u.account, u.channel_ref, u.status, u.live, u.doc
FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::text[])
    AS u (id, n, channel, account, channel_ref, status, live, doc)
ORDER BY u.live, u.n
ON CONFLICT (tenant, id) DO UPDATE
SET n = excluded.n, channel = excluded.channel, account = excluded.account, channel_ref = excluded.channel_ref,
    status = excluded.status, live = excluded.live, doc = excluded.doc
WHERE attempts.payment_id = excluded.payment_id
