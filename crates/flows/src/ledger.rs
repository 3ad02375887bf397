//! What every flow works with, and the one loop in which an observation meets the payment (I5).

use std::sync::Arc;
use std::time::Duration;

use payonce_channels::transport::Transport;
use payonce_core::clock::{Clock, Entropy, Timestamp};
use payonce_core::id::{PaymentId, TenantId};
use payonce_core::outcome::{Action, Outcome};
use payonce_core::payment::change::InboxMark;
use payonce_core::payment::draft::Draft;
use payonce_core::payment::observe::{self, Observation};
use payonce_core::payment::{Payment, SurplusPolicy};
use payonce_core::ports::payments::{Applied, Rule};
use payonce_core::ports::{Store, StoreFault};
use payonce_core::secret::{Keyring, OpenFault, Sealed};

use crate::accounts::Accounts;

/// How often a change is decided again because somebody else moved the payment in between. Each round means that another one succeeded.
const ROUNDS_MAX: usize = 32;

/// Durations that flows keep to. All have defaults that fit each other; the configuration checks their relations.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a channel call may take, and how long its send lease holds.
    pub channel_deadline: Duration,
    /// After this a request is answered with what is known.
    pub answer_due: Duration,
    /// How long before the end of a channel's key window a resend must begin.
    pub resend_margin: Duration,
    /// When an attempt is first looked up.
    pub first_look_up: Duration,
    /// The longest interval between two look-ups.
    pub look_up_max: Duration,
    /// After this an outcome that is still unknown makes the payment `review`.
    pub unresolved_after: Duration,
    /// How long a worker holds what it took.
    pub hold: Duration,
    /// How long an authentic notification that matches no payment is tried again.
    pub unmatched_for: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            channel_deadline: Duration::from_secs(20),
            answer_due: Duration::from_secs(30),
            resend_margin: Duration::from_secs(600),
            first_look_up: Duration::from_secs(5),
            look_up_max: Duration::from_secs(3600),
            unresolved_after: Duration::from_secs(24 * 3600),
            hold: Duration::from_secs(120),
            unmatched_for: Duration::from_secs(24 * 3600),
        }
    }
}

impl Timing {
    /// When an attempt is looked at next: after the growing interval, and in any case when it stops being payable, so that it is ended then.
    pub fn attempt_due(&self, attempt: &payonce_core::attempt::Attempt, now: Timestamp) -> Timestamp {
        let next = self.next_look_up(attempt.looks, now);
        if attempt.expires_at > now { next.min(attempt.expires_at) } else { next }
    }

    /// When the look-up after `looks` of them is due: doubling from the first to the longest.
    pub fn next_look_up(&self, looks: u32, now: Timestamp) -> Timestamp {
        let factor = 2u32.saturating_pow(looks.min(20));
        now.plus(self.first_look_up.saturating_mul(factor).min(self.look_up_max))
    }
}

/// Why a flow could not come to a decision. Nothing is decided; what was stored stays, and is resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowFault {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Sealed bytes do not open: the key file does not belong to this database.
    #[error("stored content cannot be opened: {0}")]
    Sealed(#[from] OpenFault),
    /// The account of a stored attempt is gone or its settings no longer do.
    #[error("account {0} cannot be used: {1}")]
    Account(String, String),
    /// The payment was moved by others too often while this change was being decided.
    #[error("the payment is busy")]
    Busy,
    /// A unique rule of the database stands in the way of what was decided on fresh data.
    #[error("the database refuses the change: {0:?}")]
    Violates(Rule),
}

/// What every flow works with.
pub struct Ledger {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Accounts by name.
    pub accounts: Accounts,
    /// The way to the channels.
    pub transport: Arc<dyn Transport>,
    /// The installation's keys.
    pub keyring: Arc<Keyring>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Durations.
    pub timing: Timing,
    /// What happens with a surplus.
    pub surplus: SurplusPolicy,
    /// Where channels reach us, without a slash at the end: `https://pay.example.com`.
    pub public_url: String,
    /// Names this process in send leases.
    pub node: String,
    /// Woken when something was stored that a worker should see at once.
    pub wake: Arc<Wake>,
}

/// Wakes the workers of this process. Waking is a hint: the tables are swept anyway.
#[derive(Debug, Default)]
pub struct Wake {
    /// An inbox row was stored.
    pub settle: tokio::sync::Notify,
    /// An event was stored.
    pub publish: tokio::sync::Notify,
    /// Something is due at once.
    pub reconcile: tokio::sync::Notify,
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ledger({})", self.node)
    }
}

