//! Whether what we hold for an origin is what it published (M3).
//!
//! ```text
//!  body whole ─▶ origin's key known? ─no─▶ kept
//!                     │ yes
//!                 signed? ─▶ and right: kept
//!                     │ └──▶ and wrong: not kept, and who sent it is left alone for a while
//!                     │ no
//!                 kept, and the origin is asked for its signature (HEAD): right, added to the
//!                 object; wrong, and it came from another member: let go again
//! ```
//!
//! Who reads along while a body comes has read it when its digest is known; nothing that proved
//! wrong is given to anybody after that. The signature stays among the fields of the object, so
//! visitors and other members get it with the page.
//!
//! The key of an origin is what its own words over the rescue link say, or the list of the
//! community. Without a key nothing is looked at: so it is with origins that sign nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::Method;
use levee_vocab::WebAddress;
use levee_wire::{Claim, ClaimFault, Digest, Published};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::counters::count;
use super::dial::Way;
use super::homes::HomeException;
use super::request::{Intent, Upload, build};
use super::task::Fetch;
use super::{Fetcher, Shared};
use crate::cache::{Body, CacheKey, Stored};
use crate::flight::{Asker, Company, ObjectKey, Place, Purpose, ResponseHead, Space, lock};
use crate::publisher::{digest_of, digest_of_file, unix_seconds};

/// Says whether the holder of the origin's key signed these bytes.
pub type Verify = Arc<dyn Fn(&[u8], &[u8; 64]) -> bool + Send + Sync>;

/// The key of an origin.
#[derive(Clone)]
pub struct OriginKey {
    /// Its text.
    pub text: String,
    /// What it verifies.
    pub verify: Verify,
}

/// What an origin's signature says of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what the origin published.
    Authentic,
    /// It has no signature that holds now.
    Unsigned,
    /// It has one, and is something else.
    Forged,
}

/// A response as it was delivered, to be judged.
#[derive(Clone, Copy)]
pub struct Delivered<'a> {
    /// Its status.
    pub status: u16,
    /// The value of a field, by its name in lower case.
    pub field: &'a dyn Fn(&str) -> Option<&'a [u8]>,
    /// Of its body, as delivered.
    pub digest: Digest,
    /// Name and port of the origin.
    pub site: &'a WebAddress,
    /// Path and query, as asked for.
    pub target: &'a str,
}

/// Keys of origins, and questions to them.
#[derive(Debug)]
pub(super) struct IntegrityDesk {
    keys: Mutex<HashMap<Space, OriginKey>>,
    /// Questions for signatures under way.
    asks: Arc<Semaphore>,
}

/// What signatures said of objects, counted.
#[derive(Debug, Default)]
pub(super) struct IntegrityTally {
    authentic: AtomicU64,
    unsigned: AtomicU64,
    forged: AtomicU64,
}

impl IntegrityTally {
    pub fn read(&self) -> BTreeMap<&'static str, u64> {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BTreeMap::from([
            ("authentic", value(&self.authentic)),
            ("unsigned", value(&self.unsigned)),
            ("forged", value(&self.forged)),
        ])
    }
}

/// Questions for signatures at a time: they are small, and an object is served without meanwhile.
const ASKS_MAX: usize = 8;
/// An origin answers from memory, or not in time.
const ASK_TIME_MAX: Duration = Duration::from_secs(5);
/// When to ask for a signature, from when the object was whole: a long file has its digest a moment
/// after it was first asked for.
const ASK_AFTER: [Duration; 2] = [Duration::ZERO, Duration::from_secs(2)];
/// Clocks may differ by so much.
const SKEW_SECONDS: u64 = 300;
/// Bodies up to this are digested where they are; longer ones on another thread.
const INLINE_MAX: usize = 128 << 10;

impl Default for IntegrityDesk {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            asks: Arc::new(Semaphore::new(ASKS_MAX)),
        }
    }
}

