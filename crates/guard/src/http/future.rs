//! The future of a response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use super::ReplyBody;

/// See [`GuardService`](super::GuardService). Dropping it stops a request that is still being read; a run that has begun goes on.
pub struct GuardFuture<R, E>(Boxed<Result<Response<ReplyBody<R>>, E>>);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<R, E> GuardFuture<R, E> {
    pub(super) fn new(future: impl Future<Output = Result<Response<ReplyBody<R>>, E>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<R, E> Future for GuardFuture<R, E> {
    type Output = Result<Response<ReplyBody<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<R, E> fmt::Debug for GuardFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardFuture(…)")
    }
}
