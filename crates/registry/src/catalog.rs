//! The entries of a registry: soft state, sorted by what is offered.
//!
//! An entry lives until its lifetime is over unless it is put again; nobody has to say goodbye. The
//! sorted index makes a search cost as much as it finds, however many entries there are. What
//! changed is told, so that a mesh can pass it on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use levee_vocab::{AliasHttps, ByteRate, HostName, Network, Timestamp, WebAddress};
use levee_wire::registry::{Accusation, Entry, Proof};

use crate::departed::{Departed, Memorial, Parting};
use crate::sums::{Bucket, Sums, Version};

/// An entry and how long it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The site's name and web port.
    pub site: WebAddress,
    /// Its address and rescue port.
    pub rescue: SocketAddr,
    /// d_free.
    pub free: ByteRate,
    /// The address that registered it, which alone may change it.
    pub owner: IpAddr,
    /// When it is forgotten.
    pub expires: Timestamp,
    /// The site's counter; 0 where it gave none.
    pub stamp: u64,
    /// Whether its aliases answer by HTTPS.
    pub https: AliasHttps,
    /// That it was the site who said so; passed on as it came.
    pub proof: Option<Proof>,
}

/// What happened to the catalog: for the log, and for the other registries of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A site is new here.
    Added(Held),
    /// A site offers something else, or the same for longer.
    Renewed(Held),
    /// A site took its entry back.
    Removed(HostName),
    /// A site has gone quiet.
    Expired(HostName),
    /// A member says something of another one, or takes it back.
    Accused(Box<Accusation>),
}

/// All entries, and what is remembered of those that are gone.
#[derive(Clone, Debug)]
pub struct Catalog {
    entries: BTreeMap<HostName, Held>,
    /// Largest offer first, then by name, so that equal offers always come in the same order.
    by_free: BTreeSet<(Reverse<ByteRate>, HostName)>,
    by_expiry: BTreeSet<(Timestamp, HostName)>,
    by_owner: BTreeMap<Network, usize>,
    memorial: Memorial,
    /// What other registries are told of, by bucket.
    by_bucket: BTreeMap<Bucket, BTreeSet<HostName>>,
    sums: Sums,
}

