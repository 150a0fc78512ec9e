//! Values into settings: defaults filled in, types and units fixed, everything cross-checked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use levee_control::{Parameters, Thresholds};
use levee_observe::LogTarget;
use levee_vocab::{ByteRate, HostName, WebAddress};

use super::read::{Complaint, SettingsFile};
use super::table;
use super::value::Value;

/// Everything that the operator decided, or that the defaults decided for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The site.
    pub site: SiteSettings,
    /// Its link.
    pub link: LinkSettings,
    /// Its community; none where it stands alone.
    pub community: Option<CommunitySettings>,
    /// Rescue control.
    pub rescue: RescueSettings,
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
    pub listen: Vec<SocketAddr>,
    /// Port that visitors use; 0 means that of the first listener.
    pub port: u16,
    /// What is served.
    pub content: Content,
    /// What happens to other names.
    pub unknown_host: UnknownHost,
    /// Threads; 0 means chosen by the machine and the link.
    pub cores: usize,
}

/// What a site serves.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Files of a folder.
    Folder(PathBuf),
    /// What an application answers at this address; `authority` is its Host.
    Upstream {
        /// `host:port` as it stood in the URL.
        authority: String,
    },
}

/// What happens to a request for a name that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownHost {
    /// It gets the site.
    Serve,
    /// It gets 421.
    Refuse,
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
    /// The registry.
    pub registry: SocketAddr,
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
    /// Most origins.
    pub origins_max: usize,
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
    /// Longest wait for the first byte.
    pub first_byte_max: Duration,
    /// Longest time for a whole answer that many may wait for.
    pub fetch_max: Duration,
    /// How long stale objects stand in for a dead origin.
    pub stale_if_error: Duration,
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
}

/// Logs.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// Where access lines go.
    pub access: LogTarget,
    /// Whether they are JSON.
    pub json: bool,
}

impl Settings {
    /// Fills in the defaults and checks the whole.
    ///
    /// # Errors
    /// All complaints at once, each with its line where it has one.
    pub fn settle(file: &SettingsFile) -> Result<Self, Vec<Complaint>> {
        let values = Values { file };
        let mut complaints = vec![];
        let content = content(&values, &mut complaints);
        let community = community(&values, &mut complaints);
        let settings = Self {
            site: site(&values, content),
            link: LinkSettings {
                rate: values.rate("link.rate"),
                usable: values.share("link.usable"),
                overhead: values.number("link.overhead"),
            },
            community,
            rescue: rescue(&values),
            cache: cache(&values),
            limits: LimitSettings {
                connections: values.number("limits.connections") as usize,
                head_time: values.time("limits.head_time"),
                idle_time: values.time("limits.idle_time"),
            },
            admin: values.socket("admin.listen"),
            admin_names: values.hosts("admin.names"),
            log: LogSettings {
                access: log_target(&values),
                json: values.text("log.format") == "json",
            },
            state_folder: values.path("state.folder"),
        };
        settings.cross_check(file, &mut complaints);
        complaints.sort();
        complaints.dedup();
        if complaints.is_empty() {
            Ok(settings)
        } else {
            Err(complaints)
        }
    }

    /// The settings of rescue control, for a server whose visitors come to `port`, whose peers
    /// reach it at `address`, and whose link carries `link`. Not yet checked.
    pub fn parameters(&self, port: u16, address: IpAddr, link: ByteRate) -> Parameters {
        let site = WebAddress {
            host: self.site.name.clone(),
            port,
        };
        let community = self.community.as_ref();
        let alias_domain = community.map_or(&self.site.name, |community| &community.alias_domain);
        let [low, alert, high, cutoff] = self.rescue.thresholds;
        let mut parameters = Parameters::new(site, address, alias_domain.clone(), link);
        if let Some(community) = community {
            parameters.alias_host = community.alias_host.clone();
            parameters.rescue_port = community.rescue_listen.port();
        }
        parameters.usable = self.link.usable;
        parameters.connection_overhead = self.link.overhead;
        parameters.thresholds = Thresholds {
            low,
            alert,
            high,
            cutoff,
        };
        parameters.interval = self.rescue.interval;
        parameters.low_intervals = self.rescue.low_intervals;
        parameters.idle_max = self.rescue.idle_max;
        parameters.object_ttl = self.rescue.object_ttl;
        parameters.alias_keep = self.rescue.alias_keep;
        parameters.large_file = self.rescue.large_file;
        parameters.rescue_servers_max = self.rescue.servers_max;
        parameters.origins_max = self.rescue.origins_max;
        parameters.registry_period = self.rescue.registry_period;
        parameters
    }