impl Ledger {
    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Loads, decides and applies until the change lands: on a conflict the decision is made again on what is there now. Only the local
    /// transaction is repeated, never a call. `decide` fills the draft; a draft that is left empty changes nothing. Returns the payment as it
    /// then is; `None` where there is no such payment.
    pub async fn change(
        &self,
        tenant: &TenantId,
        id: &PaymentId,
        inbox: Option<&InboxMark>,
        mut decide: impl FnMut(&mut Draft) + Send,
    ) -> Result<Option<Payment>, FlowFault> {
        for _ in 0..ROUNDS_MAX {
            let Some(seen) = self.store.load(tenant, id).await? else { return Ok(None) };
            let mut draft = Draft::of(seen.clone(), self.now());
            decide(&mut draft);
            let Some(change) = draft.finish(inbox.cloned()) else { return Ok(Some(seen)) };
            match self.apply(&change).await? {
                Applied::Done => return Ok(Some(change.payment)),
                Applied::Conflict | Applied::OrderTaken(_) => {}
                // Somebody settled the row first: its effect is stored.
                Applied::Violates(Rule::InboxRow) => return Ok(Some(seen)),
                Applied::Violates(rule) => return Err(FlowFault::Violates(rule)),
            }
        }
        Err(FlowFault::Busy)
    }

    /// Applies a change and wakes who should see it. A lost commit answer is settled by reading back: versions are unique per change, so the
    /// same version with the same timeline head is ours.
    pub async fn apply(&self, change: &payonce_core::payment::change::Change) -> Result<Applied, FlowFault> {
        let applied = match self.store.apply(change).await {
            Err(StoreFault::Ambiguous(why)) => {
                let back = self.store.load(&change.payment.tenant, &change.payment.id).await?;
                match back {
                    Some(now) if now.version == change.payment.version && now.audit_head == change.payment.audit_head => Applied::Done,
                    Some(now) if now.version > change.payment.version => {
                        // Others have moved it since; ours is in the timeline if it landed.
                        let timeline = self.store.timeline(&change.payment.tenant, &change.payment.id).await?;
                        let landed = timeline.iter().any(|entry| entry.hash == change.payment.audit_head);
                        if landed { Applied::Done } else { Applied::Conflict }
                    }
                    Some(_) => Applied::Conflict,
                    None if change.seen.is_none() => return Err(FlowFault::Store(StoreFault::Ambiguous(why))),
                    None => Applied::Conflict,
                }
            }
            // Rolled back as a whole: decided again like a lost race. Only the local transaction is repeated (B036).
            Err(StoreFault::Retry(_)) => Applied::Conflict,
            other => other?,
        };
        if applied == Applied::Done {
            if !change.events.is_empty() {
                self.wake.publish.notify_one();
            }
            if change.payment.due_at().is_some_and(|due| due <= self.now()) {
                self.wake.reconcile.notify_one();
            }
        }
        Ok(applied)
    }

    /// Applies what was seen of an attempt.
    pub async fn observe(&self, tenant: &TenantId, id: &PaymentId, seen: &Observation) -> Result<Option<Payment>, FlowFault> {
        self.change(tenant, id, None, |draft| observe::observe(draft, seen, self.surplus)).await
    }

    /// Seals the action of an outcome for its place.
    pub fn seal_action(&self, attempt: &str, outcome: &Outcome) -> Option<Sealed> {
        let Outcome::Waiting { action: Some(action), .. } = outcome else { return None };
        let plain = serde_json::to_vec(action).ok()?;
        Some(self.keyring.seal(self.entropy.as_ref(), &place("action", attempt), &plain))
    }

    /// Opens the buyer's action of an attempt.
    pub fn open_action(&self, attempt: &payonce_core::attempt::Attempt) -> Result<Option<Action>, FlowFault> {
        let Some(sealed) = &attempt.action else { return Ok(None) };
        let plain = self.keyring.open(&place("action", attempt.id.as_str()), sealed)?;
        Ok(serde_json::from_slice(&plain).ok())
    }

    /// Seals the content of an attempt or refund for its place.
    pub fn seal_content(&self, id: &str, content: &[u8]) -> Sealed {
        self.keyring.seal(self.entropy.as_ref(), &place("content", id), content)
    }

    /// Opens it.
    pub fn open_content(&self, id: &str, sealed: &Sealed) -> Result<Vec<u8>, FlowFault> {
        Ok(self.keyring.open(&place("content", id), sealed)?)
    }

    /// Where a channel sends the notifications of an account.
    pub fn notify_url(&self, channel: &str, account: &str) -> String {
        format!("{}/webhooks/{channel}/{account}", self.public_url)
    }
}

fn place(what: &str, id: &str) -> String {
    format!("{what}/{id}")
}
