//! The virtual host names that this server gives out (R8; dotslash 4.1).
//!
//! ```text
//!   Live ── origin dies, with a permit ──▶ Orphaned ── it ends, or the origin is back ──▶ Ending
//!   Live ── rescue ends ──▶ Ending ── origin has stopped ──▶ Expired ── alias_keep ──▶ forgotten
//!   serves                  still serves                      redirects back
//!                                                                ▲
//!   restart ──▶ Restored ── origin must have noticed ────────────┘
//!               leads back unsigned
//! ```
//!
//! Who is not to be helped any more (expelled, or by the operator's word) has no `Ending`: from
//! wherever it stands its alias is `Expired` at once.
//!
//! `Ending` spares visitors a detour: while the origin may still send them here, the alias serves
//! them. It redirects back only one interval after the origin has confirmed that it stopped, or
//! after [`GRACE`] when it can no longer be asked. `Restored` is the same for a server that lost
//! its memory: a host that lost power and is back at once sends no FIN, so the origin redirects
//! here until it has missed our RATEs, and without its key nothing can be fetched for the visitors
//! whom it sends. What makes a redirect loop impossible is the word that goes along
//! (`way_back.rs`).
//!
//! A number is never given twice, not even after a restart: the alias of one origin must never lead
//! to another. The records of [`Aliases::records`] carry this over a restart.

mod alias;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_vocab::{HostName, LinkId, Peers, Timestamp, WebAddress};

use self::alias::Alias;
use crate::homes::Homes;
use crate::input::RescueCall;
use crate::parameters::Parameters;
use crate::plan::{HostTable, OriginPhase, OriginRoute};
use crate::view::{AliasRecord, OwnName};

/// Control intervals for which an alias serves on after its origin was lost. An origin notices a
/// lost rescue server after three at most; the rest is for visitors on slow networks.
pub(crate) const GRACE: f64 = 10.0;

/// Control intervals after a start for which restored aliases refuse. The origin has noticed after
/// two and a half without a RATE; the rest is for visitors who are under way.
const NOTICE: f64 = 4.0;

/// Longest that an origin's own name is served after its rescue, whatever it says of its TTL.
const NAME_TTL_MAX: Duration = Duration::from_hours(1);

/// Most aliases remembered. Origins that come and go by the thousand push out the oldest expired.
const ALIASES_MAX: usize = 4096;

/// All aliases that are known, by number.
#[derive(Clone, Debug)]
pub(crate) struct Aliases {
    by_number: BTreeMap<u64, Alias>,
    /// The one with the highest number ever: recorded even when it is forgotten, or a restart would
    /// give its number again.
    last: Option<AliasRecord>,
    started: Started,
    /// How long others may remember that an origin's own name leads here.
    name_ttls: BTreeMap<LinkId, Duration>,
    /// When each rescue began whose alias is known.
    began: BTreeMap<LinkId, Timestamp>,
    /// No alias has to move before this, and few later: asked for after each input of the Brain,
    /// when there may be thousands.
    deadline: Option<Timestamp>,
}

/// Whether the clock is known: restored aliases are kept from the first input on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Started {
    No,
    Yes,
}

impl Aliases {
    /// The table as it was before the restart: everything in it will lead back.
    pub(crate) fn restore(records: Vec<AliasRecord>) -> Self {
        let last = records.iter().max_by_key(|record| record.number).cloned();
        let phase = OriginPhase::Restored {
            until: Timestamp::ZERO,
        };
        let by_number = records
            .into_iter()
            .map(|record| (record.number, Alias::Restored { record, phase }))
            .collect();
        let mut aliases = Self {
            by_number,
            last,
            name_ttls: BTreeMap::new(),
            began: BTreeMap::new(),
            started: Started::No,
            deadline: None,
        };
        aliases.find_deadline();
        aliases
    }

    /// Gives a new alias to the origin of `call` at `now`; none when no valid name can be made.
    pub(crate) fn give(
        &mut self,
        parameters: &Parameters,
        call: &RescueCall,
        (link, slot): (LinkId, u8),
        now: Timestamp,
    ) -> Option<HostName> {
        let number = match &self.last {
            Some(record) => record.number.checked_add(1)?,
            None => 1,
        };
        let name = format!(
            "{}-vh{number}.{}",
            parameters.alias_host, parameters.alias_domain
        );
        let alias: HostName = name.parse().ok()?;
        self.last = Some(AliasRecord {
            number,
            alias: alias.clone(),
            origin: call.origin.clone(),
            tls: call.tls,
            own_name: match call.name_ttl {
                Some(_) => OwnName::Here,
                None => OwnName::Elsewhere,
            },
        });
        let route = OriginRoute {
            slot,
            link,
            origin: call.origin.clone(),
            address: SocketAddr::new(call.address, call.origin.port),
            tls: call.tls,
            alias: alias.clone(),
            key: call.key,
            ttl: call.ttl.unwrap_or(parameters.object_ttl),
            homes: None,
            misses: call.misses,
            phase: OriginPhase::Live,
        };
        self.by_number.insert(number, Alias::Given(route.into()));
        self.began.insert(link, now);
        if let Some(name_ttl) = call.name_ttl {
            self.name_ttls.insert(link, name_ttl.min(NAME_TTL_MAX));
        }
        self.push_out_the_oldest();
        Some(alias)
    }

