-- Takes a row over that is still as it was seen and that nobody may hold any more, by the store's clock. A reused row starts its life anew (?9 not null);
-- a resumed one keeps its age and expiry. The fence goes up, so that the earlier holder's late write is refused.
UPDATE records
SET claim_id = ?7,
    fence = fence + 1,
    state = 0,
    fingerprint = ?8,
    created_at = CASE WHEN ?9 IS NULL THEN created_at ELSE ?10 END,
    locked_until = ?10 + ?11,
    expires_at = CASE WHEN ?9 IS NULL THEN expires_at ELSE ?10 + ?9 END,
    answer = NULL
WHERE tenant = ?1 AND key = ?2 AND scope = ?3
  AND claim_id = ?4 AND fence = ?5 AND state = ?6
  AND CASE state WHEN 0 THEN locked_until <= ?10 WHEN 2 THEN expires_at <= ?10 ELSE 1 END
RETURNING fence
