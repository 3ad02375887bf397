-- Work that is due and that no node holds, oldest first. The hold is in the row, so several nodes share the work and a dead one's share comes free.
UPDATE payments
SET held_until = ?2
WHERE rowid IN (
    SELECT rowid FROM payments
    WHERE due_at IS NOT NULL AND due_at <= ?1 AND (held_until IS NULL OR held_until <= ?1)
    ORDER BY due_at
    LIMIT ?3
)
RETURNING tenant, id, due_at
