-- Events that are due, held by nobody, and first of their payment's that are still to be delivered: a merchant never hears of a refund before the payment.
UPDATE events
SET held_until = ?2
WHERE rowid IN (
    SELECT e.rowid FROM events AS e
    WHERE e.state = 'waiting' AND e.next_try_at <= ?1 AND (e.held_until IS NULL OR e.held_until <= ?1)
      AND NOT EXISTS (
        SELECT 1 FROM events AS earlier
        WHERE earlier.tenant = e.tenant AND earlier.payment_id = e.payment_id AND earlier.state = 'waiting'
          AND (earlier.version, earlier.n) < (e.version, e.n)
      )
    ORDER BY e.next_try_at, e.created_at
    LIMIT ?3
)
RETURNING next_try_at, created_at, tries, notify_url, doc
