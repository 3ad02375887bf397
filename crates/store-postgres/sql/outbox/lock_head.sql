-- The numbering of a tenant is serialised by this row's lock; tenants do not wait for each other.
SELECT last_position FROM feed_heads WHERE tenant = $1 FOR UPDATE
