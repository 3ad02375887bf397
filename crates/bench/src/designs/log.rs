//! The physical limit of one machine: a claim and an answer are each appended to a file and flushed, together with whatever else waits.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;

use async_trait::async_trait;
use payonce::system::SystemEntropy;
use payonce_core::clock::random;
use tokio::sync::oneshot;

use super::{BODY, Run};

/// Entries of one flush.
const BATCH: usize = 256;

type Entry = (Vec<u8>, oneshot::Sender<()>);

pub(super) struct Log(mpsc::Sender<Entry>);

impl Log {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut file = File::create(path)?;
        let (queue, waiting) = mpsc::channel::<Entry>();
        std::thread::spawn(move || {
            while let Ok(first) = waiting.recv() {
                let mut batch = vec![first];
                batch.extend(waiting.try_iter().take(BATCH - 1));
                let bytes: Vec<u8> = batch.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
                if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
                    // Dropping the senders tells every waiting caller.
                    return;
                }
                for (_, done) in batch {
                    let _ = done.send(());
                }
            }
        });
        Ok(Self(queue))
    }

    async fn append(&self, bytes: Vec<u8>) -> anyhow::Result<()> {
        let (done, flushed) = oneshot::channel();
        self.0.send((bytes, done)).map_err(|_| anyhow::anyhow!("the log has ended"))?;
        Ok(flushed.await?)
    }
}

#[async_trait]
impl Run for Log {
    async fn one_key(&self) -> anyhow::Result<()> {
        let key: [u8; 48] = random(&SystemEntropy::default());
        self.append(key.to_vec()).await?;
        self.append(BODY.to_vec()).await
    }
}
