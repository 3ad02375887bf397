-- Where a reader of the feed stands. No row: the tenant has no such event. A null: it has, but it is not in the feed yet.
SELECT position FROM events WHERE tenant = $1 AND id = $2
