//! The layer: what is guarded, and how.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderName, Method};
use payonce_core::fingerprint::Rules;
use payonce_core::id::TenantId;

use super::{GuardService, Preset};
use crate::answer::Answer;
use crate::guard::Guard;
use crate::policy::Route;

/// Guards the requests of an HTTP service. Without further settings: POST and PATCH by the IETF draft, one tenant named `default`, the
/// scope is method and path, bodies up to 64 KiB, a plain route.
#[derive(Clone)]
pub struct GuardLayer {
    config: Config,
}

/// What one layer does.
#[derive(Clone)]
pub(super) struct Config {
    pub(super) guard: Guard,
    pub(super) preset: Preset,
    pub(super) methods: Vec<Method>,
    pub(super) rules: Rules,
    pub(super) keep_headers: Vec<HeaderName>,
    pub(super) tenant: Arc<Read<Option<TenantId>>>,
    pub(super) scope: Arc<Read<String>>,
    pub(super) route: Arc<Read<Route>>,
    pub(super) refresh: Option<Arc<Refresh>>,
}

/// Reads something off a request.
pub(super) type Read<T> = dyn Fn(&Parts) -> T + Send + Sync;
pub(super) type Refresh = dyn Fn(Answer) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync;

impl GuardLayer {
    /// A layer on `guard`.
    pub fn new(guard: Guard) -> Self {
        let config = Config {
            guard,
            preset: Preset::ietf(),
            methods: vec![Method::POST, Method::PATCH],
            rules: Rules::default(),
            keep_headers: Vec::new(),
            tenant: Arc::new(|_| TenantId::parse("default")),
            scope: Arc::new(|parts| format!("{} {}", parts.method, parts.uri.path())),
            route: Arc::new(|_| Route::PLAIN),
            refresh: None,
        };
        Self { config }
    }

    /// Speaks another dialect.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.config.rules.exclude.clone_from(&preset.exclude);
        self.config.preset = preset;
        self
    }

    /// Guards these methods; others pass.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.config.methods = methods.into_iter().collect();
        self
    }

    /// Whose request it is. `None` is answered 401: without a tenant, keys of strangers would meet.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Fn(&Parts) -> Option<TenantId> + Send + Sync + 'static) -> Self {
        self.config.tenant = Arc::new(tenant);
        self
    }

    /// In which scope the key counts: method and route, for example `POST /v1/payments`. A longer scope than 512 bytes is shortened by a hash.
    #[must_use]
    pub fn scope(mut self, scope: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.config.scope = Arc::new(scope);
        self
    }

    /// What the route asks of the guard: whether it can resume, whether repeats wait.
    #[must_use]
    pub fn route(mut self, route: impl Fn(&Parts) -> Route + Send + Sync + 'static) -> Self {
        self.config.route = Arc::new(route);
        self
    }

    /// The longest request body; a longer one is answered 413, and no key is claimed.
    #[must_use]
    pub const fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.config.rules.max_body_bytes = bytes;
        self
    }

    /// Keeps one more response header.
    #[must_use]
    pub fn keep_header(mut self, name: HeaderName) -> Self {
        self.config.keep_headers.push(name);
        self
    }

    /// Before a kept answer is replayed, puts what this gives in its place: for dialects that answer a repeat with the present state.
    #[must_use]
    pub fn on_replay<F: Future<Output = Answer> + Send + 'static>(mut self, refresh: impl Fn(Answer) -> F + Send + Sync + 'static) -> Self {
        self.config.refresh = Some(Arc::new(move |answer| Box::pin(refresh(answer))));
        self
    }
}

impl<S> tower::Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService::new(inner, Arc::new(self.config.clone()))
    }
}

impl fmt::Debug for GuardLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer").field("preset", &self.config.preset).field("methods", &self.config.methods).finish_non_exhaustive()
    }
}
