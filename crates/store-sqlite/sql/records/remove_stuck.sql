-- An operator has made sure of the outcome. A live lease is never broken, and an answer is never dropped.
DELETE FROM records
WHERE tenant = ?1 AND key = ?2 AND scope = ?3 AND (state = 1 OR (state = 0 AND locked_until <= ?4))
