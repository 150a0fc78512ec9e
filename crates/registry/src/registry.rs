//! Answers the requests of sites from the catalog, within limits.
//!
//! A registry for the public good takes anybody's word, but not about anybody else: who registers
//! an address must speak from it, and who holds a name keeps it until the entry is gone. So nobody
//! can send a crowd to a bystander, or take another site's place. The limits keep one address from
//! filling the registry.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::{HostName, Timestamp};
use levee_wire::AddressRange;
use levee_wire::registry::{Entry, Refusal, Reply, Request, Search};

use crate::catalog::{Catalog, Change, Held};

/// Something that happened to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A site asks.
    RequestReceived {
        /// Who, and where the answer goes.
        asker: Asker,
        /// What.
        request: Request,
    },
    /// The deadline has come, or some earlier or later time.
    TimerFired,
}

/// Something that must be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Give this answer to the asker.
    Answer {
        /// `Asker::connection` of the request.
        connection: u64,
        /// What to say.
        reply: Reply,
    },
    /// Nothing to do here: for the log, and for the other registries of a mesh.
    Announce(Change),
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Number of the connection, which comes back with the answer.
    pub connection: u64,
    /// Address of the other end.
    pub address: IpAddr,
}

/// Whose address a site may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRule {
    /// Its own: that from which it speaks.
    AskersOwn,
    /// Any; for communities that trust all who can reach the registry.
    Any,
}

/// Whether addresses of inner networks may be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// No: a registry on the internet.
    Refused,
    /// Yes: a registry on one machine or in one network. A site that speaks from a private address
    /// may then also register a public one, because it may stand behind an address translator.
    Permitted,
}

/// How much a registry takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryLimits {
    /// Most entries.
    pub entries_max: usize,
    /// Most entries that one address registers.
    pub entries_per_address_max: usize,
    /// Shortest lifetime that is granted.
    pub lifetime_min: Duration,
    /// Longest lifetime that is granted.
    pub lifetime_max: Duration,
    /// Most entries that one search finds.
    pub found_max: usize,
    /// Most entries that one search looks at: where one domain fills the registry, a search for
    /// diverse ones must not cost all of it.
    pub looked_at_max: usize,
    /// Whose address may be registered.
    pub address_rule: AddressRule,
    /// Whether addresses of inner networks may be registered.
    pub private_addresses: PrivateAddresses,
}

impl Default for RegistryLimits {
    fn default() -> Self {
        Self {
            // Some 4 MB; a community beyond that wants a mesh.
            entries_max: 10_000,
            // Sites of one household or one small provider share an address.
            entries_per_address_max: 64,
            // Below this, registrations alone would keep a thousand sites' registry busy.
            lifetime_min: Duration::from_secs(2),
            // A site that died is offered for at most this long.
            lifetime_max: Duration::from_secs(3600),
            found_max: 64,
            looked_at_max: 1024,
            address_rule: AddressRule::AskersOwn,
            private_addresses: PrivateAddresses::Refused,
        }
    }
}

/// What the status page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryView {
    /// Entries held.
    pub entries: usize,
    /// Most entries.
    pub entries_max: usize,
    /// The best offers, largest first.
    pub best: Vec<Held>,
}

/// A registry.
#[derive(Clone, Debug)]
pub struct Registry {
    catalog: Catalog,
    limits: RegistryLimits,
}

impl Registry {
    /// An empty registry.
    pub fn new(limits: RegistryLimits) -> Self {
        let catalog = Catalog::default();
        Self { catalog, limits }
    }

