//! Compressing files beside the cores: one thread, a short queue, the result to every core.
//!
//! ```text
//!  core: file without a coding that its visitor takes ─▶ queue ─▶ thread ─▶ all cores
//!              │ meanwhile
//!              ▼
//!        the file as it is
//! ```
//!
//! No visitor waits for a compression, and none can make a core compress. What does not fit into
//! the queue is asked for again by a later visitor. A file that hardly shrinks is told as well, so
//! that nobody tries it again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use bytes::Bytes;

use super::coding::Coding;
use super::folder::{Folder, Stamp};
use super::table::Contents;

/// A file to be compressed.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The folder of the site: which table asked.
    pub folder: Arc<Folder>,
    /// The path as it stands in a URL.
    pub path: String,
    /// What the file looked like.
    pub stamp: Stamp,
    pub contents: Contents,
    pub coding: Coding,
}

/// What became of a job.
#[derive(Debug)]
pub(crate) struct Compressed {
    pub folder: Arc<Folder>,
    pub path: String,
    pub stamp: Stamp,
    pub coding: Coding,
    /// None where it is not worth it.
    pub body: Option<Bytes>,
}

/// Where jobs are given; all clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Compressor(SyncSender<Job>);

/// The thread's end, until it is started.
pub(crate) struct CompressorThread(Receiver<Job>);

/// Whether a job was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Yes,
    /// Too many wait already; ask again.
    Full,
}

/// Jobs that wait. Some hundred files are hot at once at most, and each is asked for again.
const QUEUE_MAX: usize = 64;
/// Results that are remembered for the cores that ask for the same a moment later.
const DONE_MAX: usize = 64;
/// Largest file that is compressed while it is asked for. Whoever has larger texts compresses them
/// beforehand.
pub(crate) const FILE_MAX: u64 = 4 << 20;
/// Smaller files fit into one packet with their head, compressed or not.
pub(crate) const FILE_MIN: u64 = 860;
/// Quality 9 is some twenty times faster than 11 and a few percent larger.
const BROTLI_QUALITY: u32 = 9;
/// RFC 9659: browsers refuse windows above 8 MB, which levels up to 19 keep to.
const ZSTD_LEVEL: i32 = 15;
const GZIP_LEVEL: u32 = 9;

impl Compressor {
    /// A queue, and the thread's end of it.
    pub fn new() -> (Self, CompressorThread) {
        let (jobs, inbox) = sync_channel(QUEUE_MAX);
        (Self(jobs), CompressorThread(inbox))
    }

    /// Puts a job into the queue, where there is room.
    pub fn ask(&self, job: Job) -> Queued {
        match self.0.try_send(job) {
            Ok(()) => Queued::Yes,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Queued::Full,
        }
    }
}

impl CompressorThread {
    /// Runs until every [`Compressor`] is gone; gives each result to `tell`.
    pub fn start(self, tell: impl Fn(Arc<Compressed>) + Send + 'static) -> io::Result<()> {
        let work = move || {
            let mut done: VecDeque<Arc<Compressed>> = VecDeque::new();
            for job in self.0 {
                let known = done.iter().find(|one| one.is_of(&job));
                let result = known.cloned().unwrap_or_else(|| Arc::new(compress(job)));
                tell(Arc::clone(&result));
                done.retain(|one| !Arc::ptr_eq(one, &result));
                done.push_back(result);
                done.drain(..done.len().saturating_sub(DONE_MAX));
            }
        };
        // Nobody joins it: it ends with the cores that ask it.
        thread::Builder::new()
            .name("compressor".to_owned())
            .spawn(work)
            .map(drop)
    }
}

impl Compressed {
    fn is_of(&self, job: &Job) -> bool {
        Arc::ptr_eq(&self.folder, &job.folder)
            && self.path == job.path
            && self.stamp == job.stamp
            && self.coding == job.coding
    }
}

fn compress(job: Job) -> Compressed {
    let body = match &job.contents {
        Contents::Memory(bytes) => encode(job.coding, bytes),
        Contents::Disk(file) => {
            read(file, job.stamp.size).and_then(|bytes| encode(job.coding, &bytes))
        }
    };
    // Only what saves a tenth is worth a second copy in memory, and the visitor's work.
    let worth = job.stamp.size - job.stamp.size / 10;
    let body = match body {
        Ok(body) if (body.len() as u64) < worth => Some(Bytes::from(body)),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, path = job.path, "cannot compress a file");
            None
        }
    };
    Compressed {
        folder: job.folder,
        path: job.path,
        stamp: job.stamp,
        coding: job.coding,
        body,
    }
}

fn read(file: &File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    // By place: the cores send from the same descriptor.
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn encode(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Brotli => {
            let mut out = brotli::CompressorWriter::new(Vec::new(), 32 * 1024, BROTLI_QUALITY, 22);
            out.write_all(bytes)?;
            out.flush()?;
            Ok(out.into_inner())
        }
        Coding::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        Coding::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
            out.write_all(bytes)?;
            out.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
            Coding::Zstd => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut out),
            Coding::Gzip => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
        }
        .unwrap();
        out
    }

    #[test]
    fn every_coding_can_be_undone() {
        let text = "the quick brown fox jumps over the lazy dog; ".repeat(500);
        for coding in Coding::ALL {
            let coded = encode(coding, text.as_bytes()).unwrap();
            assert!(coded.len() < text.len() / 10, "{coding}: {}", coded.len());
            assert_eq!(decode(coding, &coded), text.as_bytes(), "{coding}");
        }
    }

    #[test]
    fn what_does_not_shrink_is_told_as_such_and_a_known_result_is_told_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(Folder::open(place.path()).unwrap());
        // Digits of a linear congruence: nothing repeats.
        let noise: Vec<u8> = (0..4000_u64)
            .scan(1_u64, |state, _| {
                *state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                Some((*state >> 33) as u8)
            })
            .collect();
        std::fs::write(place.path().join("noise"), &noise).unwrap();
        let stamp = folder.stamp(b"noise").unwrap();
        let job = |coding| Job {
            folder: Arc::clone(&folder),
            path: "/noise".to_owned(),
            stamp,
            contents: Contents::Memory(noise.clone().into()),
            coding,
        };
        let (compressor, thread) = Compressor::new();
        let (told, results) = std::sync::mpsc::channel();
        thread
            .start(move |result| told.send(result).unwrap())
            .unwrap();
        assert_eq!(compressor.ask(job(Coding::Gzip)), Queued::Yes);
        assert_eq!(compressor.ask(job(Coding::Gzip)), Queued::Yes);
        drop(compressor);
        let first = results.recv().unwrap();
        assert!(first.body.is_none());
        assert!(Arc::ptr_eq(&first, &results.recv().unwrap()));
        assert!(results.recv().is_err(), "the thread has ended");
    }
}
