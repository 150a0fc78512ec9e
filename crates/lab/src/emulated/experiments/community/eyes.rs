//! Looks at everybody five times a second by the cables of the watch, and remembers what they said.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime;

use super::super::super::LabError;
use super::super::super::servers::watcher;
use crate::demo::watch::{self, LifetimeSeen, PeerSeen, RatesSeen};

/// What a site says of itself, as far as it matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SiteSeen {
    /// Rates of its last control interval.
    pub rates: RatesSeen,
    /// What it counted since it was started.
    pub lifetime: LifetimeSeen,
    /// Who rescues it.
    pub rescue_servers: Vec<PeerSeen>,
    /// Whom it would ask.
    pub candidates: Vec<(String, u64)>,
    /// What it found when it looked at what others deliver.
    pub integrity: IntegritySeen,
    /// The member list that it has.
    pub trust: TrustSeen,
    /// How it stands with the registries.
    pub registry: ConnectionSeen,
    /// Certificates that it gets by itself.
    pub certificates: Vec<CertificateSeen>,
}

/// What a site found out about others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct IntegritySeen {
    /// Looks, by what they showed.
    pub looks: BTreeMap<String, u64>,
    /// Members that altered something.
    pub expelled: Vec<ExpelledSeen>,
}

/// One of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExpelledSeen {
    /// Its name.
    pub member: String,
}

/// The member list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TrustSeen {
    /// Its number.
    pub serial: u64,
}

/// How a site stands with the registries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ConnectionSeen {
    /// Whether its last exchange with one went well.
    pub connected: bool,
}

/// A certificate.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CertificateSeen {
    /// `valid` once it is there.
    pub state: String,
}

/// What a registry says of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RegistrySeen {
    /// Sites that are registered.
    pub entries: u64,
    /// Which they are.
    pub sites: Vec<RegisteredSeen>,
    /// The other registries, and itself.
    pub peers: Vec<MeshPeerSeen>,
}

/// A site that a registry knows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RegisteredSeen {
    /// Its name.
    pub site: String,
}

/// How a registry stands with another one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct MeshPeerSeen {
    /// `linked`, `away` or `self`.
    pub state: String,
    /// Since both knew the same.
    pub agreed_seconds_ago: Option<f64>,
}

impl RegistrySeen {
    /// Whether the site of this name is registered.
    pub fn knows(&self, name: &str) -> bool {
        self.sites.iter().any(|one| one.site == name)
    }

    /// Whether it has known the same as all others at some time in the last `seconds`.
    pub fn agreed_within(&self, seconds: f64) -> bool {
        let mut others = self.peers.iter().filter(|peer| peer.state != "self");
        others.all(|peer| {
            let agreed = peer.agreed_seconds_ago;
            peer.state == "linked" && agreed.is_some_and(|ago| ago < seconds)
        })
    }
}

/// One look at everybody; who said nothing is not in it.
#[derive(Clone, Debug)]
pub struct Glance {
    /// When it began.
    pub at: Instant,
    /// The registries, by host.
    pub registries: BTreeMap<String, RegistrySeen>,
    /// The sites, by host.
    pub sites: BTreeMap<String, SiteSeen>,
}

/// Whom to look at: hosts and their admin pages.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Registries.
    pub registries: Vec<(String, SocketAddr)>,
    /// Sites.
    pub sites: Vec<(String, SocketAddr)>,
}

/// A thread that looks. Dropped, it ends.
#[derive(Debug)]
pub struct Eyes {
    glances: Arc<Mutex<Vec<Glance>>>,
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Time between two glances.
const PERIOD: Duration = Duration::from_millis(200);

impl Eyes {
    /// Begins to look.
    pub fn open(watched: Watched) -> Result<Self, LabError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let glances: Arc<Mutex<Vec<Glance>>> = Arc::default();
        let enough = Arc::new(AtomicBool::new(false));
        let (book, stop) = (Arc::clone(&glances), Arc::clone(&enough));
        let thread = thread::Builder::new()
            .name("eyes".to_owned())
            .spawn(move || runtime.block_on(look_on(&watched, &book, &stop)))
            .map_err(LabError::machine("start"))?;
        Ok(Self {
            glances,
            enough,
            thread: Some(thread),
        })
    }

    /// All that was seen up to now, oldest first.
    pub fn glances(&self) -> Vec<Glance> {
        let glances = self.glances.lock();
        glances.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first glance not before `since` of which `holds` is true, as soon as there is one.
    pub fn until(
        &self,
        what: &'static str,
        (since, within): (Instant, Duration),
        holds: impl Fn(&Glance) -> bool,
    ) -> Result<Glance, LabError> {
        let end = Instant::now() + within;
        loop {
            let glances = self.glances.lock();
            let glances = glances.unwrap_or_else(PoisonError::into_inner);
            let mut later = glances.iter().filter(|glance| glance.at >= since);
            if let Some(found) = later.find(|glance| holds(glance)) {
                return Ok(found.clone());
            }
            drop(glances);
            if Instant::now() >= end {
                return Err(LabError::Awaited(what));
            }
            thread::sleep(PERIOD / 4);
        }
    }
}

impl Drop for Eyes {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed already.
            let _ = thread.join();
        }
    }
}

async fn look_on(watched: &Watched, book: &Mutex<Vec<Glance>>, enough: &AtomicBool) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    while !enough.load(Ordering::Relaxed) {
        ticks.tick().await;
        let at = Instant::now();
        let (registries, sites) = tokio::join!(all(&watched.registries), all(&watched.sites));
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        book.push(Glance {
            at,
            registries,
            sites,
        });
    }
}

async fn all<T: DeserializeOwned>(admins: &[(String, SocketAddr)]) -> BTreeMap<String, T> {
    let look = async |(name, admin): &(String, SocketAddr)| {
        let seen = watch::look(&watcher(*admin), *admin).await?;
        Some((name.clone(), seen))
    };
    let seen = join_all(admins.iter().map(look)).await;
    seen.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_agrees_when_it_agrees_with_everybody() {
        let peer = |state: &str, ago| MeshPeerSeen {
            state: state.to_owned(),
            agreed_seconds_ago: ago,
        };
        let seen = |peers| RegistrySeen {
            entries: 3,
            sites: Vec::new(),
            peers,
        };
        let itself = || peer("self", None);
        assert!(seen(vec![itself(), peer("linked", Some(1.0))]).agreed_within(2.0));
        assert!(!seen(vec![itself(), peer("linked", Some(3.0))]).agreed_within(2.0));
        assert!(!seen(vec![peer("linked", Some(1.0)), peer("away", None)]).agreed_within(2.0));
    }
}
