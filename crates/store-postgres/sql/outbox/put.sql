-- What the merchant will be told, in the transaction that moved the payment. It has no place in the feed yet: that is given after commit.
INSERT INTO events (tenant, id, payment_id, version, n, created_at, state, next_try_at, tries, notify_url, doc)
VALUES ($1, $2, $3, $4, $5, $6, 'waiting', $6, 0, $7, $8)
