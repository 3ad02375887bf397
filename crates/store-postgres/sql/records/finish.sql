-- Renews ($6 = 0, with a lease), parks (1) or answers (2) a row that its holder still holds. Touches no indexed column.
UPDATE records
SET state = $6::smallint,
    locked_until = CASE
        WHEN $6::smallint = 0 THEN $8 + COALESCE($7::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
        ELSE locked_until
    END,
    answer = $9
WHERE tenant = $1 AND key = $2 AND scope = $3 AND claim_id = $4 AND fence = $5 AND state = 0
