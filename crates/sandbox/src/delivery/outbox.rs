//! The list of notices and where each stands.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use payonce_channels::books::Notice;
use payonce_core::clock::Timestamp;
use serde::Serialize;

use super::{Delivered, Mode, due_again};

/// Where a notice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Being sent, or due at `next_at`.
    Waiting,
    /// Kept back by `hold`.
    Held,
    /// Lost by `drop`.
    Dropped,
    /// Acknowledged.
    Acknowledged,
    /// The schedule is over.
    GivenUp,
}

/// A notice and its deliveries.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Item {
    pub(crate) number: u64,
    pub(crate) channel: &'static str,
    pub(crate) account: String,
    pub(crate) channel_ref: String,
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) standing: Standing,
    pub(crate) next_at: Option<String>,
    pub(crate) deliveries: Vec<Delivered>,
    #[serde(skip)]
    notice: Notice,
    #[serde(skip)]
    tries: usize,
    #[serde(skip)]
    due: Option<Timestamp>,
}

/// All notices, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    items: Vec<Item>,
    /// The number of the first item. A reset goes on counting, so that a delivery that was begun before it ends nothing after it.
    first: u64,
    of: HashMap<(&'static str, String), Vec<u64>>,
    due: BTreeSet<(Timestamp, u64)>,
    modes: BTreeMap<(&'static str, Option<String>), Mode>,
}

impl Outbox {
    /// The mode of a reference, else of its whole channel, else immediate delivery.
    pub(crate) fn mode(&self, channel: &'static str, channel_ref: &str) -> Mode {
        let own = self.modes.get(&(channel, Some(channel_ref.to_owned())));
        *own.or_else(|| self.modes.get(&(channel, None))).unwrap_or(&Mode::Deliver)
    }

    /// Sets the mode of a reference, or of the whole channel (which forgets those of its references).
    pub(crate) fn set_mode(&mut self, channel: &'static str, channel_ref: Option<&str>, mode: Mode) {
        if channel_ref.is_none() {
            self.modes.retain(|(other, _), _| *other != channel);
        }
        self.modes.insert((channel, channel_ref.map(str::to_owned)), mode);
    }

    pub(crate) fn add(&mut self, channel: &'static str, notice: Notice) -> u64 {
        let number = self.next_number();
        self.of.entry((channel, notice.order_ref.clone())).or_default().push(number);
        self.items.push(Item {
            number,
            channel,
            account: notice.account.clone(),
            channel_ref: notice.order_ref.clone(),
            kind: notice.kind.clone(),
            id: notice.id.clone(),
            url: notice.url.clone(),
            standing: Standing::Waiting,
            next_at: None,
            deliveries: Vec::new(),
            notice,
            tries: 0,
            due: None,
        });
        number
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self { first: self.next_number(), ..Self::default() };
    }

    fn next_number(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.items.len()).unwrap_or(u64::MAX))
    }

    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn item(&mut self, number: u64) -> Option<&mut Item> {
        let place = self.place(number)?;
        self.items.get_mut(place)
    }

    pub(crate) fn notice(&self, number: u64) -> Option<(&'static str, Notice)> {
        self.items.get(self.place(number)?).map(|item| (item.channel, item.notice.clone()))
    }

    pub(crate) fn stand(&mut self, number: u64, standing: Standing) {
        let Some(item) = self.item(number) else { return };
        item.standing = standing;
        item.next_at = None;
        if let Some(due) = item.due.take() {
            self.due.remove(&(due, number));
        }
    }

    /// A delivery begins: it is not due meanwhile.
    pub(crate) fn begin(&mut self, number: u64) {
        if self.item(number).is_some_and(|item| item.standing != Standing::Acknowledged) {
            self.stand(number, Standing::Waiting);
        }
    }

    /// A delivery has ended.
    pub(crate) fn end(&mut self, number: u64, done: &Delivered, genuine: bool, gaps: &[Duration], now: Timestamp) {
        let Some(item) = self.item(number) else { return };
        item.deliveries.push(done.clone());
        if !genuine || item.standing != Standing::Waiting {
            // Held or dropped meanwhile, or acknowledged before: nothing follows from this delivery but an acknowledgement.
            if genuine && done.acknowledged {
                item.standing = Standing::Acknowledged;
            }
            return;
        }
        item.tries += 1;
        if done.acknowledged {
            item.standing = Standing::Acknowledged;
            return;
        }
        match due_again(item.tries, gaps, now) {
            None => item.standing = Standing::GivenUp,
            Some(at) => {
                item.due = Some(at);
                item.next_at = Some(at.to_string());
                self.due.insert((at, number));
            }
        }
    }

    /// Notices of a reference (or of the whole channel), oldest first.
    pub(crate) fn about(&self, channel: &'static str, channel_ref: Option<&str>) -> Vec<&Item> {
        match channel_ref {
            Some(reference) => {
                let numbers = self.of.get(&(channel, reference.to_owned())).map(Vec::as_slice).unwrap_or_default();
                numbers.iter().filter_map(|number| self.items.get(self.place(*number)?)).collect()
            }
            None => self.items.iter().filter(|item| item.channel == channel).collect(),
        }
    }

    /// Those of them that are not acknowledged.
    pub(crate) fn outstanding(&self, channel: &'static str, channel_ref: Option<&str>) -> Vec<u64> {
        let open = |item: &&Item| match item.standing {
            Standing::Waiting | Standing::Held | Standing::Dropped | Standing::GivenUp => true,
            Standing::Acknowledged => false,
        };
        self.about(channel, channel_ref).into_iter().filter(open).map(|item| item.number).collect()
    }

    /// Those of them that are kept back.
    pub(crate) fn held(&self, channel: &'static str, channel_ref: Option<&str>) -> Vec<u64> {
        self.about(channel, channel_ref).into_iter().filter(|item| item.standing == Standing::Held).map(|item| item.number).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// What is due by now; it is not due any more.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<u64> {
        let mut taken = Vec::new();
        while let Some((at, number)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, number));
            if let Some(item) = self.item(number) {
                item.due = None;
                item.next_at = None;
            }
            taken.push(number);
        }
        taken
    }

    pub(crate) fn modes(&self) -> impl Iterator<Item = (&'static str, Option<&str>, Mode)> {
        self.modes.iter().map(|((channel, reference), mode)| (*channel, reference.as_deref(), *mode))
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(order_ref: &str) -> Notice {
        Notice {
            account: "alipay".to_owned(),
            order_ref: order_ref.to_owned(),
            kind: "paid".to_owned(),
            id: "1".to_owned(),
            url: "http://127.0.0.1/".to_owned(),
            content: serde_json::Value::Null,
        }
    }

    fn answered(acknowledged: bool) -> Delivered {
        Delivered { at: String::new(), variant: "genuine", status: Some(200), body: None, acknowledged, error: None }
    }

    #[test]
    fn a_notice_is_due_again_by_the_schedule_until_it_is_acknowledged_or_given_up() {
        let gaps = [Duration::from_secs(4), Duration::from_secs(10)];
        let mut outbox = Outbox::default();
        let number = outbox.add("alipay", notice("a"));
        let mut now = Timestamp(0);
        for gap in gaps {
            outbox.begin(number);
            outbox.end(number, &answered(false), true, &gaps, now);
            assert_eq!(outbox.next_due(), Some(now.plus(gap)));
            assert_eq!(outbox.take_due(now), Vec::<u64>::new());
            now = now.plus(gap);
            assert_eq!(outbox.take_due(now), vec![number]);
        }
        outbox.begin(number);
        outbox.end(number, &answered(false), true, &gaps, now);
        assert_eq!(outbox.next_due(), None);
        assert_eq!(outbox.outstanding("alipay", Some("a")), vec![number]);
        outbox.begin(number);
        outbox.end(number, &answered(true), true, &gaps, now);
        assert_eq!(outbox.outstanding("alipay", None), Vec::<u64>::new());
    }

    #[test]
    fn a_spoilt_delivery_acknowledges_nothing() {
        let mut outbox = Outbox::default();
        let number = outbox.add("alipay", notice("a"));
        outbox.end(number, &answered(true), false, &[], Timestamp(0));
        assert_eq!(outbox.outstanding("alipay", Some("a")), vec![number]);
    }

    #[test]
    fn the_mode_of_a_reference_wins_over_its_channel_s() {
        let mut outbox = Outbox::default();
        outbox.set_mode("alipay", Some("a"), Mode::Drop);
        assert_eq!((outbox.mode("alipay", "a"), outbox.mode("alipay", "b")), (Mode::Drop, Mode::Deliver));
        outbox.set_mode("alipay", None, Mode::Hold);
        assert_eq!((outbox.mode("alipay", "a"), outbox.mode("alipay", "b")), (Mode::Hold, Mode::Hold));
    }
}
