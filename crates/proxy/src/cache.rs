//! Objects in memory, and the index of those on disk.
//!
//! A hard limit on bytes: keys, headers, bodies, slots, index, all of it counts. The cache is
//! divided into shards with a lock each, held for the time of one look-up. What an insertion pushes
//! out is dropped after the lock is given back.
//!
//! An object is found in one or two steps. Under the plain key (space, base and target) stands the
//! object, or a note by which request headers it varies; then the object stands under the key with
//! the values of those headers. A third kind of entry says that the responses for this key are for
//! one visitor each. Notes are entries like others: they cost, and they can be pushed out.
//!
//! Origins that we rescue and our own sites share the memory fairly (`cache/owners.rs`).
//!
//! An object that is too old stays until it is pushed out: the source may say that it has not
//! changed, and when the source is dead it is better than nothing. This file knows nothing of HTTP.

mod bare;
mod index;
mod labels;
mod owners;
mod purge;
mod ring;
mod stored;
mod weight;

#[cfg(test)]
mod tests;

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use levee_vocab::Timestamp;

use crate::cacheability::VaryNames;
use crate::disk::{Disk, DiskOwner, Room};
use crate::flight::{ObjectKey, ObjectRef, RequestHeaders, Space, lock};
use crate::tags::Tags;
pub use bare::BareCache;
use ring::{New, Ring};
pub use stored::{Body, Freshness, Stored};
use weight::{allocation, shared_bytes};

/// No more shards than this: sixteen cores rarely wait for one of them.
const SHARDS_MAX: u64 = 16;
/// A shard holds at least so many objects of the largest size, or large objects would chase each
/// other out.
const OBJECTS_PER_SHARD: u64 = 4;
/// The owner of what our own sites have.
const OWN: u64 = 0;

/// Share of the memory limit for the index of objects on disk.
const DISK_INDEX_SHARE: u64 = 16;
/// A shard has at least so many bytes: in less, one large object would push out all others.
const SHARD_MIN: u64 = 4 << 20;

/// See the head of this file.
pub(crate) struct Cache {
    hasher: foldhash::quality::RandomState,
    limit: u64,
    object_max: u64,
    shards: Box<[Mutex<Shard>]>,
    disk: Option<DiskIndex>,
}

struct DiskIndex {
    disk: Arc<Disk>,
    shard: Mutex<Shard>,
}

type Shard = Ring<CacheKey, Entry>;

/// Name of an entry. The plain key has no variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub object: ObjectKey,
    pub variant: Option<Bytes>,
}

/// What stands under a key.
#[derive(Clone, Debug)]
enum Entry {
    Object(Arc<Stored>),
    Varies(Arc<VaryNames>),
    Passes { until: Timestamp, by: KeptBy },
}

/// What is known about a request's object.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The object, perhaps too old.
    Object(Arc<Stored>),
    /// It is not kept here: each visitor gets a response of its own, as far as we know.
    Passes(KeptBy),
    /// Nothing.
    Nothing,
}

/// Who may keep what is not kept here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptBy {
    /// Rescue servers, perhaps: they give a lifetime to what states none.
    Others,
    /// Nobody.
    Nobody,
}

/// Why an object is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotKept;

impl Cache {
    /// An empty cache of at most `limit` bytes, whose objects in memory have at most `object_max`.
    pub fn new(limit: u64, object_max: u64, disk: Option<Arc<Disk>>) -> Self {
        let disk_index = disk.as_ref().map_or(0, |_| limit / DISK_INDEX_SHARE);
        let memory = limit - disk_index;
        let useful = memory / (object_max * OBJECTS_PER_SHARD).max(SHARD_MIN);
        let shards = useful.clamp(1, SHARDS_MAX);
        // A power of two, so that the low bits of a hash choose.
        let shards = 1 << shards.ilog2();
        Self {
            hasher: foldhash::quality::RandomState::default(),
            limit,
            object_max: object_max.min(memory / shards / 2),
            shards: (0..shards)
                .map(|_| Mutex::new(Ring::new(memory / shards)))
                .collect(),
            disk: disk.map(|disk| DiskIndex {
                disk,
                shard: Mutex::new(Ring::new(disk_index)),
            }),
        }
    }

