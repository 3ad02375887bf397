-- The work is done, or was not for us: the next due time counts again.
UPDATE payments SET held_until = NULL WHERE tenant = $1 AND id = $2
