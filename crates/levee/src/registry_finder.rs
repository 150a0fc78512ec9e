//! Finds the registries of the community (R11): by DNS SRV, and by a list from the settings.
//!
//! Those that DNS names come first, in the order of RFC 2782, then those of the list. Names are
//! looked up again every minute, so a registry may move; what was found last stays while DNS is
//! away. Servers rotate SRV records like any others, so the order is made here: anew when the
//! records change, and not at each look.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::proto::rr::RData;
use hickory_resolver::proto::rr::RecordType;
use levee_vocab::{HostName, Random};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// Where the registries of a community may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryPlaces {
    /// `host:port` each, the preferred one first.
    pub list: Vec<String>,
    /// The domain that names them by `_levee-registry._tcp`.
    pub domain: Option<HostName>,
}

/// The registries that are known now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The preferred one first.
    pub registries: Vec<SocketAddr>,
    /// What went wrong at the last look, in a sentence.
    pub trouble: String,
}

/// The registries that are known, as they change.
pub type KnownRegistries = watch::Receiver<Found>;

/// One SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceRecord {
    /// Smaller ones come first.
    pub priority: u16,
    /// Among equal priorities, how often it comes first.
    pub weight: u16,
    /// Port of the registry.
    pub port: u16,
    /// Name of its host.
    pub target: String,
}

/// Exactly these registries.
pub fn fixed(registries: Vec<SocketAddr>) -> KnownRegistries {
    let trouble = String::new();
    watch::channel(Found {
        registries,
        trouble,
    })
    .1
}

/// Starts the task that looks for them for as long as anybody wants to know. Needs a tokio runtime.
/// Without a `resolver` the one of the system is asked.
pub fn start(
    places: RegistryPlaces,
    resolver: Option<TokioResolver>,
    random: Random,
) -> KnownRegistries {
    let literal = places.list.iter().filter_map(|place| place.parse().ok());
    let (known, found) = watch::channel(Found {
        // Addresses need no looking up.
        registries: literal.collect(),
        trouble: "no registry was found yet".to_owned(),
    });
    let finder = Finder {
        places,
        resolver,
        random,
        records: Vec::new(),
        ordered: Vec::new(),
        known,
    };
    tokio::spawn(finder.run());
    found
}

/// The order in which to try `records`: by priority, and among equals by lot, where a heavier one
/// is drawn first more often.
//= RFC 2782 page 3
pub fn in_order(mut records: Vec<ServiceRecord>, random: &mut Random) -> Vec<ServiceRecord> {
    records.sort();
    let mut ordered = Vec::with_capacity(records.len());
    while let Some(first) = records.first() {
        let priority = first.priority;
        let same = records.iter().take_while(|one| one.priority == priority);
        let weights: Vec<u64> = same.map(|one| u64::from(one.weight)).collect();
        // Those of weight 0 stand first, and are drawn only by the smallest number.
        let mut drawn = random.within(0..weights.iter().sum::<u64>() + 1);
        let chosen = weights.iter().position(|weight| {
            let is_chosen = drawn <= *weight;
            drawn = drawn.saturating_sub(*weight);
            is_chosen
        });
        ordered.push(records.remove(chosen.unwrap_or(0)));
    }
    ordered
}

struct Finder {
    places: RegistryPlaces,
    resolver: Option<TokioResolver>,
    random: Random,
    /// What DNS said last, sorted.
    records: Vec<ServiceRecord>,
    /// The same in the order in which they are tried.
    ordered: Vec<ServiceRecord>,
    known: watch::Sender<Found>,
}

impl Finder {
    async fn run(mut self) {
        let needs_looks = self.places.domain.is_some()
            || self
                .places
                .list
                .iter()
                .any(|place| place.parse::<SocketAddr>().is_err());
        loop {
            let found = self.look().await;
            let pause = if found.trouble.is_empty() {
                LOOK_PERIOD
            } else {
                RETRY_PAUSE
            };
            self.tell(found);
            if !needs_looks {
                return self.known.closed().await;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.known.closed() => return,
            }
        }
    }

