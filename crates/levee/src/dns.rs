//! What a site does with DNS: keeps its own name equal to who serves it.
//!
//! What is to be in the name follows from the route plan alone, so nobody sends events: a task of
//! its own watches the plans, and `levee_dns::Keeper` decides. Servers never speak to each other by
//! names that rotate: addresses stand in SOS, its answer and the registry.

mod alias_names;
mod community_zone;
mod name_task;
mod own_server;
mod records;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levee_control::RoutePlan;
use levee_dns::{Addresses, Counts, DomainName, KeptName, OwnZone, RemoteZone, TsigKey, Zone};
use levee_observe::{DnsStatus, NameServerStatus};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::alias_names::{AliasNames, alias_zone};
use self::community_zone::UPDATES_FILE;
use self::name_task::{NameState, NameTask};
pub use self::own_server::{NameSockets, NewZone};
use self::own_server::{SERIAL_FILE, check_serial, open_zone, serial_file};
use self::records::Records;
use crate::command::NameServerOrder;
use crate::settings::{AnswerOrder, DnsSettings, NameServer, Settings};
use crate::state::StateFolder;

/// How long a server that stops waits until its rescue servers are out of its name.
const FAREWELL_MAX: Duration = Duration::from_secs(3);

/// The zone of the site, and its name in it.
#[derive(Debug)]
pub struct Dns {
    server: String,
    zone: Arc<dyn Zone>,
    /// Where we keep the zone ourselves.
    own: Option<OwnZone>,
    tasks: Vec<JoinHandle<()>>,
    name: DomainName,
    /// Why rescue servers are not put in; empty where they are.
    unused: &'static str,
    told: Option<watch::Receiver<NameState>>,
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
        NameServer::Own(own) => open_zone((DomainName::from(&dns.zone), own), None, 0).err(),
    }
}

/// Why rescue servers are not put into the name of a member with these settings, where that is so.
pub fn unused(settings: &Settings) -> Option<&'static str> {
    let is_member = settings.community.is_some() && settings.state_folder.is_some();
    let is_unused = settings.dns.is_some() && is_member && settings.tls.is_some();
    is_unused.then_some(BY_HTTPS)
}

const BY_HTTPS: &str = "visitors come by HTTPS, for which rescue servers have no certificate of \
                        this name; they are redirected instead";

/// What an earlier run wrote down of DNS and this one could not read.
pub fn check_kept(settings: &Settings, state: &StateFolder) -> Vec<String> {
    let records = Records::open(state).map(drop);
    let records = records.map_err(|error| error.to_string());
    let serial = match &settings.dns {
        Some(dns) => match &dns.server {
            NameServer::Own(_) => check_serial(&DomainName::from(&dns.zone), state),
            NameServer::Remote { .. } => Ok(()),
        },
        None => Ok(()),
    };
    records.err().into_iter().chain(serial.err()).collect()
}

/// What of DNS is in the state folder and is read by no server with these settings.
pub fn leftovers(settings: &Settings, state: &Path) -> Vec<String> {
    let own = settings.dns.as_ref().and_then(|dns| match &dns.server {
        NameServer::Own(_) => Some(serial_file(&DomainName::from(&dns.zone))),
        NameServer::Remote { .. } => None,
    });
    let files = std::fs::read_dir(state).into_iter().flatten();
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    // Where a crash cut its writing short, a half is left beside it until the next.
    let is_own = |name: &String| {
        let own = own.as_deref();
        own.is_some_and(|own| name.strip_suffix(".new").unwrap_or(name) == own)
    };
    let strays = names.filter(|name| !is_own(name));
    let told = strays.filter_map(|name| {
        let shown = state.join(&name);
        let shown = shown.display();
        if let Some(zone) = name.strip_prefix(SERIAL_FILE) {
            return Some(format!(
                "{shown} is left over from the zone {zone}, which [dns] does not name any more; \
                 it does no harm, and can be deleted"
            ));
        }
        let zone = name.strip_prefix(UPDATES_FILE)?;
        Some(format!(
            "{shown} belongs to a `levee dns` of the zone {zone}; where none runs any more it \
             does no harm, and can be deleted"
        ))
    });
    told.collect()
}

impl Dns {
    /// Starts to keep the site's name, and to serve its zone at `sockets` where we keep it
    /// ourselves. Needs a tokio runtime.
    ///
    /// # Errors
    /// A sentence: a file that cannot be used, a state folder that is damaged.
    pub fn start(
        settings: &Settings,
        sockets: Option<NameSockets>,
        around: Surroundings<'_>,
    ) -> Result<Option<Self>, String> {
        let Some(dns) = &settings.dns else {
            return Ok(None);
        };
        let name = DomainName::from(&settings.site.name);
        let mut started = Self::open(dns, sockets, name, &around)?;
        let (Some(_), Some(state)) = (&settings.community, around.state) else {
            started.unused = "the site has no community";
            return Ok(Some(started));
        };
        if around.https == Https::Served {
            started.unused = BY_HTTPS;
        }
        started.told = Some(started.keep(dns, around, state)?);
        Ok(Some(started))
    }

