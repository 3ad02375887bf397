-- Tenants with events that have no place in the feed yet.
SELECT DISTINCT tenant FROM events WHERE position IS NULL ORDER BY tenant LIMIT $1
