//! Answers the requests of sites from the catalog, within limits.
//!
//! A registry for the public good takes anybody's word, but not about anybody else: who registers
//! an address must speak from it, and who holds a name keeps it until the entry is gone. So nobody
//! can send a crowd to a bystander, or take another site's place. Whom enough members accuse of
//! altering pages is not found by anybody. The limits keep one address from
//! filling the registry.

use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::Timestamp;
use levee_wire::registry::{Accusation, Entry, Farewell, Proof, Refusal, Reply, Request, Search};

use crate::accusations::{Accusations, Heard};
use crate::answers::select;
use crate::catalog::{Catalog, Change, Held, Known, MEMORY, version_of};
use crate::departed::{Departed, Parting};
use crate::limits::RegistryLimits;
use crate::sums::Version;

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
    /// What the calendar showed when it came: milliseconds since 1970.
    pub clock: u64,
}

impl Asker {
    /// The same, an IPv4 address in IPv6's clothes undressed.
    fn canonical(self) -> Self {
        let address = self.address.to_canonical();
        Self { address, ..self }
    }
}

/// What the status page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryView {
    /// Entries held.
    pub entries: usize,
    /// Most entries.
    pub entries_max: usize,
    /// The first of them by name.
    pub held: Vec<Held>,
}

/// A registry.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) catalog: Catalog,
    pub(crate) limits: RegistryLimits,
    pub(crate) accusations: Accusations,
}

impl Registry {
    /// An empty registry.
    pub fn new(limits: RegistryLimits) -> Self {
        let catalog = Catalog::new(limits.entries_max);
        Self {
            catalog,
            limits,
            accusations: Accusations::default(),
        }
    }