    /// The largest body that is kept in memory.
    pub fn object_max(&self) -> u64 {
        self.object_max
    }

    /// The folder for large objects.
    pub fn disk(&self) -> Option<&Arc<Disk>> {
        self.disk.as_ref().map(|index| &index.disk)
    }

    /// Bytes of everything in memory, and the limit.
    pub fn bytes(&self) -> (u64, u64) {
        let shards = self.shards.iter().map(|shard| lock(shard).weight());
        let disk = self.disk.iter().map(|index| lock(&index.shard).weight());
        (shards.chain(disk).sum(), self.limit)
    }

    /// What is known about the object for a request with these headers. Copies nothing but the
    /// values of headers by which the object varies.
    pub fn find(
        &self,
        object: ObjectRef<'_>,
        request: &(impl RequestHeaders + ?Sized),
        now: Timestamp,
    ) -> Found {
        let plain = KeyRef {
            object,
            variant: None,
        };
        match self.entry(&plain) {
            Some(Entry::Varies(names)) => {
                let entry = names.with_variant(request, |values| {
                    let variant = Some(values);
                    self.entry(&KeyRef { variant, ..plain })
                });
                entry.map_or(Found::Nothing, found_at(now))
            }
            Some(entry) => found_at(now)(entry),
            None => Found::Nothing,
        }
    }

    /// By which headers an object varies, as far as is known.
    pub fn vary(&self, object: &ObjectKey) -> Option<Arc<VaryNames>> {
        match self.entry(&KeyRef::plain(object)) {
            Some(Entry::Varies(names)) => Some(names),
            Some(Entry::Object(_) | Entry::Passes { .. }) | None => None,
        }
    }

    fn entry(&self, key: &KeyRef<'_>) -> Option<Entry> {
        let hash = self.hash(key);
        let found = lock(self.shard(hash))
            .find(hash, |other| key.is(other))
            .cloned();
        found.or_else(|| {
            let index = self.disk.as_ref()?;
            if index.disk.used() == 0 {
                return None;
            }
            lock(&index.shard)
                .find(hash, |other| key.is(other))
                .cloned()
        })
    }

    /// How often what stands under `key` was asked for since it was put there.
    pub fn asks(&self, key: &CacheKey) -> u16 {
        let hash = self.hash(&KeyRef::of(key));
        let in_memory = lock(self.shard(hash)).asks(hash, |other| other == key);
        let on_disk = self.disk.as_ref();
        let on_disk = on_disk.map(|index| lock(&index.shard).asks(hash, |other| other == key));
        in_memory.max(on_disk.unwrap_or(0))
    }

    /// Keeps an object.
    pub fn insert(&self, key: CacheKey, stored: Arc<Stored>) -> Result<(), NotKept> {
        let key = key.detached();
        let cost = key.weight() + stored.weight();
        let labels = self.labels(&key, &stored.head.tags);
        let in_memory = match stored.body {
            Body::Memory(_) => true,
            Body::File { .. } => false,
        };
        if in_memory {
            return self.put(key, Entry::Object(stored), cost, &labels);
        }
        let index = self.disk.as_ref().ok_or(NotKept)?;
        let hash = self.hash(&KeyRef::of(&key));
        // An older, smaller one must not hide it.
        let hidden = lock(self.shard(hash)).remove(hash, |other| *other == key);
        let mut out: Vec<Entry> = hidden.into_iter().collect();
        let mut shard = lock(&index.shard);
        let new = New {
            hash,
            owner: self.owner(&key),
            key,
            value: Entry::Object(stored),
            cost: cost as u64,
            labels: &labels,
        };
        let kept = shard.insert(new, &mut out);
        drop(shard);
        kept.map_err(|_| NotKept)
    }

    /// Notes by which headers an object varies.
    pub fn note_vary(&self, object: &ObjectKey, names: &Arc<VaryNames>) {
        let key = CacheKey::plain(object.clone()).detached();
        let cost = key.weight() + allocation(names.weight() + 16);
        // Without room for the note each request looks like a miss, which is slow and right.
        let _ = self.put(key, Entry::Varies(Arc::clone(names)), cost, &[]);
    }

