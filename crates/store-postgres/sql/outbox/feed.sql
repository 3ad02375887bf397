-- The feed after a position.
SELECT position, state, doc
FROM events
WHERE tenant = $1 AND position > $2
ORDER BY position
LIMIT $3
