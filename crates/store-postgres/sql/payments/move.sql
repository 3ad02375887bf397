-- The compare-and-set that guards everything of a payment (I5). No row: somebody moved it first. A hold of `take_due` stays until it is let go.
UPDATE payments
SET version = $4, status = $5, currency = $6, amount = $7, due_at = $8, updated_at = $9, doc = $10
WHERE tenant = $1 AND id = $2 AND version = $3
