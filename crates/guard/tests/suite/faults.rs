//! A store that fails on demand: before it acts, after it acted, late, for one key, or altogether.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use payonce_core::clock::Timestamp;
use payonce_core::id::TenantId;
use payonce_core::ports::StoreFault;
use payonce_core::ports::records::{NewClaim, Records, Seen, TakeOver, Verb, Write, Written};
use payonce_core::record::{ClaimId, Fence, Record, RecordKey};
use tokio::sync::Semaphore;

#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Turned away: nothing happens.
    Before(StoreFault),
    /// Applied, and the answer is lost.
    After(StoreFault),
    /// Reported lost, and applied only when the store is next asked to do the same kind of thing.
    Late,
    /// Never answers.
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Claim,
    Write,
    Read,
    TakeOver,
}

pub(crate) struct Faulty {
    inner: Arc<dyn Records>,
    planned: Mutex<HashMap<Call, VecDeque<Fault>>>,
    late_claims: Mutex<Vec<Vec<NewClaim>>>,
    late_writes: Mutex<Vec<Vec<Write>>>,
    /// Batches that hold this key are refused.
    poison: Mutex<Option<RecordKey>>,
    down: AtomicBool,
    writes_down: AtomicBool,
    /// Permits for claim and write batches: with none left they wait.
    gate: HashMap<Call, Semaphore>,
    /// The batches as they came: their keys.
    log: Mutex<Vec<(Call, Vec<String>)>>,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Records>) -> Arc<Self> {
        let open = || Semaphore::new(Semaphore::MAX_PERMITS / 2);
        Arc::new(Self {
            inner,
            planned: Mutex::default(),
            late_claims: Mutex::default(),
            late_writes: Mutex::default(),
            poison: Mutex::default(),
            down: AtomicBool::new(false),
            writes_down: AtomicBool::new(false),
            gate: HashMap::from([(Call::Claim, open()), (Call::Write, open()), (Call::Read, open())]),
            log: Mutex::default(),
        })
    }

    pub(crate) fn plan(&self, call: Call, fault: Fault) {
        self.planned.lock().unwrap().entry(call).or_default().push_back(fault);
    }

    pub(crate) fn poison(&self, key: &RecordKey) {
        *self.poison.lock().unwrap() = Some(key.clone());
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    pub(crate) fn set_writes_down(&self, down: bool) {
        self.writes_down.store(down, Ordering::SeqCst);
    }

    /// Lets no batch of this kind pass until [`Self::open`].
    pub(crate) fn shut(&self, call: Call) {
        self.gate[&call].forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn open(&self, call: Call) {
        self.gate[&call].add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// The sizes of the batches of this kind.
    pub(crate) fn batches(&self, call: Call) -> Vec<usize> {
        self.log.lock().unwrap().iter().filter(|(kind, _)| *kind == call).map(|(_, keys)| keys.len()).collect()
    }

    pub(crate) fn logged(&self, call: Call) -> Vec<Vec<String>> {
        self.log.lock().unwrap().iter().filter(|(kind, _)| *kind == call).map(|(_, keys)| keys.clone()).collect()
    }

    /// Waits at the gate, then says what is planned for this call.
    async fn enter(&self, call: Call, keys: Vec<String>) -> Result<Option<Fault>, StoreFault> {
        self.log.lock().unwrap().push((call, keys));
        if let Some(gate) = self.gate.get(&call) {
            let _pass = gate.acquire().await.unwrap();
        }
        if self.down.load(Ordering::SeqCst) || (call == Call::Write && self.writes_down.load(Ordering::SeqCst)) {
            return Err(StoreFault::Unavailable("down".to_owned()));
        }
        let fault = self.planned.lock().unwrap().get_mut(&call).and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::Before(fault)) => Err(fault),
            Some(Fault::Hang) => std::future::pending().await,
            other => Ok(other),
        }
    }

    fn poisoned<'a>(&self, keys: impl Iterator<Item = &'a RecordKey>) -> Result<(), StoreFault> {
        let poison = self.poison.lock().unwrap().clone();
        match poison {
            Some(poison) if keys.into_iter().any(|key| *key == poison) => Err(StoreFault::Refused("bad row".to_owned())),
            _ => Ok(()),
        }
    }
}

fn lost() -> StoreFault {
    StoreFault::Ambiguous("connection reset".to_owned())
}

#[async_trait]
impl Records for Faulty {
    async fn claim(&self, rows: &[NewClaim]) -> Result<Vec<Seen>, StoreFault> {
        let planned = self.enter(Call::Claim, rows.iter().map(|r| r.key.key.to_string()).collect()).await?;
        let late = std::mem::take(&mut *self.late_claims.lock().unwrap());
        for batch in late {
            self.inner.claim(&batch).await?;
        }
        self.poisoned(rows.iter().map(|row| &row.key))?;
        match planned {
            Some(Fault::Late) => {
                self.late_claims.lock().unwrap().push(rows.to_vec());
                Err(lost())
            }
            Some(Fault::After(fault)) => self.inner.claim(rows).await.and(Err(fault)),
            _ => self.inner.claim(rows).await,
        }
    }

    async fn take_over(&self, row: &TakeOver) -> Result<Option<Fence>, StoreFault> {
        match self.enter(Call::TakeOver, vec![row.key.key.to_string()]).await? {
            Some(Fault::After(fault)) => self.inner.take_over(row).await.and(Err(fault)),
            _ => self.inner.take_over(row).await,
        }
    }

    async fn park_lapsed(&self, key: &RecordKey, seen_claim: ClaimId, seen_fence: Fence) -> Result<Written, StoreFault> {
        if self.down.load(Ordering::SeqCst) {
            return Err(StoreFault::Unavailable("down".to_owned()));
        }
        self.inner.park_lapsed(key, seen_claim, seen_fence).await
    }

    async fn write(&self, rows: &[Write]) -> Result<Vec<Written>, StoreFault> {
        let named = |row: &Write| {
            let verb = match row.verb {
                Verb::Renew(_) => "renew",
                Verb::Keep(_) => "keep",
                Verb::Release => "release",
                Verb::Park(_) => "park",
            };
            format!("{verb} {}", row.key.key)
        };
        let planned = self.enter(Call::Write, rows.iter().map(named).collect()).await?;
        let late = std::mem::take(&mut *self.late_writes.lock().unwrap());
        for batch in late {
            self.inner.write(&batch).await?;
        }
        self.poisoned(rows.iter().map(|row| &row.key))?;
        match planned {
            Some(Fault::Late) => {
                self.late_writes.lock().unwrap().push(rows.to_vec());
                Err(lost())
            }
            Some(Fault::After(fault)) => self.inner.write(rows).await.and(Err(fault)),
            _ => self.inner.write(rows).await,
        }
    }

    async fn read(&self, keys: &[RecordKey]) -> Result<(Vec<Option<Record>>, Timestamp), StoreFault> {
        self.enter(Call::Read, keys.iter().map(|key| key.key.to_string()).collect()).await?;
        self.inner.read(keys).await
    }

    async fn find(&self, tenant: &TenantId, key: Option<&str>, limit: usize) -> Result<Vec<Record>, StoreFault> {
        self.inner.find(tenant, key, limit).await
    }

    async fn remove_stuck(&self, key: &RecordKey) -> Result<Written, StoreFault> {
        self.inner.remove_stuck(key).await
    }

    async fn sweep_records(&self, limit: usize) -> Result<usize, StoreFault> {
        self.inner.sweep_records(limit).await
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}
