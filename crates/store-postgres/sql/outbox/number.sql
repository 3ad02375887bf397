-- Places follow the events' times, except that a payment's events keep the order of its versions even where nodes' clocks disagree:
-- an event never comes before the latest of those before it. Numbers are given after commit, so a reader of the feed never misses one.
-- A statement of its own behind `lock_head`, so that its snapshot is taken under the lock.
UPDATE events
SET position = numbered.position
FROM (
    SELECT id, $2::bigint + row_number() OVER (ORDER BY turn, payment_id, version, n) AS position
    FROM (
        SELECT id, payment_id, version, n, max(created_at) OVER (PARTITION BY payment_id ORDER BY version, n) AS turn
        FROM events
        WHERE tenant = $1 AND position IS NULL
    ) AS turns
    ORDER BY position
    LIMIT $3
) AS numbered
WHERE events.tenant = $1 AND events.id = numbered.id
