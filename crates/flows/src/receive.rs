//! Receive: untouched bytes become inbox rows, after the signature is checked and before the channel is told so (I6).
//!
//! In: the raw request of `POST /webhooks/{channel}/{account}`. Out: the channel's own acknowledgement or refusal. Never: a look-up of
//! anything of ours before the signature is checked; a trace of an unverified message.

use payonce_channels::contract::Acknowledgement;
use payonce_core::channel::{AccountName, ChannelName};
use payonce_core::id::InboxId;
use payonce_core::notification::{RawRequest, Rejection, Verified};
use payonce_failpoint as failpoint;
use serde_json::json;

use crate::ledger::{FlowFault, Ledger};

/// What came of a delivery.
#[derive(Clone, Debug)]
pub enum Received {
    /// Stored (or stored before): the channel may forget it.
    Stored {
        /// What the channel is told.
        answer: Acknowledgement,
        /// How many of its events are new.
        new: usize,
    },
    /// Refused: not authentic. Nothing is stored.
    Refused {
        /// What the channel is told.
        answer: Acknowledgement,
        /// Why.
        why: Rejection,
    },
    /// Could not be stored: the channel is to send it again.
    Later {
        /// What the channel is told.
        answer: Acknowledgement,
        /// Why.
        why: FlowFault,
    },
    /// There is no such account on this channel.
    NoAccount,
}

impl Ledger {
    /// Takes a delivery.
    pub async fn receive(&self, channel: &ChannelName, name: &AccountName, raw: &RawRequest) -> Result<Received, FlowFault> {
        let Some(account) = self.accounts.named(name).await?.filter(|account| &account.channel == channel) else {
            return Ok(Received::NoAccount);
        };
        let now = self.now();
        let verified = match Verified::by(account.account.as_ref(), raw, now) {
            Ok(verified) => verified,
            Err(why) => return Ok(Received::Refused { answer: account.account.refuse(&why), why }),
        };
        let ids: Vec<InboxId> = verified.events().iter().map(|_| InboxId::new(self.clock.as_ref(), self.entropy.as_ref())).collect();
        // Kept for disputes: what was received, as it was received.
        let headers: Vec<(&str, String)> =
            raw.headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value).into_owned())).collect();
        let body = payonce_core::secret::Sealed::from_bytes(raw.body.clone());
        let kept = json!({ "method": raw.method, "path": raw.path_and_query, "headers": headers, "body": body }).to_string();
        let sealed = self.keyring.seal(self.entropy.as_ref(), &format!("inbox/{name}"), kept.as_bytes());
        match self.store.receive(&account.tenant, channel, name, &verified, &sealed, &ids, now).await {
            Ok(new) => {
                failpoint::hit("inbox.stored").await;
                if !new.is_empty() {
                    self.wake.settle.notify_one();
                }
                Ok(Received::Stored { answer: account.account.acknowledge(), new: new.len() })
            }
            Err(why) => Ok(Received::Later { answer: account.account.try_again(), why: why.into() }),
        }
    }
}
