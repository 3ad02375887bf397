-- Bounded clean-up. Running and parked rows never expire (B030), whatever their expiry says. Rows that somebody is reusing are passed over.
WITH expired AS MATERIALIZED (
    SELECT tenant, key, scope
    FROM records
    WHERE state = 2 AND expires_at <= COALESCE($1::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
    ORDER BY expires_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM records AS r
USING expired
WHERE r.tenant = expired.tenant AND r.key = expired.key AND r.scope = expired.scope
