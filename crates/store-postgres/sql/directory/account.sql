-- What a webhook's path names.
SELECT name, tenant, channel, settings, created_at FROM accounts WHERE name = $1
