-- One page, newest first (ids sort by age), with all children in the same snapshot.
WITH page AS (
    SELECT id, doc
    FROM payments AS p
    WHERE tenant = $1
      AND ($2::text IS NULL OR order_id = $2)
      AND ($3::text IS NULL OR status = $3)
      AND ($4::text IS NULL OR EXISTS (SELECT 1 FROM attempts AS a WHERE a.tenant = p.tenant AND a.payment_id = p.id AND a.channel = $4))
      AND ($5::text IS NULL OR id < $5)
    ORDER BY id DESC
    LIMIT $6
)
SELECT id AS payment_id, 0 AS kind, 0::bigint AS n, doc FROM page
UNION ALL
SELECT payment_id, 1, n, doc FROM attempts WHERE tenant = $1 AND payment_id IN (SELECT id FROM page)
UNION ALL
SELECT payment_id, 2, n, doc FROM captures WHERE tenant = $1 AND payment_id IN (SELECT id FROM page)
UNION ALL
SELECT payment_id, 3, n, doc FROM refunds WHERE tenant = $1 AND payment_id IN (SELECT id FROM page)
UNION ALL
SELECT payment_id, 4, n, doc FROM surpluses WHERE tenant = $1 AND payment_id IN (SELECT id FROM page)
ORDER BY payment_id DESC, kind, n
