-- Rows whose time has come and that no node holds, oldest first. Taking one counts as a try, so that a try whose worker died counts too.
UPDATE inbox
SET held_until = ?2, tries = tries + 1
WHERE rowid IN (
    SELECT rowid FROM inbox
    WHERE status IN ('waiting', 'unmatched') AND next_try_at <= ?1 AND (held_until IS NULL OR held_until <= ?1)
    ORDER BY received_at, id
    LIMIT ?3
)
RETURNING tenant, id, channel, account, status, payment_id, note, received_at, tries, doc, raw
