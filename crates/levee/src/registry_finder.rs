//! Finds the registries of the community (R11): by DNS SRV, and by a list from the settings.
//!
//! Those that DNS names come first, in the order of RFC 2782, then those of the list. DNS is asked
//! again when its records have lived out their time, after a minute at the latest, so a registry
//! may move; what was found last stays while DNS is away, name by name. Servers rotate SRV records
//! like any others, so the order is made here: anew when the records change, and not at each look.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::proto::rr::RData;
use hickory_resolver::proto::rr::RecordType;
use levee_vocab::{HostName, Random};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::task::JoinSet;
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
        addresses: BTreeMap::new(),
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
    /// What each place was found to stand for last.
    addresses: BTreeMap<String, Vec<SocketAddr>>,
    known: watch::Sender<Found>,
}

/// What DNS says of a domain, and for how long.
struct Said {
    records: Vec<ServiceRecord>,
    valid_until: Instant,
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
            let (found, pause) = self.look().await;
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

    /// What is known now, and the pause before the next look.
    async fn look(&mut self) -> (Found, Duration) {
        let mut found = Found::default();
        let mut pause = LOOK_PERIOD;
        if let Some(domain) = self.places.domain.clone() {
            match timeout(LOOK_WAIT, self.ask(&domain)).await {
                Ok(Ok(said)) => {
                    let lives = said.valid_until.saturating_duration_since(Instant::now());
                    pause = lives.clamp(LOOK_PERIOD_MIN, LOOK_PERIOD);
                    self.take(said.records);
                }
                Ok(Err(trouble)) => found.trouble = trouble,
                Err(_) => found.trouble = format!("DNS does not answer for {SERVICE}.{domain}"),
            }
        }
        let named = self.ordered.iter();
        let named = named.map(|record| format!("{}:{}", record.target, record.port));
        let places: Vec<String> = named.chain(self.places.list.iter().cloned()).collect();
        let looked = self.look_up(&places).await;
        if let Err(trouble) = looked
            && found.trouble.is_empty()
        {
            found.trouble = trouble;
        }
        self.addresses.retain(|place, _| places.contains(place));
        let addresses = places.iter().filter_map(|place| self.addresses.get(place));
        for address in addresses.flatten() {
            if !found.registries.contains(address) {
                found.registries.push(*address);
            }
        }
        if !found.trouble.is_empty() {
            pause = RETRY_PAUSE;
        }
        (found, pause)
    }

    /// Looks all `places` up at the same time. Where that fails, what was found before stays.
    async fn look_up(&mut self, places: &[String]) -> Result<(), String> {
        let mut looks = JoinSet::new();
        for place in places.iter().cloned() {
            looks.spawn(async move {
                let looked = timeout(NAME_WAIT, addresses_of(&place)).await;
                (place, looked)
            });
        }
        let mut trouble = BTreeMap::new();
        while let Some(looked) = looks.join_next().await {
            // Fails only when this runtime stops.
            let Ok((place, looked)) = looked else {
                continue;
            };
            let told = match looked {
                Ok(Ok(addresses)) => {
                    self.addresses.insert(place, addresses);
                    continue;
                }
                Ok(Err(error)) => format!("registry {place}: {error}"),
                Err(_) => format!("registry {place}: DNS does not answer"),
            };
            trouble.insert(place, told);
        }
        // The same sentence each time, whoever answers first.
        trouble.into_values().next().map_or(Ok(()), Err)
    }

    async fn ask(&mut self, domain: &HostName) -> Result<Said, String> {
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
        Ok(Said {
            records: records.take(RECORDS_MAX).collect(),
            valid_until: answer.valid_until(),
        })
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

async fn addresses_of(place: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(lookup_host(place).await?.collect())
}

/// What SRV records are asked for (RFC 2782: service and protocol before the domain).
const SERVICE: &str = "_levee-registry._tcp";
/// A community has a few registries.
const RECORDS_MAX: usize = 16;
/// The addresses of names are looked up as often too, and their records live as long as they like.
const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// However short the records live: a community of a thousand sites asks 500 times a second.
const LOOK_PERIOD_MIN: Duration = Duration::from_secs(2);
const RETRY_PAUSE: Duration = Duration::from_secs(5);
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// The system's resolver turns to the second name server when the first has been silent for 5 s.
const NAME_WAIT: Duration = Duration::from_secs(12);

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

    #[tokio::test]
    async fn a_place_that_cannot_be_looked_up_any_more_stays_where_it_was() {
        let (known, _found) = watch::channel(Found::default());
        let places = ["127.0.0.1:7070", "a place without a port"].map(str::to_owned);
        let old: SocketAddr = "192.0.2.7:7070".parse().expect("an address");
        let mut finder = Finder {
            places: RegistryPlaces {
                list: places.to_vec(),
                domain: None,
            },
            resolver: None,
            random: Random::from_seed(1),
            records: vec![],
            ordered: vec![],
            addresses: BTreeMap::from([(places[1].clone(), vec![old])]),
            known,
        };
        let (found, pause) = finder.look().await;
        let first: SocketAddr = places[0].parse().expect("an address");
        assert_eq!(found.registries, [first, old]);
        let told = "registry a place without a port: ";
        assert!(found.trouble.starts_with(told), "{}", found.trouble);
        assert_eq!(pause, RETRY_PAUSE);
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
