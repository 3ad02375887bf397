-- Events that are due, held by nobody, and first of their payment's that are still to be delivered: a merchant never hears of a refund before the payment.
WITH due AS MATERIALIZED (
    SELECT e.tenant, e.id
    FROM events AS e
    WHERE e.state = 'waiting' AND e.next_try_at <= $1 AND (e.held_until IS NULL OR e.held_until <= $1)
      AND NOT EXISTS (
        SELECT 1 FROM events AS earlier
        WHERE earlier.tenant = e.tenant AND earlier.payment_id = e.payment_id AND earlier.state = 'waiting'
          AND (earlier.version, earlier.n) < (e.version, e.n)
      )
    ORDER BY e.next_try_at, e.created_at
    LIMIT $3
    FOR NO KEY UPDATE OF e SKIP LOCKED
)
UPDATE events AS e
SET held_until = $2
FROM due
WHERE e.tenant = due.tenant AND e.id = due.id
RETURNING e.next_try_at, e.created_at, e.tries, e.notify_url, e.doc
