-- Work that is due and that no node holds, oldest first. The hold is in the row, so several nodes share the work and a dead one's share comes free.
-- The lock leaves those alone who only refer to the payment; rows that another node is taking are passed over.
WITH due AS MATERIALIZED (
    SELECT tenant, id
    FROM payments
    WHERE due_at IS NOT NULL AND due_at <= $1 AND (held_until IS NULL OR held_until <= $1)
    ORDER BY due_at
    LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE payments AS p
SET held_until = $2
FROM due
WHERE p.tenant = due.tenant AND p.id = due.id
RETURNING p.tenant, p.id, p.due_at
