-- Ends or postpones a row that changes no payment. A settled row stays settled.
UPDATE inbox
SET status = $3, note = $4, next_try_at = $5, held_until = NULL
WHERE tenant = $1 AND id = $2 AND status <> 'settled'
