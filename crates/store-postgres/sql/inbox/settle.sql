-- Part of a payment's change, in its transaction: mark and effect commit together (B048). No row: it was settled by somebody else, so the change must not land.
UPDATE inbox
SET status = 'settled', payment_id = $3, note = $4, next_try_at = NULL, held_until = NULL
WHERE tenant = $1 AND id = $2 AND status <> 'settled'
