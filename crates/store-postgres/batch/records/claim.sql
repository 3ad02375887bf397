-- As `sql/records/claim`, for a batch. In key order, so that the batches of two processes never wait for each other in a circle. Of two rows with one
-- key the first is taken.
WITH clock AS MATERIALIZED (
    SELECT COALESCE($8::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS now
)
INSERT INTO records (tenant, key, scope, fingerprint, claim_id, fence, state, created_at, locked_until, expires_at)
SELECT u.tenant, u.key, u.scope, u.fingerprint, u.claim_id, 1, 0, clock.now, clock.now + u.lease, clock.now + u.ttl
FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[], $7::bigint[])
    WITH ORDINALITY AS u (tenant, key, scope, fingerprint, claim_id, lease, ttl, n)
CROSS JOIN clock
ORDER BY u.tenant COLLATE "C", u.key COLLATE "C", u.scope COLLATE "C", u.n
ON CONFLICT (tenant, key, scope) DO NOTHING
RETURNING claim_id
