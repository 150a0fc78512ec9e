//! Signs what goes to our rescue servers (M3): with each whole response that one of them fetches go
//! its digest and our signature over it, so that they, their visitors and other members can tell
//! whether it is what we published.
//!
//! ```text
//!  a fetch ─▶ digest known? ─▶ yes: sign, 3 lines more in the head
//!                 │ no
//!                 ├─ short: make it now
//!                 └─ long: a thread beside the cores makes it; until then unsigned
//! ```
//!
//! The digest of an object is made once and kept beside it. The signature is made for each fetch:
//! it says until when it holds, and an object leaves us about once in its lifetime. Visitors' own
//! requests are not signed and cost nothing. What streams from an application has no digest when
//! its head goes out, and is signed when it is asked for again, from our cache; what is never kept
//! is never signed, and no rescue server keeps it either.
//!
//! The secret key is not here: whoever makes a publisher brings what signs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{Context, SHA256, digest};
use levee_wire::{Digest, Published, Validity};

use crate::cache::{Body, Stored};
use crate::files::{Contents, FileEntry};

/// What signs: bytes in, Ed25519 signature out.
pub type Sign = Arc<dyn Fn(&[u8]) -> [u8; 64] + Send + Sync>;

/// See the file header. All clones of its `Arc` are one.
pub struct Publisher {
    site: String,
    key: String,
    sign: Sign,
    jobs: SyncSender<Job>,
}

/// What else is covered by the signature of a response.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its status.
    pub status: u16,
    /// Content-Type, where it has one.
    pub content_type: Option<&'a str>,
    /// Content-Encoding, where it has one.
    pub content_encoding: Option<&'a str>,
    /// Path and query, as sent.
    pub target: &'a str,
}

/// Where the digest of a body is kept, once somebody has made it.
pub(crate) type DigestCell = Arc<OnceLock<Digest>>;

/// A body whose digest is wanted.
enum Job {
    File(Arc<File>, u64, DigestCell),
    Stored(Arc<Stored>),
}

/// Longest body whose digest a core makes itself: 64 KiB take 50 us with the instructions that
/// processors have for it, as much as sending them.
const INLINE_MAX: u64 = 64 << 10;
/// Bodies that wait for their digest. Each is asked for again by the next fetch.
const QUEUE_MAX: usize = 64;
/// How long a signature holds: longer than an object is fresh for the most part, and than a rescue
/// goes on without its origin. Who replays what he was given can do so for that long.
const VALID: Duration = Duration::from_secs(24 * 3600);
/// What is read of a long body at a time.
const PIECE: usize = 256 << 10;

