//! Faults on demand: which request meets which one.
//!
//! A fault waits for requests of one channel and operation. Faults are used up in the order in which they were set.

use payonce_channels::books::Recognised;
use payonce_channels::contract::Operation;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The connection is reset; nothing was read.
    RefuseConnection,
    /// Read, not executed, connection closed.
    DropRequest,
    /// Executed, connection closed.
    DropResponse,
    /// Waits, then executes, even if the caller has hung up.
    Delay,
    /// Executes, then waits.
    DelayResponse,
    /// 5xx, not executed.
    ErrorBefore,
    /// 5xx, executed.
    ErrorAfter,
    /// Executed; the answer is cut and garbled.
    Malformed,
    /// Executed; the answer has no body.
    Empty,
    /// Not executed: the channel's "too many requests".
    RateLimited,
    /// Executed; the answer's signature is wrong.
    BadSignature,
    /// Not executed: the channel's "this reference is being worked on".
    InProgress,
    /// Executed; the answer is right but unusually written.
    Awkward,
    /// Not executed: the channel's definite refusal for a business reason.
    Declined,
}

impl Kind {
    /// Whether it needs a time to wait.
    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::Delay | Self::DelayResponse)
    }
}

/// A fault that waits.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) id: u64,
    pub(crate) channel: &'static str,
    pub(crate) operation: Operation,
    pub(crate) fault: Kind,
    /// How many requests it still meets.
    pub(crate) times: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ms: Option<u64>,
    /// Only requests that name this reference, of the order or of the refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) channel_ref: Option<String>,
}

impl Fault {
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.unwrap_or(0))
    }

    fn meets(&self, channel: &str, request: &Recognised) -> bool {
        let named = |reference: &String| request.channel_ref.as_ref() == Some(reference) || request.order_ref.as_ref() == Some(reference);
        self.channel == channel && request.operation == Some(self.operation) && self.channel_ref.as_ref().is_none_or(named)
    }
}

/// The faults that wait, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    waiting: Vec<Fault>,
    next_id: u64,
}

impl Faults {
    /// Sets a fault; it gets its id here.
    pub(crate) fn set(&mut self, mut fault: Fault) -> Fault {
        self.next_id += 1;
        fault.id = self.next_id;
        self.waiting.push(fault.clone());
        fault
    }

    /// The fault that this request meets, used up once.
    pub(crate) fn take(&mut self, channel: &str, request: &Recognised) -> Option<Fault> {
        let at = self.waiting.iter().position(|fault| fault.meets(channel, request))?;
        let fault = self.waiting.get_mut(at)?;
        fault.times -= 1;
        let taken = fault.clone();
        if taken.times == 0 {
            self.waiting.remove(at);
        }
        Some(taken)
    }

    pub(crate) fn waiting(&self) -> &[Fault] {
        &self.waiting
    }

    /// Forgets all; the answer is how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.waiting).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: Operation, reference: &str) -> Recognised {
        Recognised {
            account: "alipay".to_owned(),
            operation: Some(operation),
            channel_ref: Some(reference.to_owned()),
            order_ref: None,
            amount: None,
            content: serde_json::Value::Null,
        }
    }

    #[test]
    fn faults_are_met_in_order_by_their_operation_and_used_up() {
        let mut faults = Faults::default();
        let mut set = |operation, fault, times, reference: Option<&str>| {
            faults.set(Fault {
                id: 0,
                channel: "alipay",
                operation,
                fault,
                times,
                delay_ms: None,
                channel_ref: reference.map(str::to_owned),
            });
        };
        set(Operation::Charge, Kind::DropRequest, 2, None);
        set(Operation::Charge, Kind::Empty, 1, Some("other"));
        set(Operation::Charge, Kind::DropResponse, 1, None);
        let mut met = |operation, reference| faults.take("alipay", &request(operation, reference)).map(|fault| fault.fault);
        assert_eq!(met(Operation::Query, "a"), None);
        assert_eq!(met(Operation::Charge, "a"), Some(Kind::DropRequest));
        assert_eq!(met(Operation::Charge, "b"), Some(Kind::DropRequest));
        assert_eq!(met(Operation::Charge, "a"), Some(Kind::DropResponse));
        assert_eq!(met(Operation::Charge, "a"), None);
        assert_eq!(met(Operation::Charge, "other"), Some(Kind::Empty));
        assert_eq!(faults.clear(), 0);
    }
}
