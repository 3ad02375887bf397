-- All events of a payment, in order.
SELECT doc, state FROM events WHERE tenant = $1 AND payment_id = $2 ORDER BY version, n
