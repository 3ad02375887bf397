//! A channel request's way through the sandbox: recognised, counted, met by its fault, executed, answered.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use payonce_channels::books::{Draft, Finish, Notice, Recognised, Refused, Side, SideAccount, SideReply};
use payonce_core::clock::Timestamp;
use payonce_core::notification::RawRequest;

use crate::Options;
use crate::clock::Moved;
use crate::delivery::{self, Delivery, Mode};
use crate::faults::{Fault, Faults, Kind};
use crate::ledger::{Arrival, Chance, Desk, Ledger, Row, Shelf};

/// What becomes of a connection.
#[derive(Debug)]
pub(crate) enum Answer {
    /// An answer.
    Reply(SideReply),
    /// None: the connection is closed.
    Close,
    /// None: the connection is reset.
    Reset,
}

/// Everything that one sandbox holds.
pub(crate) struct Shared {
    sides: Vec<Box<dyn Side>>,
    state: Mutex<State>,
    base_url: String,
    auto_pay: bool,
    seed: u64,
    pub(crate) clock: Moved,
    pub(crate) delivery: Delivery,
}

/// What is true. Whoever holds the lock sees no half-done step.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ledger: Ledger,
    pub(crate) faults: Faults,
    shelves: Vec<Shelf>,
    chance: Chance,
    /// Counts resets: what was begun before one must not be executed after it.
    epoch: u64,
}

impl State {
    fn new(sides: usize, seed: u64, epoch: u64) -> Self {
        Self {
            ledger: Ledger::default(),
            faults: Faults::default(),
            shelves: (0..sides).map(|_| Shelf::new()).collect(),
            chance: Chance(seed),
            epoch,
        }
    }
}

impl Shared {
    pub(crate) fn new(sides: Vec<Box<dyn Side>>, options: Options, base_url: String) -> Self {
        Self {
            state: Mutex::new(State::new(sides.len(), options.seed, 0)),
            sides,
            base_url,
            auto_pay: options.auto_pay,
            seed: options.seed,
            clock: Moved::new(options.clock),
            delivery: Delivery::new(options.notify_allowed),
        }
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn accounts(&self) -> Vec<SideAccount> {
        self.sides.iter().flat_map(|side| side.accounts(&self.base_url)).collect()
    }

    pub(crate) fn ledger(&self) -> Vec<Row> {
        self.state().ledger.rows().to_vec()
    }

    pub(crate) fn channels(&self) -> Vec<&'static str> {
        self.sides.iter().map(|side| side.channel()).collect()
    }