impl fmt::Debug for OriginKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl OriginKey {
    /// What this key says of a response. One that names another key is forged: an origin has one.
    pub fn judge(&self, delivered: &Delivered<'_>, now: SystemTime) -> Standing {
        let field = delivered.field;
        let claim = match Claim::read(field) {
            Ok(claim) => claim,
            Err(ClaimFault::Unsigned) => return Standing::Unsigned,
            Err(ClaimFault::Malformed | ClaimFault::Coverage | ClaimFault::OtherSite) => {
                return Standing::Forged;
            }
        };
        let text = |name: &str| field(name).and_then(|one| std::str::from_utf8(one).ok());
        let site = delivered.site.to_string();
        let published = Published {
            digest: delivered.digest,
            status: delivered.status,
            content_type: text("content-type"),
            content_encoding: text("content-encoding"),
            site: &site,
            target: delivered.target,
        };
        let is_ours = claim.key == self.text
            && claim
                .base(&published)
                .is_ok_and(|base| (self.verify)(base.as_bytes(), &claim.signature));
        let now = unix_seconds(now);
        let holds = claim.validity.created <= now + SKEW_SECONDS
            && now < claim.validity.expires.saturating_add(SKEW_SECONDS);
        match (is_ours, holds) {
            (false, _) => Standing::Forged,
            (true, false) => Standing::Unsigned,
            (true, true) => Standing::Authentic,
        }
    }
}

impl Fetcher {
    /// What is fetched for the origin of `space` must be signed by `key`, if it is signed. The
    /// last key counts.
    pub fn believe(&self, space: Space, key: OriginKey) {
        lock(&self.shared.integrity.keys).insert(space, key);
    }

    /// The key of an origin, as far as it is known.
    pub fn origin_key(&self, space: &Space) -> Option<OriginKey> {
        self.shared.key_of(space)
    }

    /// Forgets the keys of all origins but those that `is_kept` names.
    pub fn keep_keys(&self, is_kept: impl Fn(&Space) -> bool) {
        lock(&self.shared.integrity.keys).retain(|space, _| is_kept(space));
    }
}

impl Shared {
    fn key_of(&self, space: &Space) -> Option<OriginKey> {
        lock(&self.integrity.keys).get(space).cloned()
    }

    /// What the origin's signature says of this object, whose body is whole; none where nobody can
    /// tell.
    async fn standing_of(
        &self,
        object: &ObjectKey,
        (head, body): (&ResponseHead, &Body),
    ) -> Option<Standing> {
        let key = self.key_of(&object.space)?;
        let site = site_of(&object.space)?;
        let digest = digest_beside(body).await?;
        let target = std::str::from_utf8(&object.target).ok()?;
        let field = |name: &str| head.header(name);
        let delivered = Delivered {
            status: head.status.as_u16(),
            field: &field,
            digest,
            site: &site,
            target,
        };
        Some(key.judge(&delivered, SystemTime::now()))
    }
}

impl Fetch {
    /// What the origin's signature says of a body that is whole; none where nobody can tell.
    pub(super) async fn standing(&self, head: &ResponseHead, body: &Body) -> Option<Standing> {
        let object = &self.asker.key;
        self.shared.standing_of(object, (head, body)).await
    }

    /// Counts what became of it, and says whether it may be kept.
    pub(super) fn note_standing(&mut self, standing: Standing) -> Standing {
        let tally = &self.shared.tally.integrity;
        match standing {
            Standing::Authentic => count(&tally.authentic),
            Standing::Unsigned => count(&tally.unsigned),
            Standing::Forged => {
                count(&tally.forged);
                let target = String::from_utf8_lossy(&self.asker.key.target);
                let space = &self.asker.key.space;
                tracing::warn!("{target} of {space} came altered, and is not kept");
                self.home_failed(HomeException::Altered);
            }
        }
        standing
    }

    /// Asks the origin for its signature of `stored`, which was just kept without one; beside
    /// everything else, and not where many are asked for already.
    pub(super) fn seek_signature(&self, stored: &Arc<Stored>) {
        let is_for_origin = self.asker.source.purpose == Purpose::Rescue;
        let asks = Arc::clone(&self.shared.integrity.asks);
        let Ok(permit) = asks.try_acquire_owned() else {
            return;
        };
        let Some(key) = self.ticket.key.clone().filter(|_| is_for_origin) else {
            return;
        };
        let mut asker = self.asker.clone();
        asker.source.company = Company::Alone;
        asker.method = Method::HEAD;
        let question = Question {
            shared: Arc::clone(&self.shared),
            asker,
            key,
            stored: Arc::clone(stored),
            came_from: match self.asked {
                Some(_) => CameFrom::Member,
                None => CameFrom::Origin,
            },
        };
        self.shared.runtime.spawn(async move {
            question.ask().await;
            drop(permit);
        });
    }
}

