-- The timeline, in order.
SELECT doc FROM audit WHERE tenant = $1 AND payment_id = $2 ORDER BY n