/// The newest that is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// Its entry.
    Here(&'a Held),
    /// That its entry is gone.
    Gone(&'a Departed),
}

/// How long a name that is gone is remembered beyond the end of its entry: as long as a message may
/// be on its way. A link between registries that is silent for longer has long been cut.
pub const MEMORY: Duration = Duration::from_secs(60);

impl Catalog {
    /// An empty catalog that remembers at most `departed_max` names that are gone.
    pub fn new(departed_max: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            by_free: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            by_owner: BTreeMap::new(),
            memorial: Memorial::new(departed_max),
            by_bucket: BTreeMap::new(),
            sums: Sums::default(),
        }
    }

    /// Keeps `held` in the place of what its site had before.
    pub fn put(&mut self, held: Held) -> Change {
        let name = held.site.host.clone();
        if let Some(departed) = self.memorial.take(&name) {
            self.unshare_departed(&name, &departed);
        }
        let before = self.take(&name);
        self.by_free.insert((Reverse(held.free), name.clone()));
        self.by_expiry.insert((held.expires, name.clone()));
        let owner = Network::of(held.owner);
        *self.by_owner.entry(owner).or_default() += 1;
        self.share(&name, held.version());
        self.entries.insert(name, held.clone());
        match before {
            Some(_) => Change::Renewed(held),
            None => Change::Added(held),
        }
    }

    /// Adds to an entry what `told`, the same version of it, says of HTTPS, where it says nothing:
    /// it came by way of a registry that does not know the word.
    pub(crate) fn complete(&mut self, told: Entry) {
        if let Some(held) = self.entries.get_mut(&told.site.host)
            && held.https == AliasHttps::Unknown
        {
            (held.https, held.proof) = (told.https, told.proof);
        }
    }

    /// Remembers that `site` is gone, in the place of an entry that it had; tells only if it had
    /// one.
    pub fn depart(&mut self, site: &HostName, departed: Departed) -> Option<Change> {
        if let Some(before) = self.memorial.take(site) {
            self.unshare_departed(site, &before);
        }
        let held = self.take(site);
        self.share_departed(site, &departed);
        if let Some((forgotten, was)) = self.memorial.put(site.clone(), departed) {
            self.unshare_departed(&forgotten, &was);
        }
        held.map(|held| Change::Removed(held.site.host))
    }

    /// Forgets every entry whose time has come.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((expires, name)) = self.by_expiry.first().cloned() {
            if expires > now {
                break;
            }
            let version = self.entries.get(&name).map(Held::version);
            let departed = Departed {
                version: version.expect("every entry is in the index of ends"),
                until: expires + MEMORY,
                parting: Parting::Expired,
            };
            self.depart(&name, departed);
            changes.push(Change::Expired(name));
        }
        while let Some((name, departed)) = self.memorial.forget_one(now) {
            self.unshare_departed(&name, &departed);
        }
        changes
    }

    /// The newest that is known of `site`.
    pub fn known(&self, site: &HostName) -> Option<Known<'_>> {
        let here = self.entries.get(site).map(Known::Here);
        here.or_else(|| self.memorial.find(site).map(Known::Gone))
    }

    /// Names in these buckets of `group`, one bit each, of which other registries are told.
    pub fn names_in(&self, group: u8, buckets: u32) -> Vec<HostName> {
        let wanted = (0_u8..32).filter(|bucket| buckets >> bucket & 1 == 1);
        let found = wanted.filter_map(|bucket| self.by_bucket.get(&Bucket { group, bucket }));
        found.flatten().cloned().collect()
    }

    /// What is known, in few numbers.
    pub const fn sums(&self) -> &Sums {
        &self.sums
    }

    /// When the next entry expires, or is forgotten.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        let expiry = self.by_expiry.first().map(|(expires, _)| *expires);
        let end = self.memorial.next_end();
        expiry.into_iter().chain(end).min()
    }

    /// The entry of `site`.
    pub fn find(&self, site: &HostName) -> Option<&Held> {
        self.entries.get(site)
    }

    /// The entries that offer most, largest first; those that offer nothing are left out.
    pub fn best(&self) -> impl Iterator<Item = &Held> {
        let offers = self.by_free.iter();
        offers
            .take_while(|(Reverse(free), _)| *free > ByteRate::ZERO)
            .filter_map(|(_, name)| self.entries.get(name))
    }

    /// All entries by name.
    pub fn all(&self) -> impl Iterator<Item = &Held> {
        self.entries.values()
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// How many entries the network of `owner` has registered.
    pub fn count_of(&self, owner: IpAddr) -> usize {
        self.by_owner.get(&Network::of(owner)).copied().unwrap_or(0)
    }

    fn take(&mut self, name: &HostName) -> Option<Held> {
        let held = self.entries.remove(name)?;
        let is_free_indexed = self.by_free.remove(&(Reverse(held.free), name.clone()));
        let is_expiry_indexed = self.by_expiry.remove(&(held.expires, name.clone()));
        assert!(
            is_free_indexed && is_expiry_indexed,
            "every entry is in both indices"
        );
        self.unshare(name, held.version());
        let owner = Network::of(held.owner);
        let count = self.by_owner.entry(owner).or_default();
        *count -= 1;
        if *count == 0 {
            self.by_owner.remove(&owner);
        }
        Some(held)
    }

    fn share(&mut self, name: &HostName, version: Version) {
        self.sums.toggle(name, version);
        let bucket = self.by_bucket.entry(Bucket::of(name)).or_default();
        bucket.insert(name.clone());
    }

    fn unshare(&mut self, name: &HostName, version: Version) {
        self.sums.toggle(name, version);
        if let Some(bucket) = self.by_bucket.get_mut(&Bucket::of(name)) {
            bucket.remove(name);
        }
    }

    fn share_departed(&mut self, name: &HostName, departed: &Departed) {
        match departed.parting {
            Parting::Deregistered(_) => self.share(name, departed.version),
            Parting::Expired => {}
        }
    }

    fn unshare_departed(&mut self, name: &HostName, departed: &Departed) {
        match departed.parting {
            Parting::Deregistered(_) => self.unshare(name, departed.version),
            Parting::Expired => {}
        }
    }
}

impl Held {
    /// The entry as it is told, with what is left of its lifetime.
    pub fn entry(&self, now: Timestamp) -> Entry {
        Entry {
            site: self.site.clone(),
            rescue: self.rescue,
            free: self.free,
            lifetime: self.expires.since(now),
            stamp: self.stamp,
            https: self.https,
            proof: self.proof.clone(),
        }
    }

    /// Which version of the site's entry this is.
    pub fn version(&self) -> Version {
        version_of(&self.entry(Timestamp::ZERO), self.owner)
    }
}

impl Known<'_> {
    /// Which version of the site's word this is.
    pub fn version(&self) -> Version {
        match self {
            Self::Here(held) => held.version(),
            Self::Gone(departed) => departed.version,
        }
    }
}

/// Which version `entry` is, if `owner` registered it. What is left of its lifetime says nothing,
/// nor does what it says of HTTPS: registries that do not know that word must come to the same.
pub fn version_of(entry: &Entry, owner: IpAddr) -> Version {
    let Entry { site, rescue, .. } = entry;
    let free = entry.free.as_kilobytes();
    let signature = entry
        .proof
        .as_ref()
        .map_or("", |proof| proof.signature.as_str());
    let text = format!(
        "{} {} {rescue} {free} {owner} {signature}",
        site.host, site.port
    );
    Version::entry(entry.stamp, &text)
}