    /// Settings that differ from `old` but take effect only at the next start.
    pub fn restart_needed(&self, old: &Self) -> Vec<&'static str> {
        let differs = [
            ("site.name", self.site.name != old.site.name),
            ("site.listen", self.site.listen != old.site.listen),
            ("site.port", self.site.port != old.site.port),
            ("site.cores", self.site.cores != old.site.cores),
            ("link.rate", self.link.rate != old.link.rate),
            ("[community]", self.community != old.community),
            (
                "rescue.wait_max",
                self.rescue.wait_max != old.rescue.wait_max,
            ),
            ("[cache]", self.cache != old.cache),
            ("[limits]", self.limits != old.limits),
            ("admin.listen", self.admin != old.admin),
            ("admin.names", self.admin_names != old.admin_names),
            ("[log]", self.log != old.log),
            ("state.folder", self.state_folder != old.state_folder),
        ];
        differs
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }

    fn cross_check(&self, file: &SettingsFile, complaints: &mut Vec<Complaint>) {
        let mut taken: Vec<(SocketAddr, &str)> = vec![];
        let rescue = self
            .community
            .as_ref()
            .map(|community| community.rescue_listen);
        let listeners = self
            .site
            .listen
            .iter()
            .map(|&socket| (socket, "site.listen"));
        let others = [
            (Some(self.admin), "admin.listen"),
            (rescue, "community.rescue_listen"),
        ];
        let others = others
            .into_iter()
            .filter_map(|(socket, name)| Some((socket?, name)));
        for (socket, name) in listeners.chain(others) {
            let clash = taken.iter().find(|(other, _)| clashes(*other, socket));
            if let Some((other, by)) = clash {
                let text =
                    format!("{name}: {socket} is taken by `{by}` ({other}); choose another port");
                complaints.push(Complaint {
                    line: file.line(name),
                    text,
                });
            }
            taken.push((socket, name));
        }
        // The ranges of rescue control stand in one place, with the decisions that rely on them.
        let link = self.link.rate.unwrap_or(ByteRate::from_kilobytes(1000));
        let checked = self
            .parameters(self.site.port, IpAddr::from([192, 0, 2, 1]), link)
            .check();
        for error in checked.err().unwrap_or_default() {
            let line = file.line(error.setting);
            complaints.push(Complaint {
                line,
                text: error.to_string(),
            });
        }
        if let Some(community) = &self.community {
            let below = community.alias_domain.as_str();
            let names = [&self.site.name].into_iter().chain(&self.site.also);
            if let Some(own) = names
                .map(HostName::domain)
                .find(|own| lies_under(below, own))
            {
                let text = format!(
                    "community.alias_domain: {below} lies under this site's own domain {own}, so strangers' \
                     pages would share its cookies; use a domain of its own"
                );
                complaints.push(Complaint {
                    line: file.line("community.alias_domain"),
                    text,
                });
            }
        }
    }
}

