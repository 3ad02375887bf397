//! API, webhooks, workers, metrics. app.rs is the only file that names concrete stores.
