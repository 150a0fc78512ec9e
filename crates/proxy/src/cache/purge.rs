//! Purges: by URL with all variants, by tag, or a whole space.
//!
//! A look-up never pays for a purge: it finds an object or finds none. What a purge has to do is
//! done in visits of [`VISIT`] entries, and between two visits the lock is free, so a purge of a
//! hundred thousand objects holds no core up.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use levee_vocab::{Purge, PurgeKind, PurgeScope, Timestamp};

use super::ring::{New, Verdict};
use super::{Body, Cache, CacheKey, Entry, KeyRef, Shard, Stored};
use crate::flight::{ObjectRef, Space, SpaceRef, Spaces, lock};
use crate::tags::Tags;

/// Entries that are looked at under one lock: some microseconds.
const VISIT: u32 = 64;

/// What an entry can be found by beside its key.
#[derive(Hash)]
enum Label<'a> {
    /// Path and query: for an object that may be kept under several keys.
    Url(&'a [u8]),
    Tag(&'a str),
}

/// Whose labels. A purge may be about all sites of our own at once, so theirs are alike, and whose
/// an entry is says its key.
#[derive(Clone, Copy, Hash)]
enum Owner<'a> {
    Own,
    Origin(SpaceRef<'a>),
}

impl<'a> Owner<'a> {
    const fn of(space: &'a Space) -> Self {
        match space {
            Space::Own(_) => Self::Own,
            Space::Origin(..) => Self::Origin(space.borrowed()),
        }
    }

    const fn of_all(spaces: &'a Spaces) -> Self {
        match spaces {
            Spaces::Own => Self::Own,
            Spaces::One(space) => Self::of(space),
        }
    }
}

impl Cache {
    /// Removes objects of `spaces`, or makes them old. Says how many there were; an object whose
    /// variants are kept counts once for each.
    pub fn purge(&self, spaces: &Spaces, purge: &Purge, now: Timestamp) -> u64 {
        let owner = Owner::of_all(spaces);
        let work = Work {
            spaces,
            kind: purge.kind,
            now,
        };
        let labels: Vec<u64> = match &purge.scope {
            PurgeScope::All => {
                return self.each_shard(|shard| work.sweep(shard));
            }
            PurgeScope::Url(target) => {
                vec![self.label(owner, &Label::Url(target.as_str().as_bytes()))]
            }
            PurgeScope::Tags(tags) => {
                let words = tags.iter().map(levee_vocab::Tag::as_str);
                let words = words.chain(std::iter::once(Tags::every()));
                words
                    .map(|word| self.label(owner, &Label::Tag(word)))
                    .collect()
            }
        };
        let plain = match (&purge.scope, spaces) {
            (PurgeScope::Url(target), Spaces::One(space @ Space::Origin(..))) => {
                self.purge_plain(&work, space, target.as_str().as_bytes())
            }
            (PurgeScope::Url(_) | PurgeScope::Tags(_) | PurgeScope::All, _) => 0,
        };
        plain + self.each_shard(|shard| labels.iter().map(|&label| work.visit(shard, label)).sum())
    }

    /// The labels of an object that is kept under `key`. An origin's plain object needs none for
    /// its URL: it is found under its key.
    pub(super) fn labels(&self, key: &CacheKey, tags: &Tags) -> Vec<u64> {
        let owner = Owner::of(&key.object.space);
        let url = match (owner, &key.variant) {
            (Owner::Origin(_), None) => None,
            (Owner::Own, _) | (Owner::Origin(_), Some(_)) => Some(&key.object.target),
        };
        let url = url.map(|target| self.label(owner, &Label::Url(target)));
        let tags = tags
            .words()
            .map(|word| self.label(owner, &Label::Tag(word)));
        url.into_iter().chain(tags).collect()
    }

    fn label(&self, owner: Owner<'_>, label: &Label<'_>) -> u64 {
        self.hasher.hash_one((owner, label))
    }

    fn each_shard(&self, work: impl Fn(&Mutex<Shard>) -> u64) -> u64 {
        let disk = self.disk.iter().map(|index| &index.shard);
        self.shards.iter().chain(disk).map(work).sum()
    }

    /// What stands under the plain key of an origin's object: the object, or a note. The note by
    /// which headers it varies stays, because that is still the best guess.
    fn purge_plain(&self, work: &Work<'_>, space: &Space, target: &[u8]) -> u64 {
        let object = ObjectRef {
            space: space.borrowed(),
            base: b"",
            target,
        };
        let key = KeyRef {
            object,
            variant: None,
        };
        let hash = self.hash(&key);
        let disk = self.disk.as_ref().map(|index| &index.shard);
        let mut count = 0;
        for shard in std::iter::once(self.shard(hash)).chain(disk) {
            let mut shard = lock(shard);
            let found = shard.find(hash, |other| key.is(other)).cloned();
            let gone = match found.as_ref().map(|entry| work.judge(entry)) {
                None | Some(Verdict::Keep) => None,
                Some(Verdict::Remove) => shard.remove(hash, |other| key.is(other)),
                Some(Verdict::Replace(new)) => shard
                    .replace(hash, |other| key.is(other), |_| true, new)
                    .ok(),
            };
            drop(shard);
            count += u64::from(gone.is_some_and(|gone| matches!(gone, Entry::Object(_))));
        }
        count
    }

    /// Puts `new`, which differs from `old` only in how long it is good, in its place, unless it
    /// was purged or pushed out meanwhile.
    pub fn exchange(&self, key: &CacheKey, old: &Arc<Stored>, new: Stored) {
        let hash = self.hash(&KeyRef::of(key));
        let shard = match old.body {
            Body::Memory(_) => Some(self.shard(hash)),
            Body::File { .. } => self.disk.as_ref().map(|index| &index.shard),
        };
        let is_old = |entry: &Entry| match entry {
            Entry::Object(stored) => Arc::ptr_eq(stored, old),
            Entry::Varies(_) | Entry::Passes { .. } => false,
        };
        let new = Entry::Object(Arc::new(new));
        if let Some(shard) = shard {
            let gone = lock(shard).replace(hash, |other| other == key, is_old, new);
            drop(gone);
        }
    }

    /// Puts `new`, which has the body of `old` and another head, in its place, unless that was
    /// purged or pushed out meanwhile.
    pub fn succeed(&self, key: &CacheKey, old: &Arc<Stored>, new: Stored) {
        let key = key.clone().detached();
        let hash = self.hash(&KeyRef::of(&key));
        let labels = self.labels(&key, &new.head.tags);
        let shard = match old.body {
            Body::Memory(_) => Some(self.shard(hash)),
            Body::File { .. } => self.disk.as_ref().map(|index| &index.shard),
        };
        let Some(shard) = shard else { return };
        let mut out = Vec::new();
        let mut shard = lock(shard);
        let is_old = match shard.find(hash, |other| *other == key) {
            Some(Entry::Object(stored)) => Arc::ptr_eq(stored, old),
            Some(Entry::Varies(_) | Entry::Passes { .. }) | None => false,
        };
        if is_old {
            let new = New {
                hash,
                owner: self.owner(&key),
                cost: (key.weight() + new.weight()) as u64,
                value: Entry::Object(Arc::new(new)),
                labels: &labels,
                key,
            };
            // Without room for the longer head it goes, and is fetched again.
            let _ = shard.insert(new, &mut out);
        }
        drop(shard);
    }
}

/// What a purge does to each entry.
struct Work<'a> {
    spaces: &'a Spaces,
    kind: PurgeKind,
    now: Timestamp,
}

