//! Refusals on their way out of a handler, and the problems of this API (RFC 9457).
//!
//! Each names what is wrong, the rule and the fix, and where money is concerned whether it moved and whether to try again (I10).

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use payonce::http::Problem;
use payonce_channels::contract::Refusal;
use payonce_core::failure::{MoneyMoved, Retry};
use payonce_core::ports::StoreFault;
use payonce_flows::FlowFault;

/// When to come back where nothing better is known.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A problem as the error of a handler.
#[derive(Debug)]
pub(crate) struct Fault(Box<Problem>);

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let unauthorised = self.0.status == 401;
        let code = Code(self.0.code.clone().into_owned());
        let mut response: Response = (*self.0).into_response::<Body>();
        if unauthorised {
            response.headers_mut().insert(http::header::WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer realm=\"payonce\""));
        }
        response.extensions_mut().insert(code);
        response
    }
}

/// A problem's code, for the access log and the metrics.
#[derive(Clone, Debug)]
pub(crate) struct Code(pub(crate) String);

/// A request that is refused before anything was claimed or stored.
pub(crate) fn refused(status: u16, code: &'static str, title: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(status, code, title, detail).money(MoneyMoved::No, Retry::Never)
}

/// A member or parameter that breaks its rule.
pub(crate) fn invalid(field: &str, rule: impl AsRef<str>) -> Problem {
    let detail = format!("{field}: {}", rule.as_ref());
    Problem::new(400, "parameter_invalid", "A parameter is not valid", detail).money(MoneyMoved::No, Retry::Never).with("field", field)
}

/// A member that has to be there and is not.
pub(crate) fn missing(field: &str, rule: &str) -> Problem {
    let detail = format!("{field} is missing: {rule}");
    Problem::new(400, "parameter_missing", "A parameter is missing", detail).money(MoneyMoved::No, Retry::Never).with("field", field)
}

/// A member or parameter that nobody knows.
pub(crate) fn unknown(field: &str, known: &[&str]) -> Problem {
    let detail = format!("{field} is not known here. Known: {}. Members of your own belong into metadata.", known.join(", "));
    Problem::new(400, "parameter_unknown", "A parameter is not known", detail).money(MoneyMoved::No, Retry::Never).with("field", field)
}

/// What a channel's rules stand against.
pub(crate) fn against_rules(refusal: &Refusal) -> Problem {
    match refusal.field.as_str() {
        "currency" => currency_not_supported(&refusal.rule),
        field => invalid(field, &refusal.rule),
    }
}

/// A currency that the channel does not take, or that is none.
pub(crate) fn currency_not_supported(rule: &str) -> Problem {
    Problem::new(400, "currency_not_supported", "The currency is not supported", format!("currency: {rule}"))
        .money(MoneyMoved::No, Retry::Never)
        .with("field", "currency")
}

pub(crate) fn payment_not_found() -> Problem {
    refused(404, "payment_not_found", "There is no such payment", "No payment of yours has this id.")
}

pub(crate) fn refund_not_found() -> Problem {
    refused(404, "refund_not_found", "There is no such refund", "No refund of yours has this id.")
}

/// The store, before anything was claimed.
pub(crate) fn store(fault: &StoreFault) -> Problem {
    tracing::warn!(%fault, "the store could not be asked");
    match fault {
        StoreFault::Unavailable(_) | StoreFault::Ambiguous(_) | StoreFault::Retry(_) => Problem::new(
            503,
            "store_unavailable",
            "The store cannot be reached",
            "Nothing was done. Send the request again, with the same key.",
        )
        .money(MoneyMoved::No, Retry::Safe)
        .after(ASK_AGAIN),
        StoreFault::Refused(_) => internal(),
    }
}

/// A fault of a read or of a check, before anything was claimed.
pub(crate) fn before_claim(fault: &FlowFault) -> Problem {
    match fault {
        FlowFault::Store(fault) => store(fault),
        FlowFault::Sealed(_) | FlowFault::Account(..) | FlowFault::Busy | FlowFault::Violates(_) => {
            let problem = in_flow(fault);
            let retry = problem.retry.unwrap_or(Retry::Never);
            problem.money(MoneyMoved::No, retry)
        }
    }
}

/// A fault of a flow under a claimed key: something may have been stored and sent, so nothing is claimed about money.
pub(crate) fn in_flow(fault: &FlowFault) -> Problem {
    tracing::warn!(%fault, "a flow broke off");
    let again = "Send the request again with the same key: it resumes where it broke off and answers what has come of it.";
    let problem = match fault {
        FlowFault::Store(StoreFault::Unavailable(_) | StoreFault::Ambiguous(_) | StoreFault::Retry(_)) => {
            Problem::new(503, "store_unavailable", "The store cannot be reached", again).after(ASK_AGAIN)
        }
        FlowFault::Busy => Problem::new(503, "payment_busy", "The payment is being changed by others", again).after(ASK_AGAIN),
        FlowFault::Account(name, why) => {
            let detail =
                format!("The account {name} cannot be used: {why}. Once it is repaired, send the request again with the same key.");
            return Problem::new(500, "account_unusable", "The channel account cannot be used", detail)
                .money(MoneyMoved::Unknown, Retry::AfterLookup);
        }
        FlowFault::Sealed(_) => {
            let detail = "What is stored was sealed with a key that this installation does not have. Restore the key file.";
            return Problem::new(500, "sealed_content_unreadable", "Stored content cannot be opened", detail)
                .money(MoneyMoved::Unknown, Retry::AfterLookup);
        }
        FlowFault::Store(StoreFault::Refused(_)) | FlowFault::Violates(_) => return internal(),
    };
    problem.money(MoneyMoved::Unknown, Retry::Safe)
}

/// Ours to repair.
pub(crate) fn internal() -> Problem {
    Problem::new(500, "internal_error", "Something broke on our side", "The log has the particulars under this answer's request id.")
        .money(MoneyMoved::Unknown, Retry::AfterLookup)
}

/// A handler panicked outside of the guard.
pub(crate) fn panicked() -> http::Response<Body> {
    tracing::error!("a handler panicked");
    Fault::from(internal()).into_response()
}