impl Publisher {
    /// Signs for `site`, name and port as in a URL, with the key whose text is `key`. Starts the
    /// thread for long bodies, which ends with the publisher.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(site: String, key: String, sign: Sign) -> io::Result<Arc<Self>> {
        let (jobs, inbox) = sync_channel(QUEUE_MAX);
        thread::Builder::new()
            .name("digester".to_owned())
            .spawn(move || make_digests(&inbox))?;
        Ok(Arc::new(Self {
            site,
            key,
            sign,
            jobs,
        }))
    }

    /// The text of the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The lines that sign a response with this body; empty where it has something that cannot be
    /// signed.
    pub fn lines(&self, facts: Facts<'_>, digest: Digest) -> String {
        let published = Published {
            digest,
            status: facts.status,
            content_type: facts.content_type,
            content_encoding: facts.content_encoding,
            site: &self.site,
            target: facts.target,
        };
        if !published.is_plain() {
            return String::new();
        }
        let created = unix_seconds(SystemTime::now());
        let validity = Validity {
            created,
            expires: created + VALID.as_secs(),
        };
        let parameters = published.parameters(validity, &self.key);
        let signature = (self.sign)(published.base(&parameters).as_bytes());
        published.lines(&parameters, &signature)
    }

    /// The lines for a whole file; empty where its digest is not known yet.
    pub(crate) fn file_lines(&self, entry: &FileEntry, target: &str) -> String {
        let make = || {
            let Contents::Memory(bytes) = &entry.contents else {
                return None;
            };
            Some(digest_of(bytes))
        };
        let Some(digest) = known(&entry.digest, make) else {
            if let Contents::Disk(file) = &entry.contents {
                let job = Job::File(Arc::clone(file), entry.size, Arc::clone(&entry.digest));
                self.ask(job);
            }
            return String::new();
        };
        let facts = Facts {
            status: 200,
            content_type: Some(&entry.content_type),
            content_encoding: entry.coding(),
            target,
        };
        self.lines(facts, digest)
    }

    /// The lines for a whole object of the cache; empty where its digest is not known yet, or where
    /// the application has signed it itself.
    pub(crate) fn stored_lines(&self, stored: &Arc<Stored>, target: &str) -> String {
        let text = |name: &str| match stored.head.header(name) {
            None => Some(None),
            Some(value) => std::str::from_utf8(value).ok().map(Some),
        };
        let own = [
            levee_wire::DIGEST_FIELD,
            levee_wire::INPUT_FIELD,
            levee_wire::SIGNATURE_FIELD,
        ];
        let is_signed = own.iter().any(|name| stored.head.header(name).is_some());
        let (Some(content_type), Some(content_encoding), false) =
            (text("content-type"), text("content-encoding"), is_signed)
        else {
            return String::new();
        };
        let make = || match &stored.body {
            Body::Memory(bytes) if bytes.len() as u64 <= INLINE_MAX => Some(digest_of(bytes)),
            Body::Memory(_) | Body::File { .. } => None,
        };
        let Some(digest) = known(&stored.digest, make) else {
            self.ask(Job::Stored(Arc::clone(stored)));
            return String::new();
        };
        let facts = Facts {
            status: stored.head.status.as_u16(),
            content_type,
            content_encoding,
            target,
        };
        self.lines(facts, digest)
    }

    fn ask(&self, job: Job) {
        // Where too many wait, the next fetch asks again.
        let _ = self.jobs.try_send(job);
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publisher({} by {})", self.site, self.key)
    }
}

/// The digest of a whole body.
pub fn digest_of(body: &[u8]) -> Digest {
    finished(digest(&SHA256, body))
}

/// The digest of the first `length` bytes of a file. Blocks on the disk.
pub(crate) fn digest_of_file(file: &File, length: u64) -> io::Result<Digest> {
    let mut context = Context::new(&SHA256);
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < length {
        let left = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE);
        file.read_exact_at(&mut piece[..left], at)?;
        context.update(&piece[..left]);
        at += left as u64;
    }
    Ok(finished(context.finish()))
}

/// Seconds since 1970.
pub(crate) fn unix_seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn finished(digest: aws_lc_rs::digest::Digest) -> Digest {
    let bytes = digest.as_ref().try_into();
    Digest(bytes.expect("SHA-256 has 32 bytes"))
}

fn known(cell: &OnceLock<Digest>, make: impl FnOnce() -> Option<Digest>) -> Option<Digest> {
    let digest = cell.get().copied().or_else(make)?;
    Some(*cell.get_or_init(|| digest))
}

fn make_digests(inbox: &Receiver<Job>) {
    for job in inbox {
        let (made, cell) = match &job {
            Job::File(_, _, cell) if cell.get().is_some() => continue,
            Job::Stored(stored) if stored.digest.get().is_some() => continue,
            Job::File(file, size, cell) => (digest_of_file(file, *size), &**cell),
            Job::Stored(stored) => {
                let made = match &stored.body {
                    Body::Memory(bytes) => Ok(digest_of(bytes)),
                    Body::File { file, length } => digest_of_file(file, *length),
                };
                (made, &stored.digest)
            }
        };
        match made {
            // Another core may have been faster.
            Ok(digest) => drop(cell.set(digest)),
            // It was cut while it was read; whoever asks next finds it changed.
            Err(error) => tracing::debug!(%error, "no digest of a file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_digest_of_a_file_is_that_of_its_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        let body = vec![7; PIECE * 2 + 3];
        file.write_all(&body).unwrap();
        let length = body.len() as u64;
        assert_eq!(digest_of_file(&file, length).unwrap(), digest_of(&body));
        assert_eq!(digest_of_file(&file, 0).unwrap(), digest_of(b""));
        assert!(digest_of_file(&file, length + 1).is_err());
    }
}