    /// The origin on `link`, which knows us as `own`, told who else helps it.
    pub(crate) fn find_homes(&mut self, link: LinkId, peers: &Peers, own: &WebAddress) {
        let homes = Homes::new(peers, own).map(Arc::new);
        for route in self.given(link) {
            if route.phase == OriginPhase::Live && route.homes != homes {
                Arc::make_mut(route).homes.clone_from(&homes);
            }
        }
    }

    /// The rescue on `link` is over: its alias serves until `until`, then leads back. Nobody of the
    /// others knows us any more.
    pub(crate) fn end(&mut self, link: LinkId, until: Timestamp) {
        let until = until + self.name_ttl(link);
        self.leave_homes(link);
        self.change(link, |phase| match phase {
            OriginPhase::Live | OriginPhase::Orphaned { .. } => Some(OriginPhase::Ending { until }),
            OriginPhase::Ending { .. }
            | OriginPhase::Restored { .. }
            | OriginPhase::Expired { .. } => None,
        });
    }

    /// Nobody is served any more under the aliases that `is_cut`: they lead back until `until`, and
    /// are then forgotten. Gives the origins whose last visitors were still served.
    pub(crate) fn cut(
        &mut self,
        until: Timestamp,
        is_cut: impl Fn(&OriginRoute) -> bool,
    ) -> BTreeSet<HostName> {
        let mut ending = BTreeSet::new();
        let aliases = self.by_number.values_mut();
        for alias in aliases.filter(|alias| alias.served().is_some_and(&is_cut)) {
            if alias.ends_at().is_some() {
                ending.insert(alias.route().origin.host.clone());
            }
            alias.expire(until);
        }
        self.find_deadline();
        ending
    }

    /// The origin on `link` has died: its alias shows what we have until `until`.
    pub(crate) fn orphan(&mut self, link: LinkId, until: Timestamp) {
        self.leave_homes(link);
        self.change(link, |phase| match phase {
            OriginPhase::Live => Some(OriginPhase::Orphaned { until }),
            OriginPhase::Orphaned { .. }
            | OriginPhase::Ending { .. }
            | OriginPhase::Restored { .. }
            | OriginPhase::Expired { .. } => None,
        });
    }

    /// The origin on `link` has confirmed that it no longer redirects here: the alias may lead back
    /// from `until` on, if the rescue is over.
    pub(crate) fn acknowledge(&mut self, link: LinkId, until: Timestamp) {
        let until = until + self.name_ttl(link);
        self.change(link, |phase| match phase {
            OriginPhase::Ending { until: before } if until < before => {
                Some(OriginPhase::Ending { until })
            }
            OriginPhase::Live
            | OriginPhase::Orphaned { .. }
            | OriginPhase::Ending { .. }
            | OriginPhase::Restored { .. }
            | OriginPhase::Expired { .. } => None,
        });
    }

    /// Visitors still come by the origin's own name for so long after a rescue, and a redirect to
    /// that name would lead them here again.
    fn name_ttl(&self, link: LinkId) -> Duration {
        self.name_ttls.get(&link).copied().unwrap_or_default()
    }

