//! Parts of a node, made from its settings.
//!
//! One function a part, so that what a setting leads to is found in one place.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use levee_control::{AliasRecord, GivenRecord, RoutePlan};
use levee_observe::{AccessLog, AccessLogThread, LogFormat};
use levee_proxy::{
    Bound, DiskSettings, FetchSettings, Folder, Publisher, SharedCookies, Site, SiteTable,
    Upstream, Upstreams,
};
use levee_registry::PrivateAddresses;
use levee_trust::Role;
use levee_vocab::{ByteRate, Random, WebAddress};
use tokio::sync::{mpsc, watch};

use super::{Parts, seed};
use crate::admin::AdminLimits;
use crate::brain_task::Order;
use crate::dns::{self, Dns, NameSockets};
use crate::drill::{Doors, DrillOffice};
use crate::https::HttpsPorts;
use crate::registry_finder::{self, KnownRegistries};
use crate::replicator::CopiedSite;
use crate::settings::{CommunitySettings, Content, Settings, TrustSettings, UnknownHost};
use crate::state::StateFolder;
use crate::trust::{ListSources, Trust};

/// What an interface that does not tell its speed is taken for: 100 Mbit/s.
const UNKNOWN_LINK: ByteRate = ByteRate::from_kilobytes(12_500);

/// Starts to look for the registries of our community.
pub(super) fn find_registries(settings: &Settings) -> KnownRegistries {
    match &settings.community {
        Some(community) => {
            let random = Random::from_seed(super::seed());
            registry_finder::start(community.registries.clone(), None, random)
        }
        None => registry_finder::fixed(vec![]),
    }
}

/// Our own key and the members of our community. A site that stands alone has no use for a key that
/// lasts.
pub(super) fn trust(settings: &Settings) -> Result<Arc<Trust>, String> {
    let alone = TrustSettings::default();
    let trusted = match &settings.community {
        Some(_) => &settings.trust,
        None => &alone,
    };
    let state = settings.state_folder.as_deref();
    let trust = Trust::open(trusted, state)?;
    Ok(Arc::new(trust.named(settings.site.name.clone())))
}

/// Where newer member lists come from.
pub(super) fn list_sources(settings: &Settings, registries: &KnownRegistries) -> ListSources {
    ListSources {
        registries: registries.clone(),
        period: settings.rescue.registry_period,
        role: Role::Site,
    }
}

impl Parts {
    /// Where drills of this site are ordered. Their visitors, on this machine, come to the first
    /// address that the site listens at; where it listens in the file system only, to where it says
    /// that it is.
    pub(super) fn drill_office(
        &self,
        front: &Bound,
        orders: mpsc::Sender<Order>,
    ) -> Arc<DrillOffice> {
        let first = front.local_addresses().first().copied();
        let tls = self.settings.tls.as_ref();
        let secure = front.local_tls_addresses().first().copied();
        let is_sent_on = tls.is_some_and(|tls| tls.redirect) || first.is_none();
        let doors = Doors {
            site: self.web.clone(),
            address: here(first.unwrap_or(SocketAddr::new(self.address, self.web.port))),
            secure: secure.filter(|_| is_sent_on).map(here),
            https: https_ports(self),
        };
        Arc::new(DrillOffice::new(orders, doors, Arc::clone(&self.trust)))
    }
}

/// How somebody on this machine comes to who listens at `address`.
fn here(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// What a run before this one left in the state folder: aliases, and what it gave to others.
pub(super) fn kept(state: &StateFolder) -> Result<(Vec<AliasRecord>, Vec<GivenRecord>), String> {
    let aliases = state.aliases().map_err(|error| error.to_string())?;
    let given = state.given(SystemTime::now());
    Ok((aliases, given.map_err(|error| error.to_string())?))
}

/// The fastest interface that is up, as the kernel tells it; the measurement comes down from there.
pub(super) fn interface_speed() -> ByteRate {
    let speed = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        let is_up = std::fs::read_to_string(path.join("operstate")).ok()?.trim() == "up";
        let megabits: u64 = std::fs::read_to_string(path.join("speed"))
            .ok()?
            .trim()
            .parse()
            .ok()?;
        (is_up && megabits > 0).then(|| ByteRate::from_kilobytes(megabits * 125))
    };
    let interfaces = std::fs::read_dir("/sys/class/net").into_iter().flatten();
    interfaces.filter_map(speed).max().unwrap_or(UNKNOWN_LINK)
}