    fn open(
        dns: &DnsSettings,
        sockets: Option<NameSockets>,
        name: DomainName,
        around: &Surroundings<'_>,
    ) -> Result<Self, String> {
        let zone = DomainName::from(&dns.zone);
        let (server, zone, own): (String, Arc<dyn Zone>, _) = match &dns.server {
            NameServer::Remote { server, key } => {
                let remote = RemoteZone::new(*server, zone, read_key(key)?);
                (server.to_string(), Arc::new(remote), None)
            }
            NameServer::Own(own) => {
                let own = open_zone((zone, own), around.state.cloned(), around.seed)?;
                ("of this server".into(), Arc::new(own.clone()), Some(own))
            }
        };
        let tasks = match (sockets, &own) {
            (Some(sockets), Some(own)) => sockets.serve(own)?,
            (None, _) | (_, None) => vec![],
        };
        Ok(Self {
            server,
            zone,
            own,
            tasks,
            name,
            unused: "",
            told: None,
        })
    }

    fn keep(
        &self,
        dns: &DnsSettings,
        around: Surroundings<'_>,
        state: &StateFolder,
    ) -> Result<watch::Receiver<NameState>, String> {
        let (records, before) = Records::open(state).map_err(|error| error.to_string())?;
        let records = Arc::new(records);
        let task = |name: &DomainName, own: Addresses, seed: u64| NameTask {
            ours: before.get(name).cloned().unwrap_or_default(),
            kept: KeptName {
                name: name.clone(),
                own,
                ttl: dns.ttl,
            },
            zone: Arc::clone(&self.zone),
            records: Arc::clone(&records),
            plans: None,
            weighted: None,
            port: around.port,
            seed,
        };
        // A site that was renamed: what it left behind in its old name goes, and nothing comes.
        for (nth, old) in before.keys().filter(|old| **old != self.name).enumerate() {
            task(
                old,
                Addresses::new(),
                around.seed.wrapping_add(1 + nth as u64),
            )
            .start();
        }
        let mut own = task(&self.name, [around.own.to_canonical()].into(), around.seed);
        if self.unused.is_empty() {
            own.plans = Some(around.plans);
        }
        if dns.order() == AnswerOrder::Weighted {
            own.weighted.clone_from(&self.own);
        }
        Ok(own.start())
    }

    /// Reads the zone file of `settings` again; nothing is in force yet. None where another server
    /// keeps the zone.
    ///
    /// # Errors
    /// A sentence that names the file and the line; the old zone stays.
    pub fn read_again(&self, settings: &Settings) -> Result<Option<NewZone>, String> {
        let server = settings.dns.as_ref().map(|dns| &dns.server);
        match (&self.own, server) {
            (Some(zone), Some(NameServer::Own(own))) => NewZone::of_site(zone, own).map(Some),
            (Some(_) | None, _) => Ok(None),
        }
    }

    /// The zone, for whoever else has records in it.
    pub fn zone(&self) -> Arc<dyn Zone> {
        Arc::clone(&self.zone)
    }

    /// How it stands with the name, for people.
    pub fn status(&self) -> DnsStatus {
        let mut status = DnsStatus {
            name: self.name.to_string(),
            server: self.server.clone(),
            state: "unused".into(),
            cause: self.unused.to_owned(),
            asked: self.own.as_ref().map(|own| asked(own.counts())),
            ..DnsStatus::default()
        };
        if let Some(told) = &self.told {
            told.borrow().fill(&mut status);
        }
        status
    }

    /// Waits until no rescue server is in the name any more, but not for long. Our own name server
    /// ends after it.
    ///
    /// Cancel safety: may be dropped at any time.
    pub async fn finish(&self) {
        if let Some(told) = &self.told {
            let mut told = told.clone();
            let empty = told.wait_for(NameState::is_empty);
            if !matches!(timeout(FAREWELL_MAX, empty).await, Ok(Ok(_))) {
                let name = &self.name;
                tracing::warn!(%name, "rescue servers are still in it: they go at the next start");
            }
        }
        for task in &self.tasks {
            task.abort();
        }
    }
}

fn asked(counts: Counts) -> NameServerStatus {
    let Counts {
        answers,
        held_back,
        updates,
        refused,
        transfers,
        made_way,
        turned_away,
    } = counts;
    NameServerStatus {
        answers,
        held_back,
        updates,
        refused,
        transfers,
        made_way,
        turned_away,
    }
}

/// `levee dns`: serves a zone of a community.
///
/// # Errors
/// A sentence for the operator.
///
/// Cancel safety: dropped half-way, it has stopped.
pub async fn serve_community_zone(order: &NameServerOrder) -> Result<(), String> {
    community_zone::run(order).await
}

/// A line of the file of names, for `crate::fuzzing`.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed_line(line: &str) {
    let read = records::parse(line);
    assert!(read.is_none() || !line.contains('\n'));
}
