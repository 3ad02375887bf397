-- Which payment a refund belongs to.
SELECT payment_id FROM refunds WHERE tenant = $1 AND id = $2