    /// Moves every alias whose time has come to its next phase.
    pub(crate) fn expire(&mut self, now: Timestamp, parameters: &Parameters) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.started == Started::No {
            self.started = Started::Yes;
            let until = now + parameters.intervals(NOTICE);
            for alias in self.by_number.values_mut() {
                // Those of the very first input are not restored.
                match alias {
                    Alias::Restored { phase, .. } => *phase = OriginPhase::Restored { until },
                    Alias::Given(_) => {}
                }
            }
        }
        for alias in self.by_number.values_mut() {
            if alias.ends_at().is_some_and(|until| now >= until) {
                alias.expire(now + parameters.alias_keep);
            }
        }
        self.by_number
            .retain(|_, alias| alias.forgotten_at().is_none_or(|until| now < until));
        let known: BTreeSet<LinkId> = self
            .by_number
            .values()
            .map(|alias| alias.route().link)
            .collect();
        self.name_ttls.retain(|link, _| known.contains(link));
        self.began.retain(|link, _| known.contains(link));
        self.find_deadline();
    }

    /// When [`Aliases::expire`] has something to do next.
    pub(crate) const fn next_deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Looks at all aliases; only after one of them has changed.
    fn find_deadline(&mut self) {
        let aliases = self.by_number.values();
        let ends = aliases.filter_map(|alias| alias.ends_at().or(alias.forgotten_at()));
        self.deadline = ends.min();
    }

    /// Whether `slot` counts for an alias that still serves.
    pub(crate) fn uses_slot(&self, slot: u8) -> bool {
        self.serving().any(|route| route.slot == slot)
    }

    /// The origin whose visitors we carry, or did until a moment ago, because of `link`.
    pub(crate) fn origin_of(&self, link: LinkId) -> Option<HostName> {
        self.serving()
            .find(|route| route.link == link)
            .map(|route| route.origin.host.clone())
    }

    /// Slots of the aliases that still serve, and whose they are.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u8, &HostName)> {
        self.serving().map(|route| (route.slot, &route.origin.host))
    }

    /// Rescues that are over and whose last visitors are still served, and when each began.
    pub(crate) fn ending(&self) -> impl Iterator<Item = (&OriginRoute, Timestamp)> {
        let ending = self.serving().filter(|route| match route.phase {
            OriginPhase::Ending { .. } => true,
            OriginPhase::Live
            | OriginPhase::Orphaned { .. }
            | OriginPhase::Restored { .. }
            | OriginPhase::Expired { .. } => false,
        });
        ending.filter_map(|route| Some((route, *self.began.get(&route.link)?)))
    }

    /// Whether `host` is one of our aliases, of whatever age.
    pub(crate) fn contains(&self, host: &HostName) -> bool {
        self.by_number.values().any(|alias| alias.name() == host)
    }

    /// Whether `host`, lower case and without a port, is an alias of ours or an origin whose
    /// visitors we carry.
    pub(crate) fn leads_to_another(&self, host: &str) -> bool {
        let is_alias = self
            .by_number
            .values()
            .any(|one| one.name().as_str() == host);
        is_alias
            || self
                .serving()
                .any(|route| route.origin.host.as_str() == host)
    }

    /// What to write to the state folder.
    pub(crate) fn records(&self) -> Vec<AliasRecord> {
        let mut records: BTreeMap<u64, AliasRecord> = self
            .by_number
            .iter()
            .map(|(&number, alias)| (number, alias.record(number, self.own_name(alias))))
            .collect();
        if let Some(last) = &self.last {
            records.insert(last.number, last.clone());
        }
        records.into_values().collect()
    }

    /// Where the names lead. The own name of an origin that is served no more is known for as long
    /// as its alias, if it had us in its DNS: visitors come by it where nobody took us out of that,
    /// as where the origin died. No other name stays taken after its rescue.
    pub(crate) fn table(&self) -> HostTable {
        let mut table = HostTable::default();
        for alias in self.by_number.values() {
            let index = table.origins.len();
            let route = alias.route();
            table.names.insert(route.alias.clone(), index);
            match route.phase {
                OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. } => {
                    // Numbers ascend: of two rescues of one origin the newer wins.
                    table.names.insert(route.origin.host.clone(), index);
                }
                OriginPhase::Restored { .. } | OriginPhase::Expired { .. } => {
                    if self.own_name(alias) == OwnName::Here {
                        let host = route.origin.host.clone();
                        table.names.entry(host).or_insert(index);
                    }
                }
            }
            table.origins.push(route);
        }
        table
    }

    fn own_name(&self, alias: &Alias) -> OwnName {
        match alias {
            Alias::Given(route) if self.name_ttls.contains_key(&route.link) => OwnName::Here,
            Alias::Given(_) => OwnName::Elsewhere,
            Alias::Restored { record, .. } => record.own_name,
        }
    }

    fn serving(&self) -> impl Iterator<Item = &OriginRoute> {
        self.by_number.values().filter_map(Alias::served)
    }

    fn leave_homes(&mut self, link: LinkId) {
        for route in self.given(link) {
            if route.homes.is_some() {
                Arc::make_mut(route).homes = None;
            }
        }
    }

    fn change(&mut self, link: LinkId, next: impl Fn(OriginPhase) -> Option<OriginPhase>) {
        let mut changed = 0;
        for route in self.given(link) {
            if let Some(phase) = next(route.phase) {
                Arc::make_mut(route).phase = phase;
                changed += 1;
            }
        }
        if changed > 0 {
            self.find_deadline();
        }
    }

    fn given(&mut self, link: LinkId) -> impl Iterator<Item = &mut Arc<OriginRoute>> {
        self.by_number
            .values_mut()
            .filter_map(move |alias| match alias {
                Alias::Given(route) if route.link == link => Some(route),
                Alias::Given(_) | Alias::Restored { .. } => None,
            })
    }

    fn push_out_the_oldest(&mut self) {
        if self.by_number.len() <= ALIASES_MAX {
            return;
        }
        let oldest = self
            .by_number
            .iter()
            .find_map(|(&number, alias)| alias.forgotten_at().map(|_| number));
        if let Some(number) = oldest {
            self.by_number.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
