//! Settings as values: what the rest of the server reads.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use levee_control::{Drills, Redirects};
use levee_net::ListenAddress;
use levee_observe::LogTarget;
use levee_proxy::{MinVersion, PairFiles, Wishes};
use levee_vocab::{AddressBlock, ByteRate, HostName};

use super::acme::AcmeSettings;
use super::crawlers::CrawlerSettings;
use super::dns::{AliasZone, DnsSettings};
use super::help::HelpSettings;
use super::hot_spots::HotSpotSettings;
use super::integrity::IntegritySettings;
use super::trust::TrustSettings;
use super::upstream::UpstreamTable;
use crate::registry_finder::RegistryPlaces;

/// Everything that the operator decided, or that the defaults decided for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The site.
    pub site: SiteSettings,
    /// Applications behind it, and how long fetches may take.
    pub upstream: UpstreamTable,
    /// What is done about hot spots.
    pub hot_spots: HotSpotSettings,
    /// Who is a crawler, and what they get.
    pub crawlers: CrawlerSettings,
    /// What others may do without us, and how often they are looked at.
    pub integrity: IntegritySettings,
    /// HTTPS; none where there is no certificate.
    pub tls: Option<TlsSettings>,
    /// Where certificates are ordered; none where nobody orders any.
    pub acme: Option<AcmeSettings>,
    /// Its link.
    pub link: LinkSettings,
    /// Its community; none where it stands alone.
    pub community: Option<CommunitySettings>,
    /// The zone of its name; none where it is left alone.
    pub dns: Option<DnsSettings>,
    /// Where its aliases are registered; none where a wildcard record stands for them.
    pub alias_zone: Option<AliasZone>,
    /// Whom it trusts there.
    pub trust: TrustSettings,
    /// Rescue control.
    pub rescue: RescueSettings,
    /// What is given to others at most.
    pub help: HelpSettings,
    /// The object cache.
    pub cache: CacheSettings,
    /// Limits on visitors.
    pub limits: LimitSettings,
    /// Address of the admin pages.
    pub admin: SocketAddr,
    /// Names by which the admin pages may be asked for, beside `localhost` and addresses.
    pub admin_names: Vec<HostName>,
    /// Logs.
    pub log: LogSettings,
    /// Folder for what must outlive a crash.
    pub state_folder: Option<PathBuf>,
}

/// The site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSettings {
    /// Its own name.
    pub name: HostName,
    /// Further names.
    pub also: Vec<HostName>,
    /// Where visitors are served.
    pub listen: Vec<ListenAddress>,
    /// Permission bits of those in the file system.
    pub unix_mode: u32,
    /// Those of them where connections begin with a PROXY header.
    pub proxied: Vec<ListenAddress>,
    /// Whose word on visitors is believed.
    pub trusted: Vec<AddressBlock>,
    /// Port that visitors use; 0 means that of the first listener.
    pub port: u16,
    /// What is served.
    pub content: Content,
    /// What happens to other names.
    pub unknown_host: UnknownHost,
    /// Who may purge by HTTP.
    pub purge_from: Vec<AddressBlock>,
    /// Cookies that say nothing about a visitor, beside those that are known.
    pub shared_cookies: Vec<String>,
    /// Threads; 0 means chosen by the machine and the link.
    pub cores: usize,
}

/// What a site serves.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Files of a folder.
    Folder(PathBuf),
    /// What an application answers; where it is stands in [`Settings::upstream`].
    Upstream,
}

/// What happens to a request for a name that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownHost {
    /// It gets the site.
    Serve,
    /// It gets 421.
    Refuse,
}

/// HTTPS.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    /// Where visitors are served.
    pub listen: Vec<ListenAddress>,
    /// One certificate with its key.
    pub pair: Option<PairFiles>,
    /// Folder with more.
    pub folder: Option<PathBuf>,
    /// Oldest version.
    pub min_version: MinVersion,
    /// Whether visitors who come by HTTP are sent on.
    pub redirect: bool,
    /// The port that they are sent to; 0 means that of the first listener.
    pub port: u16,
}

impl TlsSettings {
    /// Takes from `old` what takes effect only at the next start.
    pub fn keep_fixed(&mut self, old: &Self) {
        self.listen.clone_from(&old.listen);
        self.redirect = old.redirect;
        self.port = old.port;
    }
}

/// The outbound link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// B; none where it is to be measured.
    pub rate: Option<ByteRate>,
    /// U.
    pub usable: f64,
    /// Bytes of a connection beside its response.
    pub overhead: u64,
}

/// The community.
#[derive(Clone, Debug, PartialEq)]
pub struct CommunitySettings {
    /// The registries.
    pub registries: RegistryPlaces,
    /// Where others ask for help.
    pub rescue_listen: SocketAddr,
    /// Our address for others, where it is not found by itself.
    pub address: Option<IpAddr>,
    /// Domain of the aliases.
    pub alias_domain: HostName,
    /// First label of the aliases.
    pub alias_host: String,
    /// Whether private addresses are believed.
    pub allow_private: bool,
    /// Whether it takes part in the drills of others.
    pub drills: Drills,
}

/// Rescue control; ranges are checked by `control::Parameters`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RescueSettings {
    /// T_low, T_alert, T_high, T_coff.
    pub thresholds: [f64; 4],
    /// I_ctrl.
    pub interval: Duration,
    /// N_low.
    pub low_intervals: u32,
    /// Idle time of our rescue servers.
    pub idle_max: Duration,
    /// Lifetime of our objects at rescue servers.
    pub object_ttl: Duration,
    /// How long an alias redirects back.
    pub alias_keep: Duration,
    /// Files from this size go by URL.
    pub large_file: u64,
    /// Most rescue servers.
    pub servers_max: usize,
    /// Whether visitors are redirected.
    pub redirects: Redirects,
    /// Time between registrations.
    pub registry_period: Duration,
    /// Longest wait for capacity.
    pub wait_max: Duration,
}

/// The object cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSettings {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// Largest object in memory.
    pub object_memory_max: u64,
    /// How long stale objects stand in for a dead origin.
    pub stale_if_error: Duration,
    /// Whether visitors' wishes are met.
    pub wishes: Wishes,
    /// Requests that make an object hot; none where nothing is renewed early.
    pub refresh_hits: Option<u16>,
}

/// Limits on visitors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitSettings {
    /// Open connections.
    pub connections: usize,
    /// Time for a head.
    pub head_time: Duration,
    /// Time without a request.
    pub idle_time: Duration,
    /// Longest head of a request.
    pub head_bytes: usize,
    /// Most tunnels.
    pub tunnels: usize,
    /// Time that a tunnel may stand still.
    pub tunnel_idle_time: Duration,
}

/// Logs.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// Where access lines go.
    pub access: LogTarget,
    /// Whether they are JSON.
    pub json: bool,
}
