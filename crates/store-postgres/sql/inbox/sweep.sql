-- Bounded clean-up behind the channels' last redelivery. What is waiting or unmatched stays.
WITH old AS MATERIALIZED (
    SELECT tenant, id
    FROM inbox
    WHERE received_at < $1 AND status IN ('settled', 'foreign')
    ORDER BY received_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
DELETE FROM inbox AS i
USING old
WHERE i.tenant = old.tenant AND i.id = old.id
