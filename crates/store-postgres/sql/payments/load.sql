-- The whole aggregate in one statement, so from one snapshot. Children come in the order in which they were made.
SELECT 0 AS kind, 0::bigint AS n, doc FROM payments WHERE tenant = $1 AND id = $2
UNION ALL
SELECT 1, n, doc FROM attempts WHERE tenant = $1 AND payment_id = $2
UNION ALL
SELECT 2, n, doc FROM captures WHERE tenant = $1 AND payment_id = $2
UNION ALL
SELECT 3, n, doc FROM refunds WHERE tenant = $1 AND payment_id = $2
UNION ALL
SELECT 4, n, doc FROM surpluses WHERE tenant = $1 AND payment_id = $2
ORDER BY kind, n
