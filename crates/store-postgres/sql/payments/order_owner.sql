-- Who has the order that an insert wanted.
SELECT id FROM payments WHERE tenant = $1 AND order_id = $2
