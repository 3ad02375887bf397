-- One row.
SELECT tenant, id, channel, account, status, payment_id, note, received_at, tries, doc, raw
FROM inbox
WHERE tenant = $1 AND id = $2
