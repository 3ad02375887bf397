-- What the merchant will be told, in the transaction that moved the payment. It has no place in the feed yet: that is given after commit.
INSERT INTO events (tenant, id, payment_id, version, n, created_at, state, next_try_at, tries, notify_url, doc)
SELECT $1, u.id, $2, u.version, u.n, u.created_at, 'waiting', u.created_at, 0, $3, u.doc
FROM unnest($4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[]) AS u (id, version, n, created_at, doc)