    /// Takes note of what happened. Each request gets exactly one answer.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Vec<Output> {
        // What has expired is gone before anybody is answered, even when the timer is late.
        let mut changes = self.catalog.expire(now);
        self.accusations.expire(now);
        let answer = match input {
            Input::TimerFired => None,
            Input::RequestReceived { asker, request } => {
                let (reply, change) = self.answer(now, asker.canonical(), request);
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
        let accusations = self.accusations.next_end();
        self.catalog
            .next_expiry()
            .into_iter()
            .chain(accusations)
            .min()
    }

    /// What the status page shows.
    pub fn view(&self) -> RegistryView {
        let held = self.catalog.all().take(SHOWN_MAX);
        RegistryView {
            entries: self.catalog.count(),
            entries_max: self.limits.entries_max,
            held: held.cloned().collect(),
        }
    }

    fn answer(
        &mut self,
        now: Timestamp,
        asker: Asker,
        request: Request,
    ) -> (Reply, Option<Change>) {
        match request {
            Request::Register(entry) => match self.register(now, asker, entry) {
                Ok((lifetime, change)) => (Reply::Registered(lifetime), change),
                Err(refusal) => (Reply::Refused(refusal), None),
            },
            Request::Deregister(farewell) => match self.deregister(asker, farewell) {
                Ok(change) => (Reply::Removed(u32::from(change.is_some())), change),
                Err(refusal) => (Reply::Refused(refusal), None),
            },
            Request::Search(search) => (Reply::Found(self.search(now, &search)), None),
            Request::Query(site) => {
                let found = match self.catalog.known(&site) {
                    Some(Known::Here(held)) => vec![held.entry(now)],
                    Some(Known::Gone(_)) | None => Vec::new(),
                };
                (Reply::Found(found), None)
            }
            Request::Accuse(accusation) => self.accuse(now, asker, accusation),
            Request::Accusations => {
                let said = self.accusations.told(self.limits.found_max);
                (Reply::Said(said.into_iter().cloned().collect()), None)
            }
            Request::Unknown(_) => (Reply::Refused(Refusal::UnknownCommand), None),
        }
    }

    fn register(
        &mut self,
        now: Timestamp,
        asker: Asker,
        entry: Entry,
    ) -> Result<(Duration, Option<Change>), Refusal> {
        let limits = &self.limits;
        limits.check_address(asker.address, entry.rescue.ip())?;
        limits.check_stamp(entry.stamp, asker.clock)?;
        let version = version_of(&entry, asker.address);
        let known = self.catalog.known(&entry.site.host);
        let newest = known.map_or(0, |known| known.version().stamp);
        match known {
            Some(Known::Here(held)) if is_anothers(held, asker, entry.proof.as_ref()) => {
                return Err(Refusal::Taken);
            }
            // Said twice: its first answer was lost, or it says so to another registry as well.
            Some(Known::Here(held)) if entry.stamp > 0 && held.version() == version => {
                return Ok((held.expires.since(now), None));
            }
            _ if entry.stamp > 0 && entry.stamp <= newest => return Err(Refusal::Stale(newest)),
            Some(Known::Here(_)) => {}
            Some(Known::Gone(_)) | None => self.check_room(asker.address)?,
        }
        let lifetime = entry
            .lifetime
            .clamp(self.limits.lifetime_min, self.limits.lifetime_max);
        let change = self.catalog.put(Held {
            site: entry.site,
            rescue: entry.rescue,
            free: entry.free,
            owner: asker.address,
            expires: now + lifetime,
            stamp: match entry.stamp {
                0 => asker.clock.max(newest + 1),
                stamp => stamp,
            },
            https: entry.https,
            proof: entry.proof,
        });
        Ok((lifetime, Some(change)))
    }

    fn deregister(&mut self, asker: Asker, farewell: Farewell) -> Result<Option<Change>, Refusal> {
        self.limits.check_stamp(farewell.stamp, asker.clock)?;
        let Some(Known::Here(held)) = self.catalog.known(&farewell.site) else {
            return Ok(None);
        };
        if is_anothers(held, asker, farewell.proof.as_ref()) {
            return Err(Refusal::Taken);
        }
        if farewell.stamp > 0 && farewell.stamp < held.stamp {
            return Err(Refusal::Stale(held.stamp));
        }
        let departed = Departed {
            version: Version::farewell(farewell.stamp.max(held.stamp)),
            until: held.expires + MEMORY,
            parting: Parting::Deregistered(farewell.proof),
        };
        Ok(self.catalog.depart(&farewell.site, departed))
    }

    fn accuse(
        &mut self,
        now: Timestamp,
        asker: Asker,
        accusation: Box<Accusation>,
    ) -> (Reply, Option<Change>) {
        let heard = self
            .accusations
            .hear(now, asker.clock, (*accusation).clone());
        match heard {
            Heard::News => (Reply::Noted(1), Some(Change::Accused(accusation))),
            Heard::Known => (Reply::Noted(0), None),
            Heard::Refused(refusal) => (Reply::Refused(refusal), None),
        }
    }

    fn search(&self, now: Timestamp, search: &Search) -> Vec<Entry> {
        let limits = &self.limits;
        let count_max = usize::try_from(search.count).unwrap_or(usize::MAX);
        let others = self
            .catalog
            .best()
            .filter(|held| Some(&held.site.host) != search.except.as_ref())
            .filter(|held| !self.accusations.are_believed_of(&held.site.host));
        let wanted = (count_max.min(limits.found_max), search.per_domain);
        let found = select(others.take(limits.looked_at_max), wanted, |held| {
            (&held.site.host, held.free)
        });
        found.into_iter().map(|held| held.entry(now)).collect()
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

/// Whether somebody else has registered `held` than who speaks now. Which address that was may be a
/// peer's word, and a site may move: who has signed both is the same, wherever it speaks from.
fn is_anothers(held: &Held, asker: Asker, proof: Option<&Proof>) -> bool {
    let proofs = held.proof.as_ref().zip(proof);
    let is_same = proofs.is_some_and(|(before, now)| before.key == now.key);
    held.owner != asker.address && !is_same
}

/// More than a person reads, and 100 kB of a status page.
const SHOWN_MAX: usize = 1000;
