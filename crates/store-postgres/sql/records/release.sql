-- Proved that nothing happened: the key is free again. Only for the holder.
DELETE FROM records
WHERE tenant = $1 AND key = $2 AND scope = $3 AND claim_id = $4 AND fence = $5 AND state = 0
