//! The writer of the access log: a thread of its own, so that a slow disk slows nobody down.
//!
//! Cores put records into a bounded queue and go on; when it is full the record is counted as lost.
//! The thread looks into the queue at fixed times instead of waiting to be woken, because waking a
//! thread takes a lock and a system call on the core of the visitor. When the disk is full or gone
//! it counts what is lost, warns once, and tries again with each batch; it never blocks a core.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;

use crate::access::{AccessRecord, LogFormat, RequestClass};
use crate::hand_over::HandOver;

/// How often the thread looks into the queue: a line is in the file a moment after its request.
const PERIOD: Duration = Duration::from_millis(50);

/// Records in the queue: 160,000 requests a second at one look in 50 ms, in some 5 MB.
const QUEUE_RECORDS: usize = 8192;

/// Bytes after which a batch is written even though the queue is not empty.
const BATCH_BYTES: usize = 256 * 1024;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// To nowhere; records are still collected for those whom they must be handed over to.
    Off,
    /// To standard output.
    Stdout,
    /// To the end of this file, which is opened anew when asked to.
    File(PathBuf),
}

/// The log could not be started.
#[derive(Debug, Error)]
pub enum AccessLogError {
    /// The file cannot be opened.
    #[error("cannot open the access log {path}: {cause}; check the folder and its permissions")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// No thread.
    #[error("cannot start the thread of the access log: {0}")]
    Thread(io::Error),
}

/// What the cores and the rest of the server hold of the log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AccessLog {
    queue: SyncSender<AccessRecord>,
    shared: Arc<Shared>,
}

/// The running thread. Ends by itself when the last [`AccessLog`] and sender are gone.
#[derive(Debug)]
pub struct AccessLogThread(JoinHandle<()>);

#[derive(Debug, Default)]
struct Shared {
    lost: AtomicU64,
    reopen: AtomicBool,
    hand_over: HandOver,
}

impl AccessLog {
    /// Opens the target and starts the thread.
    pub fn start(
        target: LogTarget,
        format: LogFormat,
    ) -> Result<(Self, AccessLogThread), AccessLogError> {
        let (queue, records) = sync_channel(QUEUE_RECORDS);
        let shared = Arc::new(Shared::default());
        let sink = Sink::open(&target).map_err(|cause| AccessLogError::Open {
            path: target.path(),
            cause,
        })?;
        let writer = Writer {
            records,
            shared: Arc::clone(&shared),
            target,
            format,
            sink,
            batch: Vec::new(),
            batch_lines: 0,
            troubled: false,
        };
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.run())
            .map_err(AccessLogError::Thread)?;
        Ok((Self { queue, shared }, AccessLogThread(thread)))
    }

    /// Puts `record` into the queue, or counts it as lost where the queue is full. Never waits.
    pub fn write(&self, record: AccessRecord) {
        match self.queue.try_send(record) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.note_lost(1),
        }
    }

    /// The queue itself, for who counts what does not fit with [`AccessLog::note_lost`].
    pub fn sender(&self) -> SyncSender<AccessRecord> {
        self.queue.clone()
    }

    /// Counts lines that did not come into the queue.
    pub fn note_lost(&self, lines: u64) {
        self.shared.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Lines lost since the start, with those of others that there was no room for.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed) + self.hand_over().left_out()
    }

    /// Opens the file anew before the next line, after it was moved away (SIGHUP).
    pub fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Release);
    }

    /// Lines of class [`RequestClass::Rescue`] that wait to be handed over to their origins.
    pub fn hand_over(&self) -> &HandOver {
        &self.shared.hand_over
    }
}

impl AccessLogThread {
    /// Waits until everything is written. Every [`AccessLog`] and sender must be dropped before, or
    /// this waits for ever.
    pub fn join(self) {
        // A panic of the thread is in the log already; there is nobody else to tell.
        let _ = self.0.join();
    }
}

impl LogTarget {
    fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Off | Self::Stdout => PathBuf::new(),
        }
    }
}

enum Sink {
    Off,
    Stdout(io::Stdout),
    File(File),
}

impl Sink {
    fn open(target: &LogTarget) -> io::Result<Self> {
        Ok(match target {
            LogTarget::Off => Self::Off,
            LogTarget::Stdout => Self::Stdout(io::stdout()),
            LogTarget::File(path) => {
                Self::File(OpenOptions::new().append(true).create(true).open(path)?)
            }
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Off => Ok(()),
            Self::Stdout(stdout) => stdout.write_all(bytes).and_then(|()| stdout.flush()),
            Self::File(file) => file.write_all(bytes),
        }
    }
}

struct Writer {
    records: Receiver<AccessRecord>,
    shared: Arc<Shared>,
    target: LogTarget,
    format: LogFormat,
    sink: Sink,
    batch: Vec<u8>,
    batch_lines: u64,
    troubled: bool,
}

impl Writer {
    fn run(mut self) {
        loop {
            match self.records.try_recv() {
                Ok(record) => self.add(&record),
                Err(TryRecvError::Empty) => {
                    self.flush();
                    std::thread::sleep(PERIOD);
                }
                Err(TryRecvError::Disconnected) => return self.flush(),
            }
        }
    }

    fn add(&mut self, record: &AccessRecord) {
        // What another server answered for us comes with its name and is not handed on.
        if record.class == RequestClass::Rescue && record.rescue_server.is_empty() {
            self.shared.hand_over.note(record);
        }
        record.render(self.format, &mut self.batch);
        self.batch_lines += 1;
        if self.batch.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.shared.reopen.swap(false, Ordering::Acquire) {
            match Sink::open(&self.target) {
                Ok(sink) => self.sink = sink,
                Err(error) => {
                    tracing::warn!(%error, "cannot reopen the access log; the old file goes on");
                }
            }
        }
        if self.batch.is_empty() {
            return;
        }
        match self.sink.write(&self.batch) {
            Ok(()) if self.troubled => {
                self.troubled = false;
                tracing::warn!(
                    lost = self.shared.lost.load(Ordering::Relaxed),
                    "the access log is written again"
                );
            }
            Ok(()) => {}
            Err(error) => self.lose(&error),
        }
        self.batch.clear();
        self.batch_lines = 0;
    }

    /// The batch may be in the file in part; all of it counts, so that the count never flatters.
    fn lose(&mut self, error: &io::Error) {
        self.shared
            .lost
            .fetch_add(self.batch_lines, Ordering::Relaxed);
        if !self.troubled {
            self.troubled = true;
            tracing::warn!(%error, "cannot write the access log; lines are lost until it can be written again");
        }
    }
}
