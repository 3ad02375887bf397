//! Kept answers in memory, so that a replay costs no store call.
//!
//! An answered record never changes until it expires, so a copy of it cannot be wrong before then. What is not here, or is here for
//! another request, is asked of the store: the cache only ever says "the same request was answered so". Bounded by bytes; the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use payonce_core::record::RecordKey;
use payonce_core::secret::{KeyedDigest, equal_in_constant_time};
use tokio::time::Instant;

use crate::answer::Answer;

pub(crate) struct Cache {
    max_bytes: usize,
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    bytes: usize,
    /// In the order in which they were put, with the serial number of that time.
    order: VecDeque<(u64, RecordKey)>,
    serial: u64,
    entries: HashMap<RecordKey, Entry>,
}

struct Entry {
    serial: u64,
    bytes: usize,
    digest: KeyedDigest,
    answer: Answer,
    until: Instant,
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, shelf: Mutex::default() }
    }

    /// The kept answer of the same request, if it is here and has not expired.
    pub(crate) fn look(&self, key: &RecordKey, digest: &KeyedDigest) -> Option<Answer> {
        if self.max_bytes == 0 {
            return None;
        }
        let shelf = self.shelf();
        let entry = shelf.entries.get(key)?;
        let same = entry.digest.key_id == digest.key_id && equal_in_constant_time(&entry.digest.digest, &digest.digest);
        (same && Instant::now() < entry.until).then(|| entry.answer.clone())
    }

    /// Puts a kept answer that surely holds until `until`.
    pub(crate) fn put(&self, key: &RecordKey, digest: &KeyedDigest, answer: &Answer, until: Instant) {
        let headers: usize = answer.headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        let bytes = 512 + 2 * key.scope.len() + headers + answer.body.len();
        if bytes > self.max_bytes {
            return;
        }
        let mut shelf = self.shelf();
        shelf.serial += 1;
        let serial = shelf.serial;
        // The body may be a slice of a larger buffer, which would be held whole.
        let answer = Answer { body: bytes::Bytes::copy_from_slice(&answer.body), ..answer.clone() };
        shelf.remove(key);
        shelf.bytes += bytes;
        shelf.order.push_back((serial, key.clone()));
        shelf.entries.insert(key.clone(), Entry { serial, bytes, digest: digest.clone(), answer, until });
        while shelf.bytes > self.max_bytes
            && let Some((serial, oldest)) = shelf.order.pop_front()
        {
            // An entry that was put again stands further behind under a newer number.
            if shelf.entries.get(&oldest).is_some_and(|entry| entry.serial == serial) {
                shelf.remove(&oldest);
            }
        }
        // Numbers without an entry would pile up where the same keys are put again and again.
        if shelf.order.len() > 2 * shelf.entries.len() + 64 {
            let Shelf { order, entries, .. } = &mut *shelf;
            order.retain(|(serial, key)| entries.get(key).is_some_and(|entry| entry.serial == *serial));
        }
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn remove(&mut self, key: &RecordKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} of {} bytes)", self.shelf().bytes, self.max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use payonce_core::id::TenantId;
    use payonce_core::key::IdempotencyKey;
    use payonce_core::secret::Keyring;

    use super::*;

    fn key(n: usize) -> RecordKey {
        RecordKey {
            tenant: TenantId::parse("m1").expect("a tenant"),
            scope: "POST /".to_owned(),
            key: IdempotencyKey::parse(&format!("k{n}")).expect("a key"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_answers_the_same_request_only_until_it_expires_and_stays_within_its_bytes() {
        let ring = Keyring::new(&[[1; 32]]).expect("a ring");
        let (one, two) = (ring.digest(b"one"), ring.digest(b"two"));
        let answer = Answer::new(200, "text/plain", vec![b'x'; 1000]);
        let cache = Cache::new(10_000);
        let until = Instant::now() + Duration::from_secs(10);
        for n in 0..1000 {
            cache.put(&key(n), &one, &answer, until);
            cache.put(&key(n), &one, &answer, until);
            assert!(cache.shelf().bytes <= 10_000 && cache.shelf().order.len() < 100);
        }
        assert_eq!(cache.look(&key(999), &one), Some(answer.clone()));
        assert_eq!(cache.look(&key(999), &two), None, "another request is for the store to refuse");
        assert_eq!(cache.look(&key(0), &one), None);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(cache.look(&key(999), &one), None);
        let off = Cache::new(0);
        off.put(&key(1), &one, &answer, Instant::now() + Duration::from_secs(10));
        assert_eq!(off.look(&key(1), &one), None);
    }
}
