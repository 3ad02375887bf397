-- How a delivery ended: `waiting` with a new time, or one of the ends. Counts the try. An acknowledged one stays acknowledged.
UPDATE events
SET state = $3, next_try_at = COALESCE($4::bigint, next_try_at), note = $5, held_until = NULL, tries = tries + 1
WHERE tenant = $1 AND id = $2 AND state <> 'acknowledged'
