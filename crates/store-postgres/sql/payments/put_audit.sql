-- The next entry of the timeline. It is only ever added: a number that is taken is an error.
INSERT INTO audit (tenant, payment_id, n, doc)
VALUES ($1, $2, $3, $4)
