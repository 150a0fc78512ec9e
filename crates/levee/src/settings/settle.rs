//! Values into settings: defaults filled in, types and units fixed, everything cross-checked.
//!
//! Each table of the file has a type in `types.rs` and a function in `groups.rs` or in a file of
//! its own; what several settings get wrong together is found in `cross.rs`.

mod acme;
mod crawlers;
mod cross;
mod dns;
mod groups;
mod help;
mod hot_spots;
mod integrity;
mod mesh;
mod reload;
mod tls;
mod trust;
mod types;
mod unix;
mod upstream;
mod values;

use std::net::IpAddr;

use levee_control::{Parameters, Thresholds, Visitors};
use levee_vocab::{ByteRate, WebAddress};

pub use self::acme::{AcmeSettings, ChallengeChoice, ExternalAccount, NameChoice};
pub use self::crawlers::{CrawlerSettings, Recognition};
pub use self::dns::{AliasZone, AnswerOrder, DnsSettings, NameServer, OwnServer};
use self::groups::{cache, community, content, log_target, rescue, site};
pub use self::help::HelpSettings;
pub use self::hot_spots::{CopiedLinks, HotSpotSettings};
pub use self::integrity::IntegritySettings;
pub use self::trust::TrustSettings;
pub use self::types::{
    CacheSettings, CommunitySettings, Content, LimitSettings, LinkSettings, LogSettings,
    RescueSettings, Settings, SiteSettings, TlsSettings, UnknownHost,
};
pub use self::upstream::{FetchTimes, UpstreamTable};
use self::values::Values;
use super::read::{Complaint, SettingsFile};

impl Settings {
    /// Fills in the defaults and checks the whole.
    ///
    /// # Errors
    /// All complaints at once, each with its line where it has one.
    pub fn settle(file: &SettingsFile) -> Result<Self, Vec<Complaint>> {
        let (settings, complaints) = Self::settle_all(file);
        match complaints.is_empty() {
            true => Ok(settings),
            false => Err(complaints),
        }
    }

    /// As [`Self::settle`], with settings in any case: those about which there is a complaint are
    /// not there, or have their default. They are for looking on, and not for running.
    pub fn settle_all(file: &SettingsFile) -> (Self, Vec<Complaint>) {
        let values = Values { file };
        let mut complaints = vec![];
        let content = content(&values, &mut complaints);
        let community = community(&values, &mut complaints);
        let dns = dns::dns(&values, &mut complaints);
        let alias_domain = community.as_ref().map(|community| &community.alias_domain);
        let alias_zone = dns::alias_zone(&values, alias_domain, &mut complaints);
        let records = acme::Records {
            site: dns.as_ref(),
            aliases: alias_zone.as_ref().zip(alias_domain),
        };
        let acme = acme::acme(&values, &records, &mut complaints);
        let tls = tls::tls(&values, acme.as_ref(), &mut complaints);
        let settings = Self {
            site: site(&values, content, &mut complaints),
            upstream: upstream::upstream(&values, &mut complaints),
            tls,
            acme,
            link: LinkSettings {
                rate: values.rate("link.rate"),
                usable: values.share("link.usable"),
                overhead: values.number("link.overhead"),
            },
            community,
            dns,
            alias_zone,
            trust: trust::trust(&values, &mut complaints),
            rescue: rescue(&values),
            help: help::help(&values, &mut complaints),
            crawlers: crawlers::crawlers(&values),
            integrity: integrity::integrity(&values),
            hot_spots: hot_spots::hot_spots(&values, &mut complaints),
            cache: cache(&values),
            limits: LimitSettings {
                connections: values.number("limits.connections") as usize,
                head_time: values.time("limits.head_time"),
                idle_time: values.time("limits.idle_time"),
                head_bytes: values.number("limits.head_bytes") as usize,
                tunnels: values.number("limits.tunnels") as usize,
                tunnel_idle_time: values.time("limits.tunnel_idle_time"),
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
        complaints.retain(|complaint| !file.follows(complaint));
        complaints.extend_from_slice(file.complaints());
        complaints.sort();
        complaints.dedup();
        (settings, complaints)
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
            parameters.drills = community.drills;
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
        parameters.origins_max = self.help.origins_max;
        parameters.help = self.help.limits.clone();
        parameters.redirects = self.rescue.redirects;
        parameters.registry_period = self.rescue.registry_period;
        parameters.name_ttl = self.name_ttl();
        parameters.crawler_share = self.crawlers.share;
        parameters.hot_spots = self.hot_spots.policy.clone();
        parameters.visitors = self.visitors();
        parameters
    }

    fn visitors(&self) -> Visitors {
        match &self.tls {
            None => Visitors::Http,
            Some(tls) if tls.redirect => Visitors::Https,
            Some(_) => Visitors::Both,
        }
    }
}

#[cfg(test)]
mod tests;