    async fn look(&mut self) -> Found {
        let mut found = Found::default();
        if let Some(domain) = self.places.domain.clone() {
            match timeout(LOOK_WAIT, self.ask(&domain)).await {
                Ok(Ok(records)) => self.take(records),
                Ok(Err(trouble)) => found.trouble = trouble,
                Err(_) => found.trouble = format!("DNS does not answer for {SERVICE}.{domain}"),
            }
        }
        let named = self.ordered.iter();
        let named = named.map(|record| format!("{}:{}", record.target, record.port));
        for place in named.chain(self.places.list.iter().cloned()) {
            match timeout(LOOK_WAIT, lookup_host(place.as_str())).await {
                Ok(Ok(addresses)) => {
                    for address in addresses {
                        if !found.registries.contains(&address) {
                            found.registries.push(address);
                        }
                    }
                }
                Ok(Err(error)) => found.trouble = format!("registry {place}: {error}"),
                Err(_) => found.trouble = format!("registry {place}: DNS does not answer"),
            }
        }
        found
    }

    async fn ask(&mut self, domain: &HostName) -> Result<Vec<ServiceRecord>, String> {
        let name = format!("{SERVICE}.{domain}.");
        if self.resolver.is_none() {
            let builder = TokioResolver::builder_tokio().map_err(|error| error.to_string())?;
            let resolver = builder.build().map_err(|error| error.to_string())?;
            self.resolver = Some(resolver);
        }
        let resolver = self.resolver.as_ref().expect("it was made above");
        let answer = resolver.lookup(name.as_str(), RecordType::SRV).await;
        let answer = answer.map_err(|error| format!("no registry by {name} SRV: {error}"))?;
        let records = answer.answers().iter().filter_map(|record| {
            let RData::SRV(service) = &record.data else {
                return None;
            };
            Some(ServiceRecord {
                priority: service.priority,
                weight: service.weight,
                port: service.port,
                target: service.target.to_string().trim_end_matches('.').to_owned(),
            })
        });
        // A lone dot says that there is none.
        let records = records.filter(|record| !record.target.is_empty());
        Ok(records.take(RECORDS_MAX).collect())
    }

    fn take(&mut self, mut records: Vec<ServiceRecord>) {
        records.sort();
        if records != self.records {
            self.ordered = in_order(records.clone(), &mut self.random);
            self.records = records;
        }
    }

    fn tell(&self, mut found: Found) {
        self.known.send_if_modified(|known| {
            if found.registries.is_empty() {
                found.registries.clone_from(&known.registries);
            }
            if *known == found {
                return false;
            }
            if !found.trouble.is_empty() && found.trouble != known.trouble {
                warn!("{}", found.trouble);
            }
            if found.registries != known.registries {
                info!(registries = ?found.registries, "registries found");
            }
            *known = found;
            true
        });
    }
}

/// What SRV records are asked for (RFC 2782: service and protocol before the domain).
const SERVICE: &str = "_levee-registry._tcp";
/// A community has a few registries.
const RECORDS_MAX: usize = 16;
const LOOK_PERIOD: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_secs(5);
const LOOK_WAIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn record(priority: u16, weight: u16, target: &str) -> ServiceRecord {
        let target = target.to_owned();
        ServiceRecord {
            priority,
            weight,
            port: 7070,
            target,
        }
    }

    #[test]
    fn smaller_priorities_come_first_and_heavier_ones_more_often() {
        let records = vec![
            record(20, 0, "last"),
            record(10, 30, "heavy"),
            record(10, 10, "light"),
            record(10, 0, "weightless"),
        ];
        let mut random = Random::from_seed(1);
        let mut first = std::collections::BTreeMap::<String, u32>::new();
        for _ in 0..4000 {
            let ordered = in_order(records.clone(), &mut random);
            assert_eq!(ordered.len(), 4);
            assert_eq!(ordered[3].target, "last");
            *first.entry(ordered[0].target.clone()).or_default() += 1;
        }
        assert!((2700..3200).contains(&first["heavy"]), "{first:?}");
        assert!((700..1200).contains(&first["light"]), "{first:?}");
        assert!(first["weightless"] < 250, "{first:?}");
    }
}