pub(super) fn sites(
    settings: &Settings,
    web: &WebAddress,
    upstreams: &Arc<Upstreams>,
) -> Result<SiteTable, String> {
    let content = match &settings.site.content {
        Content::Folder(path) => {
            let folder = Folder::open(path).map_err(|error| error.to_string())?;
            levee_proxy::Content::Folder(Arc::new(folder))
        }
        Content::Upstream => levee_proxy::Content::Upstream(Upstream {
            servers: Arc::clone(upstreams),
            authority: None,
        }),
    };
    let site = Site {
        name: web.clone(),
        other_names: settings.site.also.clone(),
        content,
    };
    let unknown = match settings.site.unknown_host {
        UnknownHost::Serve => levee_proxy::UnknownHost::Serve,
        UnknownHost::Refuse => levee_proxy::UnknownHost::Refuse,
    };
    let table = SiteTable::new(vec![site], unknown);
    let table = table.with_purge_from(settings.site.purge_from.clone());
    let table = table.trusting(settings.site.trusted.clone());
    let table = table.sharing(SharedCookies::with(&settings.site.shared_cookies));
    let group = &settings.upstream.group;
    let places = group.rules.outstanding_max as usize * group.list.len().max(1);
    Ok(
        match settings.crawlers.rules(places, super::cores(settings)) {
            Some(rules) => table.rationing(rules),
            None => table,
        },
    )
}

/// The site's name in DNS, where it is kept.
pub(super) fn start_dns(
    parts: &Parts,
    sockets: Option<NameSockets>,
    plans: watch::Receiver<Arc<RoutePlan>>,
) -> Result<Option<Arc<Dns>>, String> {
    let around = dns::Surroundings {
        own: parts.address,
        port: parts.web.port,
        https: match parts.https {
            Some(_) => dns::Https::Served,
            None => dns::Https::NotServed,
        },
        state: parts.state.as_ref(),
        plans,
        seed: seed(),
    };
    let dns = Dns::start(&parts.settings, sockets, around)?;
    Ok(dns.map(Arc::new))
}

/// Where visitors by HTTPS are answered, as they see it from outside.
pub(super) fn https_ports(parts: &Parts) -> HttpsPorts {
    match (&parts.https, https_seen(&parts.settings, parts.https_port)) {
        (Some(https), Some(port)) => HttpsPorts::of(https, &parts.settings, port),
        (Some(_) | None, _) => HttpsPorts::default(),
    }
}

/// The port for visitors by HTTPS: `tls.port`, or where we listen.
pub(super) fn https_seen(settings: &Settings, bound: Option<u16>) -> Option<u16> {
    let given = settings.tls.as_ref().map(|tls| tls.port);
    given.filter(|&port| port > 0).or(bound)
}

/// What the replicator needs to know of the site.
pub(super) fn copied(
    settings: &Settings,
    (web, https): (&WebAddress, Option<u16>),
    publisher: Option<Arc<Publisher>>,
) -> CopiedSite {
    CopiedSite {
        web: web.clone(),
        https,
        names: settings.site.also.clone(),
        links: settings.hot_spots.links,
        publisher,
    }
}

pub(super) fn fetch_settings(settings: &Settings) -> FetchSettings {
    let disk = settings.state_folder.as_ref().map(|folder| DiskSettings {
        folder: folder.join("cache"),
        limit: settings.cache.disk,
        object_max: settings.cache.disk,
    });
    let times = settings.upstream.times;
    FetchSettings {
        memory: settings.cache.memory,
        memory_object_max: settings.cache.object_memory_max,
        disk,
        connect_timeout: times.connect,
        first_byte_timeout: times.first_byte,
        body_timeout: times.between_bytes,
        total_timeout: times.whole,
        idle_timeout: times.idle,
        idle_connections_per_source: settings.upstream.idle_connections,
        stale_if_error: settings.cache.stale_if_error,
        refresh_hits: settings.cache.refresh_hits,
        wishes: settings.cache.wishes,
        tunnels_max: settings.limits.tunnels,
        ..FetchSettings::default()
    }
}

pub(super) fn admin_limits(settings: &Settings) -> AdminLimits {
    let names = settings.admin_names.iter().map(ToString::to_string);
    AdminLimits {
        hosts: names.collect(),
        ..AdminLimits::default()
    }
}

pub(super) fn access_log(settings: &Settings) -> Result<(AccessLog, AccessLogThread), String> {
    let format = match settings.log.json {
        true => LogFormat::Json,
        false => LogFormat::Combined,
    };
    AccessLog::start(settings.log.access.clone(), format).map_err(|error| error.to_string())
}

pub(super) fn private_addresses(community: &CommunitySettings) -> PrivateAddresses {
    match community.allow_private {
        true => PrivateAddresses::Permitted,
        false => PrivateAddresses::Refused,
    }
}
