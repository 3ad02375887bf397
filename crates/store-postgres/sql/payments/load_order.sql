-- As `load`, by the merchant's own number.
WITH wanted AS (SELECT id FROM payments WHERE tenant = $1 AND order_id = $2)
SELECT 0 AS kind, 0::bigint AS n, doc FROM payments WHERE tenant = $1 AND id = (SELECT id FROM wanted)
UNION ALL
SELECT 1, n, doc FROM attempts WHERE tenant = $1 AND payment_id = (SELECT id FROM wanted)
UNION ALL
SELECT 2, n, doc FROM captures WHERE tenant = $1 AND payment_id = (SELECT id FROM wanted)
UNION ALL
SELECT 3, n, doc FROM refunds WHERE tenant = $1 AND payment_id = (SELECT id FROM wanted)
UNION ALL
SELECT 4, n, doc FROM surpluses WHERE tenant = $1 AND payment_id = (SELECT id FROM wanted)
ORDER BY kind, n
