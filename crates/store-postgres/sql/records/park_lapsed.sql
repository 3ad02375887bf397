-- The holder is gone and its route cannot resume: what became of the work is unknown, and stays so until somebody makes sure.
UPDATE records
SET state = 1
WHERE tenant = $1 AND key = $2 AND scope = $3 AND claim_id = $4 AND fence = $5 AND state = 0
  AND locked_until <= COALESCE($6::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