impl Work<'_> {
    fn is_about(&self, key: &CacheKey) -> bool {
        self.spaces.include(&key.object.space)
    }

    /// Notes go with a hard purge: the next answer may be of another kind.
    fn judge(&self, entry: &Entry) -> Verdict<Entry> {
        match (entry, self.kind) {
            (Entry::Varies(_), _) | (Entry::Passes { .. }, PurgeKind::Soft) => Verdict::Keep,
            (Entry::Object(_) | Entry::Passes { .. }, PurgeKind::Hard) => Verdict::Remove,
            (Entry::Object(stored), PurgeKind::Soft) => {
                Verdict::Replace(Entry::Object(Arc::new(stored.purged(self.now))))
            }
        }
    }

    /// All entries with `label`.
    fn visit(&self, shard: &Mutex<Shard>, label: u64) -> u64 {
        let mut left = lock(shard).labelled(label);
        let mut count = 0;
        while left > 0 {
            let most = left.min(VISIT);
            let mut out = Vec::with_capacity(most as usize);
            let judge = |key: &CacheKey, entry: &Entry| match self.is_about(key) {
                true => self.judge(entry),
                false => Verdict::Keep,
            };
            lock(shard).judge_labelled(label, most, judge, &mut out);
            left -= most;
            count += objects(&out);
        }
        count
    }

    /// All entries of the spaces.
    fn sweep(&self, shard: &Mutex<Shard>) -> u64 {
        let mut from = Some(0);
        let mut count = 0;
        while let Some(at) = from {
            let mut out = Vec::with_capacity(VISIT as usize);
            let judge = |key: &CacheKey, entry: &Entry| match self.is_about(key) {
                true => match (entry, self.kind) {
                    (Entry::Varies(_), PurgeKind::Hard) => Verdict::Remove,
                    (_, _) => self.judge(entry),
                },
                false => Verdict::Keep,
            };
            from = lock(shard).judge_slots(at, VISIT as usize, judge, &mut out);
            count += objects(&out);
        }
        count
    }
}

fn objects(gone: &[Entry]) -> u64 {
    let gone = gone.iter();
    gone.filter(|entry| matches!(entry, Entry::Object(_)))
        .count() as u64
}
