-- Takes a row over that is still as it was seen and that nobody may hold any more, by the store's clock. A reused row starts its life anew ($9 not null);
-- a resumed one keeps its age and expiry. The fence goes up, so that the earlier holder's late write is refused.
UPDATE records AS r
SET claim_id = $7,
    fence = r.fence + 1,
    state = 0,
    fingerprint = $8,
    created_at = CASE WHEN $9::bigint IS NULL THEN r.created_at ELSE clock.now END,
    locked_until = clock.now + $11::bigint,
    expires_at = CASE WHEN $9::bigint IS NULL THEN r.expires_at ELSE clock.now + $9::bigint END,
    answer = NULL
FROM (SELECT COALESCE($10::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now) AS clock
WHERE r.tenant = $1 AND r.key = $2 AND r.scope = $3
  AND r.claim_id = $4 AND r.fence = $5 AND r.state = $6
  AND CASE r.state WHEN 0 THEN r.locked_until <= clock.now WHEN 2 THEN r.expires_at <= clock.now ELSE true END
RETURNING r.fence
