//! The two bodies that pass the layer: a request's on its way in, a response's on its way out.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A request's body: as it came, or read whole by the layer.
pub struct GuardedBody<B>(Parts<B>);

/// A response's body: as the inner service gave it, or bytes, or bytes with the rest of it behind them.
pub struct ReplyBody<B>(Parts<B>);

struct Parts<B> {
    first: Option<Bytes>,
    rest: Option<Pin<Box<B>>>,
}

impl<B> Parts<B> {
    fn bytes(bytes: Bytes) -> Self {
        Self { first: Some(bytes).filter(|bytes| !bytes.is_empty()), rest: None }
    }
}

impl<B> GuardedBody<B> {
    pub(super) fn through(body: B) -> Self {
        Self(Parts { first: None, rest: Some(Box::pin(body)) })
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Parts::bytes(bytes))
    }
}

impl<B> ReplyBody<B> {
    pub(super) fn through(body: B) -> Self {
        Self(Parts { first: None, rest: Some(Box::pin(body)) })
    }

    /// `first`, and then what is left of the inner service's body.
    pub(super) fn prefixed(first: Bytes, rest: Option<Pin<Box<B>>>) -> Self {
        Self(Parts { rest, ..Parts::bytes(first) })
    }
}

impl<B> From<Bytes> for ReplyBody<B> {
    fn from(bytes: Bytes) -> Self {
        Self(Parts::bytes(bytes))
    }
}

impl<B: Body<Data = Bytes>> Body for Parts<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &mut self.rest {
            Some(rest) => rest.as_mut().poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| u64::try_from(first.len()).unwrap_or(u64::MAX));
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), |rest| rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(first.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            hint.set_upper(first.saturating_add(upper));
        }
        hint
    }
}

macro_rules! body {
    ($name:ident) => {
        impl<B: Body<Data = Bytes>> Body for $name<B> {
            type Data = Bytes;
            type Error = B::Error;

            fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
                Pin::new(&mut self.0).poll_frame(cx)
            }

            fn is_end_stream(&self) -> bool {
                self.0.is_end_stream()
            }

            fn size_hint(&self) -> SizeHint {
                self.0.size_hint()
            }
        }

        impl<B> fmt::Debug for $name<B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}

body!(GuardedBody);
body!(ReplyBody);
