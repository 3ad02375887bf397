-- What a notification names: the reference at an account.
SELECT payment_id FROM attempts WHERE tenant = $1 AND account = $2 AND channel_ref = $3
