//! What a site does with DNS: keeps its own name equal to who serves it.
//!
//! What is to be in the name follows from the route plan alone, so nobody sends events: a task of
//! its own watches the plans, and `levee_dns::Keeper` decides. Servers never speak to each other by
//! names that rotate: addresses stand in SOS, its answer and the registry.

mod name_task;
mod records;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levee_control::RoutePlan;
use levee_dns::{DomainName, KeptName, RemoteZone, TsigKey, Zone};
use levee_observe::DnsStatus;
use tokio::sync::watch;

use self::name_task::{NameState, NameTask};
use self::records::Records;
use crate::settings::{DnsSettings, NameServer, Settings};
use crate::state::StateFolder;

/// How long a server that stops waits until its rescue servers are out of its name.
const FAREWELL_MAX: Duration = Duration::from_secs(3);

/// The zone of the site, and its name in it.
#[derive(Debug)]
pub struct Dns {
    server: String,
    zone: Arc<dyn Zone>,
    name: Option<Name>,
}

#[derive(Debug)]
struct Name {
    name: DomainName,
    /// Why rescue servers are not put in; empty where they are.
    unused: &'static str,
    told: watch::Receiver<NameState>,
}

/// What the name's keeper needs of the node.
pub struct Surroundings<'a> {
    /// The site's own address.
    pub own: IpAddr,
    /// The port that visitors use.
    pub port: u16,
    /// Whether visitors come by HTTPS.
    pub https: Https,
    /// What is written down there outlives a crash.
    pub state: Option<&'a StateFolder>,
    /// Who helps.
    pub plans: watch::Receiver<Arc<RoutePlan>>,
    /// Seed of the jitter.
    pub seed: u64,
}

/// Whether visitors come by HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Https {
    /// They do: a rescue server has no certificate for the name.
    Served,
    /// Nobody does.
    NotServed,
}

/// Reads the key in `path`.
///
/// # Errors
/// A sentence that names the file.
pub fn read_key(path: &Path) -> Result<TsigKey, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("dns.key: cannot read {name}: {error}; make it by `tsig-keygen NAME > {name}`")
    })?;
    text.parse()
        .map_err(|error| format!("dns.key: {name}: {error}"))
}

/// What of `settings` cannot work, as far as it can be told without a server.
pub fn check(settings: &Settings) -> Option<String> {
    let dns = settings.dns.as_ref()?;
    match &dns.server {
        NameServer::Remote { key, .. } => read_key(key).err(),
    }
}

impl Dns {
    /// Starts to keep the site's name, where there is anything to keep. Needs a tokio runtime.
    ///
    /// # Errors
    /// A sentence: a key that cannot be read, a state folder that is damaged.
    pub fn start(settings: &Settings, around: Surroundings<'_>) -> Result<Option<Self>, String> {
        let Some(dns) = &settings.dns else {
            return Ok(None);
        };
        let (server, zone) = open(dns)?;
        let name = match (&settings.community, around.state) {
            (Some(_), Some(state)) => Some(keep(settings, dns, &zone, around, state)?),
            _ => None,
        };
        Ok(Some(Self { server, zone, name }))
    }

    /// The zone, for whoever else has records in it.
    pub fn zone(&self) -> Arc<dyn Zone> {
        Arc::clone(&self.zone)
    }

    /// How it stands with the name, for people.
    pub fn status(&self) -> Option<DnsStatus> {
        let name = self.name.as_ref()?;
        let state = name.told.borrow();
        Some(state.status(&name.name, &self.server, name.unused))
    }

    /// Waits until no rescue server is in the name any more, but not for long.
    ///
    /// Cancel safety: may be dropped at any time.
    pub async fn finish(&self) {
        let Some(name) = &self.name else { return };
        let mut told = name.told.clone();
        let empty = told.wait_for(NameState::is_empty);
        if !matches!(tokio::time::timeout(FAREWELL_MAX, empty).await, Ok(Ok(_))) {
            tracing::warn!(
                "rescue servers are still in {}: they are taken out at the next start",
                name.name
            );
        }
    }
}

fn open(dns: &DnsSettings) -> Result<(String, Arc<dyn Zone>), String> {
    let zone = DomainName::from(&dns.zone);
    match &dns.server {
        NameServer::Remote { server, key } => {
            let remote = RemoteZone::new(*server, zone, read_key(key)?);
            Ok((server.to_string(), Arc::new(remote)))
        }
    }
}

fn keep(
    settings: &Settings,
    dns: &DnsSettings,
    zone: &Arc<dyn Zone>,
    around: Surroundings<'_>,
    state: &StateFolder,
) -> Result<Name, String> {
    let name = DomainName::from(&settings.site.name);
    let (records, before) = Records::open(state).map_err(|error| error.to_string())?;
    let records = Arc::new(records);
    let task = |kept: KeptName, seed: u64| NameTask {
        ours: before.get(&kept.name).cloned().unwrap_or_default(),
        kept,
        zone: Arc::clone(zone),
        records: Arc::clone(&records),
        plans: None,
        port: around.port,
        seed,
    };
    // A site that was renamed: what it left behind in its old name goes, and nothing comes.
    for (nth, old) in before.keys().filter(|old| **old != name).enumerate() {
        let kept = KeptName {
            name: old.clone(),
            own: Default::default(),
            ttl: dns.ttl,
        };
        task(kept, around.seed.wrapping_add(1 + nth as u64)).start();
    }
    let mut own = task(
        KeptName {
            name: name.clone(),
            own: [around.own.to_canonical()].into(),
            ttl: dns.ttl,
        },
        around.seed,
    );
    let unused = match around.https {
        Https::Served => {
            "visitors come by HTTPS, for which rescue servers have no certificate of this name; \
             they are redirected instead"
        }
        Https::NotServed => {
            own.plans = Some(around.plans);
            ""
        }
    };
    let told = own.start();
    Ok(Name { name, unused, told })
}
