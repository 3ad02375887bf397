-- An operator has made sure of the outcome. A live lease is never broken, and an answer is never dropped.
DELETE FROM records
WHERE tenant = $1 AND key = $2 AND scope = $3
  AND (state = 1
       OR (state = 0 AND locked_until <= COALESCE($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)))
