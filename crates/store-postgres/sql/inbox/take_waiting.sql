-- Rows whose time has come and that no node holds, oldest first. Taking one counts as a try, so that a try whose worker died counts too.
WITH due AS MATERIALIZED (
    SELECT tenant, id
    FROM inbox
    WHERE status IN ('waiting', 'unmatched') AND next_try_at <= $1 AND (held_until IS NULL OR held_until <= $1)
    ORDER BY received_at, id
    LIMIT $3
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE inbox AS i
SET held_until = $2, tries = i.tries + 1
FROM due
WHERE i.tenant = due.tenant AND i.id = due.id
RETURNING i.tenant, i.id, i.channel, i.account, i.status, i.payment_id, i.note, i.received_at, i.tries, i.doc, i.raw
