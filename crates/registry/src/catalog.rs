//! The entries of a registry: soft state, sorted by what is offered.
//!
//! An entry lives until its lifetime is over unless it is put again; nobody has to say goodbye. The
//! sorted index makes a search cost as much as it finds, however many entries there are. What
//! changed is told, so that a mesh can pass it on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use levee_vocab::{ByteRate, HostName, Timestamp, WebAddress};
use levee_wire::registry::Proof;

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
}

/// All entries.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    entries: BTreeMap<HostName, Held>,
    /// Largest offer first, then by name, so that equal offers always come in the same order.
    by_free: BTreeSet<(Reverse<ByteRate>, HostName)>,
    by_expiry: BTreeSet<(Timestamp, HostName)>,
    by_owner: BTreeMap<IpAddr, usize>,
}

impl Catalog {
    /// Keeps `held` in the place of what its site had before.
    pub fn put(&mut self, held: Held) -> Change {
        let before = self.take(&held.site.host.clone());
        let name = held.site.host.clone();
        self.by_free.insert((Reverse(held.free), name.clone()));
        self.by_expiry.insert((held.expires, name.clone()));
        *self.by_owner.entry(held.owner).or_default() += 1;
        self.entries.insert(name, held.clone());
        match before {
            Some(_) => Change::Renewed(held),
            None => Change::Added(held),
        }
    }

    /// Forgets the entry of `site`; none if there was none.
    pub fn remove(&mut self, site: &HostName) -> Option<Change> {
        self.take(site).map(|held| Change::Removed(held.site.host))
    }

    /// Forgets every entry whose time has come.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Change> {
        let mut changes = Vec::new();
        while let Some((expires, name)) = self.by_expiry.first().cloned() {
            if expires > now {
                break;
            }
            self.take(&name);
            changes.push(Change::Expired(name));
        }
        changes
    }

    /// When the next entry expires.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(expires, _)| *expires)
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

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// How many entries `owner` has registered.
    pub fn count_of(&self, owner: IpAddr) -> usize {
        self.by_owner.get(&owner).copied().unwrap_or(0)
    }

    fn take(&mut self, name: &HostName) -> Option<Held> {
        let held = self.entries.remove(name)?;
        let is_free_indexed = self.by_free.remove(&(Reverse(held.free), name.clone()));
        let is_expiry_indexed = self.by_expiry.remove(&(held.expires, name.clone()));
        assert!(
            is_free_indexed && is_expiry_indexed,
            "every entry is in both indices"
        );
        let count = self.by_owner.entry(held.owner).or_default();
        *count -= 1;
        if *count == 0 {
            self.by_owner.remove(&held.owner);
        }
        Some(held)
    }
}