    /// Takes note of what happened. Each request gets exactly one answer.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Vec<Output> {
        // What has expired is gone before anybody is answered, even when the timer is late.
        let mut changes = self.catalog.expire(now);
        let answer = match input {
            Input::TimerFired => None,
            Input::RequestReceived { asker, request } => {
                let (reply, change) = self.answer(now, asker.address.to_canonical(), request);
                changes.extend(change);
                let connection = asker.connection;
                Some(Output::Answer { connection, reply })
            }
        };
        let announcements = changes.into_iter().map(Output::Announce);
        announcements.chain(answer).collect()
    }

    /// When to call with [`Input::TimerFired`] at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.catalog.next_expiry()
    }

    /// What the status page shows.
    pub fn view(&self) -> RegistryView {
        let best = self.catalog.best().take(self.limits.found_max);
        RegistryView {
            entries: self.catalog.count(),
            entries_max: self.limits.entries_max,
            best: best.cloned().collect(),
        }
    }

    fn answer(
        &mut self,
        now: Timestamp,
        asker: IpAddr,
        request: Request,
    ) -> (Reply, Option<Change>) {
        match request {
            Request::Register(entry) => match self.register(now, asker, entry) {
                Ok((lifetime, change)) => (Reply::Registered(lifetime), Some(change)),
                Err(refusal) => (Reply::Refused(refusal), None),
            },
            Request::Deregister(farewell) => match self.deregister(asker, &farewell.site) {
                Ok(change) => (Reply::Removed(u32::from(change.is_some())), change),
                Err(refusal) => (Reply::Refused(refusal), None),
            },
            Request::Search(search) => (Reply::Found(self.search(now, &search)), None),
            Request::Query(site) => {
                let found = self.catalog.find(&site).map(|held| entry(now, held));
                (Reply::Found(found.into_iter().collect()), None)
            }
            Request::Unknown(_) => (Reply::Refused(Refusal::UnknownCommand), None),
        }
    }

    fn register(
        &mut self,
        now: Timestamp,
        owner: IpAddr,
        entry: Entry,
    ) -> Result<(Duration, Change), Refusal> {
        self.check_address(owner, entry.rescue.ip())?;
        match self.catalog.find(&entry.site.host) {
            Some(held) if held.owner != owner => return Err(Refusal::Taken),
            Some(_) => {}
            None => self.check_room(owner)?,
        }
        let limits = &self.limits;
        let lifetime = entry
            .lifetime
            .max(limits.lifetime_min)
            .min(limits.lifetime_max);
        let change = self.catalog.put(Held {
            site: entry.site,
            rescue: entry.rescue,
            free: entry.free,
            owner,
            expires: now + lifetime,
            stamp: entry.stamp,
            proof: entry.proof,
        });
        Ok((lifetime, change))
    }

    fn deregister(&mut self, asker: IpAddr, site: &HostName) -> Result<Option<Change>, Refusal> {
        match self.catalog.find(site) {
            Some(held) if held.owner != asker => Err(Refusal::Taken),
            Some(_) => Ok(self.catalog.remove(site)),
            None => Ok(None),
        }
    }

    fn search(&self, now: Timestamp, search: &Search) -> Vec<Entry> {
        let limits = &self.limits;
        let count_max = usize::try_from(search.count).unwrap_or(usize::MAX);
        let mut of_domain: BTreeMap<&str, u32> = BTreeMap::new();
        let others = self
            .catalog
            .best()
            .filter(|held| Some(&held.site.host) != search.except.as_ref());
        let diverse = others.take(limits.looked_at_max).filter(|held| {
            let Some(most) = search.per_domain else {
                return true;
            };
            let found = of_domain.entry(held.site.host.domain()).or_default();
            *found += 1;
            *found <= most
        });
        let found = diverse.take(count_max.min(limits.found_max));
        found.map(|held| entry(now, held)).collect()
    }

    fn check_address(&self, asker: IpAddr, address: IpAddr) -> Result<(), Refusal> {
        let private = self.limits.private_addresses;
        let is_permitted = match (AddressRange::of(address), private) {
            (AddressRange::Public, _) => true,
            (AddressRange::Private, PrivateAddresses::Permitted) => true,
            (AddressRange::Private, PrivateAddresses::Refused) => false,
            (AddressRange::Unusable, _) => false,
        };
        let is_trusted = match self.limits.address_rule {
            AddressRule::Any => true,
            AddressRule::AskersOwn => {
                let is_neighbour = AddressRange::of(asker) == AddressRange::Private;
                asker == address || private == PrivateAddresses::Permitted && is_neighbour
            }
        };
        match is_permitted && is_trusted {
            true => Ok(()),
            false => Err(Refusal::AddressRefused),
        }
    }

    fn check_room(&self, owner: IpAddr) -> Result<(), Refusal> {
        let limits = &self.limits;
        let has_room = self.catalog.count() < limits.entries_max
            && self.catalog.count_of(owner) < limits.entries_per_address_max;
        match has_room {
            true => Ok(()),
            false => Err(Refusal::Full),
        }
    }
}

fn entry(now: Timestamp, held: &Held) -> Entry {
    Entry {
        site: held.site.clone(),
        rescue: held.rescue,
        free: held.free,
        lifetime: held.expires.since(now),
        stamp: held.stamp,
        proof: held.proof.clone(),
    }
}