    pub(crate) fn side(&self, channel: &str) -> Option<&dyn Side> {
        self.sides.iter().find(|side| side.channel() == channel).map(AsRef::as_ref)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a side work in its books, as one step. The answer comes with what it wants told.
    pub(crate) fn at_desk<T>(
        &self,
        state: &mut State,
        side: &dyn Side,
        pays_at_once: bool,
        work: impl FnOnce(&mut Desk<'_>) -> T,
    ) -> (T, Vec<Notice>) {
        let mut nothing = Shelf::new();
        let place = self.sides.iter().position(|known| known.channel() == side.channel());
        let shelf = place.and_then(|place| state.shelves.get_mut(place)).unwrap_or(&mut nothing);
        let mut desk = Desk {
            channel: side.channel(),
            shelf,
            ledger: &mut state.ledger,
            chance: &mut state.chance,
            now: self.clock.now(),
            base_url: &self.base_url,
            pays_at_once,
            notices: Vec::new(),
        };
        let done = work(&mut desk);
        (done, desk.notices)
    }

    /// Does what the passing of time does at every channel.
    pub(crate) async fn tick(self: &Arc<Self>) {
        for side in &self.sides {
            let ((), notices) = self.at_desk(&mut self.state(), side.as_ref(), false, |desk| side.tick(desk));
            delivery::take_in(self, side.channel(), notices, false).await;
        }
    }

    /// When a channel has something to do next.
    pub(crate) fn wakes_at(&self) -> Option<Timestamp> {
        let mut state = self.state();
        self.sides.iter().filter_map(|side| self.at_desk(&mut state, side.as_ref(), false, |desk| side.wakes_at(desk)).0).min()
    }

    /// As at the start, but for the seed's use of time.
    pub(crate) fn reset(&self) {
        {
            let mut state = self.state();
            *state = State::new(self.sides.len(), self.seed, state.epoch + 1);
        }
        self.delivery.outbox().reset();
        self.clock.reset();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({}, {:?})", self.base_url, self.channels())
    }
}

/// A request that is being handled.
struct Handling {
    side: &'static str,
    request: Recognised,
    arrival: u64,
    epoch: u64,
}

/// Handles a request to a channel. `None` where no channel has the path.
pub(crate) async fn handle(shared: &Arc<Shared>, raw: RawRequest) -> Option<Answer> {
    let first = raw.path_and_query.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    let side = shared.side(first)?;
    let (handling, fault) = match side.recognise(&raw) {
        Err(reply) => {
            let mut arrival = arrival(shared, side, &raw, None);
            arrival.status = Some(reply.status);
            shared.state().ledger.arrive(arrival);
            return Some(Answer::Reply(reply));
        }
        Ok(request) => enter(shared, side, &raw, request)?,
    };
    let answer = meet(shared, side, &handling, fault).await;
    let status = match &answer {
        Answer::Reply(reply) => Some(reply.status),
        Answer::Close | Answer::Reset => None,
    };
    if let Some(arrival) = shared.state().ledger.arrival(handling.arrival) {
        arrival.status = status;
    }
    Some(answer)
}

/// Completes and counts a request, and finds the fault that it meets. One step.
fn enter(shared: &Arc<Shared>, side: &dyn Side, raw: &RawRequest, mut request: Recognised) -> Option<(Handling, Option<Fault>)> {
    let mut state = shared.state();
    shared.at_desk(&mut state, side, false, |desk| side.resolve(desk, &mut request));
    let fault = state.faults.take(side.channel(), &request);
    let refused = fault.as_ref().is_some_and(|fault| fault.fault == Kind::RefuseConnection);
    let mut arrival = arrival(shared, side, raw, Some(&request));
    arrival.fault = fault.as_ref().map(|fault| fault.fault);
    let now = shared.clock.now();
    if !refused {
        // A refused connection counts as if nothing had been read.
        state.ledger.count(side.channel(), &request, now);
    }
    let arrival = if refused { 0 } else { state.ledger.arrive(arrival) };
    let epoch = state.epoch;
    Some((Handling { side: side.channel(), request, arrival, epoch }, fault))
}

fn arrival(shared: &Shared, side: &dyn Side, raw: &RawRequest, request: Option<&Recognised>) -> Arrival {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Arrival {
        number: 0,
        at: shared.clock.now().to_string(),
        channel: side.channel(),
        account: request.map(|request| request.account.clone()).filter(|account| !account.is_empty()),
        operation: request.and_then(|request| request.operation),
        channel_ref: request.and_then(|request| request.channel_ref.clone()),
        order_ref: request.and_then(|request| request.order_ref.clone()),
        method: raw.method.clone(),
        path_and_query: raw.path_and_query.clone(),
        headers: raw.headers.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        body: text(&raw.body),
        content: request.map(|request| request.content.clone()).unwrap_or_default(),
        fault: None,
        executed: false,
        status: None,
    }
}

async fn meet(shared: &Arc<Shared>, side: &dyn Side, handling: &Handling, fault: Option<Fault>) -> Answer {
    let request = &handling.request;
    let plain = |draft: Draft| Answer::Reply(side.finish(request, draft, Finish::Plain));
    let Some(fault) = fault else {
        return execute(shared, side, handling).await.map_or(Answer::Close, plain);
    };
    match fault.fault {
        Kind::RefuseConnection => Answer::Reset,
        Kind::DropRequest => Answer::Close,
        Kind::RateLimited => plain(side.refuse(request, Refused::RateLimited)),
        Kind::InProgress => plain(side.refuse(request, Refused::InProgress)),
        Kind::Declined => plain(side.refuse(request, Refused::Declined)),
        Kind::ErrorBefore => plain(fail(shared, side, request, None)),
        Kind::Delay => {
            tokio::time::sleep(fault.delay()).await;
            execute(shared, side, handling).await.map_or(Answer::Close, plain)
        }
        Kind::DropResponse
        | Kind::DelayResponse
        | Kind::ErrorAfter
        | Kind::Malformed
        | Kind::Empty
        | Kind::BadSignature
        | Kind::Awkward => match execute(shared, side, handling).await {
            None => Answer::Close,
            Some(draft) => spoil(shared, side, request, draft, &fault).await,
        },
    }
}

/// The faults of what was executed.
async fn spoil(shared: &Arc<Shared>, side: &dyn Side, request: &Recognised, draft: Draft, fault: &Fault) -> Answer {
    let finish = |draft, how| side.finish(request, draft, how);
    match fault.fault {
        Kind::ErrorAfter => {
            let failed = fail(shared, side, request, Some(&draft));
            Answer::Reply(finish(failed, Finish::Plain))
        }
        Kind::Malformed => {
            let mut reply = finish(draft, Finish::Plain);
            reply.body.truncate(reply.body.len() / 2);
            reply.body.extend_from_slice(b"<\xff{");
            Answer::Reply(reply)
        }
        Kind::Empty => {
            let mut reply = finish(draft, Finish::Plain);
            reply.body.clear();
            Answer::Reply(reply)
        }
        Kind::BadSignature => Answer::Reply(finish(draft, Finish::BadSignature)),
        Kind::Awkward => Answer::Reply(finish(draft, Finish::Awkward)),
        Kind::DelayResponse => {
            let reply = finish(draft, Finish::Plain);
            tokio::time::sleep(fault.delay()).await;
            Answer::Reply(reply)
        }
        Kind::DropResponse
        | Kind::RefuseConnection
        | Kind::DropRequest
        | Kind::RateLimited
        | Kind::InProgress
        | Kind::Declined
        | Kind::ErrorBefore
        | Kind::Delay => Answer::Close,
    }
}

fn fail(shared: &Arc<Shared>, side: &dyn Side, request: &Recognised, executed: Option<&Draft>) -> Draft {
    shared.at_desk(&mut shared.state(), side, false, |desk| side.fail(desk, request, executed)).0
}

/// Executes as one step, and hands over what is to be told. `None` where everything was reset meanwhile.
async fn execute(shared: &Arc<Shared>, side: &dyn Side, handling: &Handling) -> Option<Draft> {
    let request = &handling.request;
    let early =
        request.channel_ref.as_ref().is_some_and(|reference| shared.delivery.outbox().mode(side.channel(), reference) == Mode::Early);
    let (draft, notices) = {
        let mut state = shared.state();
        if state.epoch != handling.epoch {
            return None;
        }
        if let Some(arrival) = state.ledger.arrival(handling.arrival) {
            arrival.executed = true;
        }
        shared.at_desk(&mut state, side, shared.auto_pay || early, |desk| side.execute(desk, request))
    };
    delivery::take_in(shared, handling.side, notices, true).await;
    Some(draft)
}

/// For how long a fault may make a request wait.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(600);