/// From whom an object came that is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CameFrom {
    Origin,
    Member,
}

/// A question for the signature of an object that we keep.
struct Question {
    shared: Arc<Shared>,
    asker: Box<Asker>,
    key: CacheKey,
    stored: Arc<Stored>,
    came_from: CameFrom,
}

impl Question {
    async fn ask(self) {
        for wait in ASK_AFTER {
            sleep(wait).await;
            // Its rescue may have ended meanwhile, and an origin that is not to be helped any more
            // is asked for nothing.
            if self.shared.key_of(&self.key.object.space).is_none() {
                return;
            }
            let Ok(Some(lines)) = timeout(ASK_TIME_MAX, self.head()).await else {
                continue;
            };
            return self.take(&lines).await;
        }
    }

    /// The lines of a signature, where the origin has one.
    async fn head(&self) -> Option<ResponseHead> {
        let Place::Address(address) = self.asker.source.place else {
            return None;
        };
        let mut request = build(&self.asker, &Intent::Share(None), Upload::None).ok()?;
        *request.method_mut() = Method::HEAD;
        let pool = &self.shared.pool;
        let mut lease = pool.lease(&Way::to(address)).await.ok()?;
        let (parts, body) = lease.send(request).await.ok()?.into_parts();
        drop(body);
        pool.give_back(lease).await;
        let mut lines = Vec::with_capacity(512);
        for name in [
            levee_wire::DIGEST_FIELD,
            levee_wire::INPUT_FIELD,
            levee_wire::SIGNATURE_FIELD,
        ] {
            let value = parts.headers.get(name)?;
            for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                lines.extend_from_slice(part);
            }
        }
        let old = &self.stored.head;
        Some(ResponseHead {
            status: parts.status,
            lines: [&old.lines[..], &lines].concat().into(),
            ..(**old).clone()
        })
    }

    /// Adds the signature to the object, if it is one of it.
    async fn take(self, head: &ResponseHead) {
        let (shared, old, object) = (&self.shared, &self.stored, &self.key.object);
        let Some(standing) = shared.standing_of(object, (head, &old.body)).await else {
            return;
        };
        let is_same = head.status == old.head.status;
        match (standing, self.came_from) {
            (Standing::Authentic, _) if is_same => {
                count(&shared.tally.integrity.authentic);
                let signed = Stored {
                    head: Arc::new(head.clone()),
                    ..(**old).clone()
                };
                shared.cache.succeed(&self.key, old, signed);
            }
            (Standing::Authentic | Standing::Unsigned, _) => {}
            // It has changed since, or was altered by who gave it to us. Nobody can tell any more
            // whether it was ever right, so it is not shown again.
            (Standing::Forged, came_from) => {
                if came_from == CameFrom::Member {
                    count(&shared.tally.integrity.forged);
                }
                let (site, target) = (site_of(&object.space), object.target.escape_ascii());
                tracing::debug!(?site, "{target} is not what its origin has now: let go");
                shared.cache.exchange(&self.key, old, old.expired());
            }
        }
    }
}

/// Where an origin is, by whose objects these are.
fn site_of(space: &Space) -> Option<WebAddress> {
    match space {
        Space::Own(_) => None,
        Space::Origin(host, port) => Some(WebAddress {
            host: host.clone(),
            port: *port,
        }),
    }
}

/// The digest of a body, made where it holds nobody up.
async fn digest_beside(body: &Body) -> Option<Digest> {
    match body.clone() {
        Body::Memory(bytes) if bytes.len() <= INLINE_MAX => Some(digest_of(&bytes)),
        Body::Memory(bytes) => {
            let making = tokio::task::spawn_blocking(move || digest_of(&bytes));
            making.await.ok()
        }
        Body::File { file, length } => {
            let making = tokio::task::spawn_blocking(move || digest_of_file(&file, length));
            making.await.ok()?.ok()
        }
    }
}
