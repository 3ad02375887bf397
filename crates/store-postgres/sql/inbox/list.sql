-- Rows of a tenant, newest first.
SELECT tenant, id, channel, account, status, payment_id, note, received_at, tries, doc, raw
FROM inbox
WHERE tenant = $1 AND ($2::text IS NULL OR status = $2)
ORDER BY received_at DESC, id DESC
LIMIT $3