/// Whether pages of `below` share cookies with those of `own`. A domain of one label such as
/// `localhost` has no registrable part that could be shared.
fn lies_under(below: &str, own: &str) -> bool {
    let rest = below.strip_suffix(own);
    own.contains('.') && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether two sockets want the same place. Those for IPv6 do not speak for IPv4, so that a site
/// on all addresses has one of each.
fn clashes(left: SocketAddr, right: SocketAddr) -> bool {
    let all = left.ip().is_unspecified() || right.ip().is_unspecified();
    let same_host = left.ip() == right.ip() || (all && left.is_ipv4() == right.is_ipv4());
    left.port() != 0 && left.port() == right.port() && same_host
}

fn content(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Content {
    let folder = values.path("site.folder");
    let upstream = values.text("site.upstream");
    let complain = |text: &str, line| Complaint {
        line,
        text: text.into(),
    };
    match (folder, upstream.is_empty()) {
        (Some(folder), true) => Content::Folder(folder),
        (None, false) => match upstream
            .strip_prefix("http://")
            .map(|rest| rest.trim_end_matches('/'))
        {
            Some(authority) if !authority.is_empty() && !authority.contains(['/', '@', '?']) => {
                Content::Upstream {
                    authority: authority.into(),
                }
            }
            Some(_) | None => {
                let text = "site.upstream must be like \"http://127.0.0.1:3000\", without a path";
                complaints.push(complain(text, values.file.line("site.upstream")));
                Content::Folder(PathBuf::new())
            }
        },
        (Some(_), false) => {
            let text = "give site.folder or site.upstream, not both";
            complaints.push(complain(text, values.file.line("site.upstream")));
            Content::Folder(PathBuf::new())
        }
        (None, true) => {
            let text = "nothing to serve: give site.folder = \"./public\" or site.upstream = \"http://127.0.0.1:3000\"";
            complaints.push(complain(text, None));
            Content::Folder(PathBuf::new())
        }
    }
}

fn site(values: &Values<'_>, content: Content) -> SiteSettings {
    SiteSettings {
        name: values
            .hosts("site.name")
            .into_iter()
            .next()
            .expect("the table has a default name"),
        also: values.hosts("site.also"),
        listen: values.sockets("site.listen"),
        port: values.number("site.port") as u16,
        content,
        unknown_host: match values.text("site.unknown_host").as_str() {
            "refuse" => UnknownHost::Refuse,
            _ => UnknownHost::Serve,
        },
        cores: values.number("site.cores") as usize,
    }
}

fn community(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Option<CommunitySettings> {
    let registry = values.sockets("community.registry").into_iter().next()?;
    let Some(alias_domain) = values.hosts("community.alias_domain").into_iter().next() else {
        let text = "community.alias_domain is missing: whoever joins a community gives out names under it, \
                    e.g. alias_domain = \"aliases.example.net\"";
        let line = values.file.line("community.registry");
        complaints.push(Complaint {
            line,
            text: text.into(),
        });
        return None;
    };
    let site = values
        .hosts("site.name")
        .into_iter()
        .next()
        .expect("the table has a default name");
    let given = values.text("community.alias_host");
    let alias_host = if given.is_empty() {
        site.first_label().to_owned()
    } else {
        given
    };
    Some(CommunitySettings {
        registry,
        rescue_listen: values.socket("community.rescue_listen"),
        address: values.address("community.address"),
        alias_domain,
        alias_host: alias_host.to_ascii_lowercase(),
        allow_private: values.flag("community.allow_private"),
    })
}

fn rescue(values: &Values<'_>) -> RescueSettings {
    RescueSettings {
        thresholds: [
            values.share("rescue.threshold_low"),
            values.share("rescue.threshold_alert"),
            values.share("rescue.threshold_high"),
            values.share("rescue.threshold_cutoff"),
        ],
        interval: values.time("rescue.interval"),
        low_intervals: values.number("rescue.low_intervals") as u32,
        idle_max: values.time("rescue.idle_max"),
        object_ttl: values.time("rescue.object_ttl"),
        alias_keep: values.time("rescue.alias_keep"),
        large_file: values.number("rescue.large_file"),
        servers_max: values.number("rescue.servers_max") as usize,
        origins_max: values.number("rescue.origins_max") as usize,
        registry_period: values.time("rescue.registry_period"),
        wait_max: values.time("rescue.wait_max"),
    }
}

fn cache(values: &Values<'_>) -> CacheSettings {
    CacheSettings {
        memory: values.number("cache.memory"),
        disk: values.number("cache.disk"),
        object_memory_max: values.number("cache.object_memory_max"),
        first_byte_max: values.time("cache.first_byte_max"),
        fetch_max: values.time("cache.fetch_max"),
        stale_if_error: values.time("cache.stale_if_error"),
    }
}

fn log_target(values: &Values<'_>) -> LogTarget {
    match (
        values.path("log.access"),
        values.text("log.access").as_str(),
    ) {
        (Some(path), _) => LogTarget::File(path),
        (None, "stdout") => LogTarget::Stdout,
        (None, _) => LogTarget::Off,
    }
}

/// Typed access: what the file gives, else the default of the table.
///
/// The table's own test reads every default, so a default that does not fit its kind cannot ship.
struct Values<'a> {
    file: &'a SettingsFile,
}

macro_rules! typed {
    ($($method:ident -> $type:ty, $variant:ident;)*) => {
        $(fn $method(&self, name: &str) -> $type {
            match self.value(name) {
                Some(Value::$variant(value)) => value,
                other => unreachable!("the table gives {name} another kind: {other:?}"),
            }
        })*
    };
}

impl Values<'_> {
    typed! {
        number -> u64, Number;
        time -> Duration, Time;
        share -> f64, Share;
        flag -> bool, Flag;
    }

    fn value(&self, name: &str) -> Option<Value> {
        if let Some(given) = self.file.given(name) {
            return Some(given.clone());
        }
        let setting = table::find(name).expect("settings are asked for by names of the table");
        if setting.default.is_empty() {
            return None;
        }
        Some(
            setting
                .kind
                .read(setting.default)
                .expect("a test reads every default"),
        )
    }

    fn text(&self, name: &str) -> String {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    fn rate(&self, name: &str) -> Option<ByteRate> {
        match self.value(name) {
            Some(Value::Rate(rate)) => Some(rate),
            _ => None,
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        match self.value(name) {
            Some(Value::Path(path)) => Some(path),
            _ => None,
        }
    }

    fn address(&self, name: &str) -> Option<IpAddr> {
        match self.value(name) {
            Some(Value::Address(address)) => Some(address),
            _ => None,
        }
    }

    fn hosts(&self, name: &str) -> Vec<HostName> {
        match self.value(name) {
            Some(Value::Hosts(hosts)) => hosts,
            _ => vec![],
        }
    }

    fn sockets(&self, name: &str) -> Vec<SocketAddr> {
        match self.value(name) {
            Some(Value::Sockets(sockets)) => sockets,
            _ => vec![],
        }
    }

    fn socket(&self, name: &str) -> SocketAddr {
        self.sockets(name)
            .into_iter()
            .next()
            .expect("the table has a default address")
    }
}

#[cfg(test)]
mod tests;