    /// Notes that the responses for this key are for one visitor each, and kept by nobody but `by`.
    pub fn note_pass(&self, key: CacheKey, until: Timestamp, by: KeptBy) {
        let key = key.detached();
        let cost = key.weight();
        let labels = self.labels(&key, &Tags::default());
        let _ = self.put(key, Entry::Passes { until, by }, cost, &labels);
    }

    fn put(&self, key: CacheKey, value: Entry, cost: usize, labels: &[u64]) -> Result<(), NotKept> {
        let hash = self.hash(&KeyRef::of(&key));
        let mut out = Vec::new();
        if let Some(index) = &self.disk {
            out.extend(lock(&index.shard).remove(hash, |other| *other == key));
        }
        let mut shard = lock(self.shard(hash));
        let new = New {
            hash,
            owner: self.owner(&key),
            key,
            value,
            cost: cost as u64,
            labels,
        };
        let kept = shard.insert(new, &mut out);
        drop(shard);
        kept.map_err(|_| NotKept)
    }

    /// Lets objects on disk go until `bytes` more of `owner` fit, or none is left that may go.
    pub fn make_disk_room(&self, owner: DiskOwner, bytes: u64) {
        let Some(index) = &self.disk else { return };
        while let Some(room) = index.disk.lacks_room(owner, bytes) {
            let mut shard = lock(&index.shard);
            let evicted = match room {
                Room::OfAll => shard.evict(),
                Room::OfOthers => shard.evict_but(OWN),
            };
            drop(shard);
            if evicted.is_none() {
                return;
            }
        }
    }

    fn hash(&self, key: &KeyRef<'_>) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Whose an entry is: each origin stands for itself, and our own sites, which one operator has
    /// put there, for one.
    fn owner(&self, key: &CacheKey) -> u64 {
        match &key.object.space {
            Space::Own(_) => OWN,
            Space::Origin(host, port) => self.hasher.hash_one((host, port)) | 1,
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[hash as usize & (self.shards.len() - 1)]
    }
}

fn found_at(now: Timestamp) -> impl Fn(Entry) -> Found {
    move |entry| match entry {
        Entry::Object(stored) => Found::Object(stored),
        Entry::Passes { until, by } if until > now => Found::Passes(by),
        Entry::Passes { .. } | Entry::Varies(_) => Found::Nothing,
    }
}

impl CacheKey {
    /// The key without a variant.
    pub fn plain(object: ObjectKey) -> Self {
        Self {
            object,
            variant: None,
        }
    }

    /// The same key in memory of its own: a target may be a slice of a request's buffer, which
    /// would stay alive with it, unseen by the limit. Base and target share one allocation.
    fn detached(mut self) -> Self {
        let object = &mut self.object;
        let mut text = Bytes::from([&object.base[..], &object.target[..]].concat());
        object.base = text.split_to(object.base.len());
        object.target = text;
        self
    }

    /// Bytes on the heap. The space's name is shared with the route, but counted all the same.
    fn weight(&self) -> usize {
        let object = &self.object;
        let (Space::Own(name) | Space::Origin(name, _)) = &object.space;
        let variant = self.variant.as_ref();
        let variant = variant.map_or(0, |values| shared_bytes(values.len()));
        let text = shared_bytes(object.base.len() + object.target.len());
        allocation(name.as_str().len() + 16) + text + variant
    }
}

/// A key that lies somewhere else, so that a look-up copies nothing.
#[derive(Clone, Copy, Hash)]
struct KeyRef<'a> {
    object: ObjectRef<'a>,
    variant: Option<&'a [u8]>,
}

impl<'a> KeyRef<'a> {
    fn plain(object: &'a ObjectKey) -> Self {
        Self {
            object: object.borrowed(),
            variant: None,
        }
    }

    fn of(key: &'a CacheKey) -> Self {
        Self {
            variant: key.variant.as_deref(),
            ..Self::plain(&key.object)
        }
    }

    fn is(&self, key: &CacheKey) -> bool {
        self.object == key.object.borrowed() && self.variant == key.variant.as_deref()
    }
}
