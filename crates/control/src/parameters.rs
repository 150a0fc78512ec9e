//! What an operator may set about rescue control, with the paper's defaults and ranges (R3).
//!
//! Table 1 of the dotslash paper. A value outside its range is refused with the range named.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName, WebAddress};
use thiserror::Error;

use crate::help::HelpLimits;
use crate::law::HotSpotPolicy;

/// Load levels at which something happens, as shares of capacity (0.75 is 75 %).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// T_low, (0, 0.2]: below it for `low_intervals`, help is let go.
    pub low: f64,
    /// T_alert, [0.4, 0.6]: above it, the first rescue servers are asked.
    pub alert: f64,
    /// T_high, [0.6, 0.8]: the level at which a site in SOS settles.
    pub high: f64,
    /// T_coff, [0.8, 1): redirect level of all rescue servers at which one more is asked.
    pub cutoff: f64,
}

/// Settings of one Brain. Made by [`Parameters::check`], so they are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// The site's own name and web port: what its visitors ask for.
    pub site: WebAddress,
    /// Where other servers reach this one, bypassing round robin.
    pub address: IpAddr,
    /// Port of the rescue protocol; 0 while this site takes no part in a community.
    pub rescue_port: u16,
    /// Domain of the aliases that this site gives out, e.g. `aliases.example.net`.
    pub alias_domain: HostName,
    /// First label of the aliases: `www` gives `www-vh1.<alias_domain>`.
    pub alias_host: String,
    /// B, the outbound link.
    pub link: ByteRate,
    /// U, share of the link that is usable for HTTP, (0, 1]. Default 0.8.
    pub usable: f64,
    /// Load levels.
    pub thresholds: Thresholds,
    /// Most of D_out that crawlers get, (0, 1]; it yields to readers, and ends at T_alert. Default
    /// 0.25.
    pub crawler_share: f64,
    /// I_ctrl, 100 ms to 60 s. Default 1 s.
    pub interval: Duration,
    /// N_low, 1 to 3600. Default 30.
    pub low_intervals: u32,
    /// Bytes that a connection costs beside its response, 0 to 2000. Default 358 (dotslash 4.3).
    pub connection_overhead: u64,
    /// What an origin server lets its rescue servers be idle. Default 10 * N_low * I_ctrl.
    pub idle_max: Duration,
    /// Lifetime that rescue servers give to our objects without one of their own. Default 60 s.
    pub object_ttl: Duration,
    /// How long an ended alias still redirects back to its origin. Default 2 days.
    pub alias_keep: Duration,
    /// Our rescue servers stand in our own name in DNS, and others remember that for so long; none
    /// where they do not.
    pub name_ttl: Option<Duration>,
    /// Files from this size go by consistent hashing. Default 100,000 bytes.
    pub large_file: u64,
    /// Most rescue servers at once, 1 to 64. Default 16.
    pub rescue_servers_max: usize,
    /// Most origins helped at once, 0 to 64. Default 16; 0 never helps.
    pub origins_max: usize,
    /// Most candidates kept from a search, 1 to 64. Default 16.
    pub candidates_max: usize,
    /// Time between registrations and between searches. Default 10 s each.
    pub registry_period: Duration,
    /// Whether this site takes part in the drills of others. Default yes.
    pub drills: Drills,
    /// What is given to others at most.
    pub help: HelpLimits,
    /// Whether visitors are redirected. Default yes.
    pub redirects: Redirects,
    /// What is done about hot spots.
    pub hot_spots: HotSpotPolicy,
    /// How visitors come. Default by HTTP.
    pub visitors: Visitors,
}

/// By which schemes visitors come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visitors {
    /// By HTTP.
    #[default]
    Http,
    /// By either.
    Both,
    /// By HTTPS: all others are sent on to it.
    Https,
}

impl Visitors {
    /// How visitors come while the site answers by HTTPS at `port`, or by HTTP only: before there
    /// is a certificate nobody is sent on.
    #[must_use]
    pub const fn while_answered_at(self, port: Option<u16>) -> Self {
        match port {
            Some(_) => self,
            None => Self::Http,
        }
    }
}

/// Whether visitors are redirected to rescue servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Whenever there is no room here.
    #[default]
    On,
    /// Never: they come to rescue servers by our name in DNS alone.
    Off,
}

/// What a site says to a drill of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drills {
    /// Yes, where it has time.
    Joined,
    /// No.
    Declined,
}

/// A value that is out of range, with the range and the setting's name.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{setting} is {value}, but must be in {range}")]
pub struct ParameterError {
    /// Name in the settings file, e.g. `rescue.threshold_high`.
    pub setting: &'static str,
    /// What was given.
    pub value: String,
    /// The range, as the paper writes it: `[60 %, 80 %]`.
    pub range: &'static str,
}

/// Time of the link that makes a file large: ten such files take a second, in which a visitor of a
/// cold rescue server still waits gladly.
const LARGE_FILE_TIME: Duration = Duration::from_millis(100);

/// Most characters of `alias_host`: the label still has room for `-vh` and twenty digits.
const ALIAS_HOST_MAX: usize = 40;

impl Parameters {
    /// The paper's defaults (Table 1) for a site that takes no part in a community yet: set
    /// `rescue_port` to join one.
    pub fn new(site: WebAddress, address: IpAddr, alias_domain: HostName, link: ByteRate) -> Self {
        let alias_host = site.host.first_label().to_owned();
        let (interval, low_intervals) = (Duration::from_secs(1), 30);
        Self {
            site,
            address,
            rescue_port: 0,
            alias_domain,
            alias_host,
            link,
            usable: 0.8,
            thresholds: Thresholds::default(),
            crawler_share: 0.25,
            interval,
            low_intervals,
            connection_overhead: 358,
            idle_max: Self::idle_max_of(interval, low_intervals),
            object_ttl: Duration::from_secs(60),
            alias_keep: Duration::from_hours(48),
            name_ttl: None,
            large_file: 100_000,
            rescue_servers_max: 16,
            origins_max: 16,
            candidates_max: 16,
            registry_period: Duration::from_secs(10),
            drills: Drills::Joined,
            help: HelpLimits::default(),
            redirects: Redirects::On,
            hot_spots: HotSpotPolicy::default(),
            visitors: Visitors::Http,
        }
    }

    /// The default of `idle_max`: 10 * N_low * I_ctrl (dotslash 4.4.5).
    pub fn idle_max_of(interval: Duration, low_intervals: u32) -> Duration {
        interval.saturating_mul(low_intervals).saturating_mul(10)
    }

    /// These settings, if all of them are in range; else every complaint at once.
    pub fn check(self) -> Result<Self, Vec<ParameterError>> {
        let mut complaints = Vec::new();
        self.check_loads(&mut complaints);
        self.check_times(&mut complaints);
        self.check_counts(&mut complaints);
        complaints.extend(self.help.check());
        complaints.extend(self.hot_spots.check());
        if complaints.is_empty() {
            Ok(self)
        } else {
            Err(complaints)
        }
    }

    /// D_out = B * U: what may go out in accounted bytes.
    pub fn usable_rate(&self) -> ByteRate {
        self.link.times(self.usable)
    }

    /// D_resc = D_out * (1 - T_alert): what may be spent on rescuing others.
    pub fn rescue_rate(&self) -> ByteRate {
        self.usable_rate().times(1.0 - self.thresholds.alert)
    }

    /// Size from which a file goes by consistent hashing: `large_file`, or what our link needs a
    /// tenth of a second for. Each rescue server fetches a file over the link that is overrun, so
    /// on a small link even a page is large.
    pub fn large_file_here(&self) -> u64 {
        let tenth = self.usable_rate().bytes_in(LARGE_FILE_TIME);
        self.large_file.min(tenth.max(1))
    }

    /// A_redi = (n + overhead) * U: what a redirect of `redirect_bytes` counts (dotslash 4.3).
    pub fn redirect_cost(&self, redirect_bytes: u64) -> f64 {
        (redirect_bytes + self.connection_overhead) as f64 * self.usable
    }

    /// Whether this site may ask for help and be asked.
    pub fn takes_part(&self) -> bool {
        self.rescue_port != 0
    }

    /// The time of `count` control intervals.
    pub fn intervals(&self, count: f64) -> Duration {
        self.interval.mul_f64(count)
    }

    fn check_loads(&self, complaints: &mut Vec<ParameterError>) {
        let Thresholds {
            low,
            alert,
            high,
            cutoff,
        } = self.thresholds;
        let mut check = |setting, share: f64, fits: bool, range| {
            if !fits {
                let value = format!("{} %", share * 100.0);
                complaints.push(ParameterError {
                    setting,
                    value,
                    range,
                });
            }
        };
        let fits = low > 0.0 && low <= 0.2;
        check("rescue.threshold_low", low, fits, "(0 %, 20 %]");
        let fits = (0.4..=0.6).contains(&alert);
        check("rescue.threshold_alert", alert, fits, "[40 %, 60 %]");
        let fits = (0.6..=0.8).contains(&high);
        check("rescue.threshold_high", high, fits, "[60 %, 80 %]");
        let fits = (0.8..1.0).contains(&cutoff);
        check("rescue.threshold_cutoff", cutoff, fits, "[80 %, 100 %)");
        let fits = self.usable > 0.0 && self.usable <= 1.0;
        check("link.usable", self.usable, fits, "(0 %, 100 %]");
        let (share, fits) = (self.crawler_share, self.crawler_share > 0.0);
        let fits = fits && share <= 1.0;
        check("crawlers.share", share, fits, "(0 %, 100 %]");
    }

    fn check_times(&self, complaints: &mut Vec<ParameterError>) {
        let second = Duration::from_secs(1);
        let day = Duration::from_hours(24);
        let mut check = |setting, time: Duration, limits: RangeInclusive<Duration>, range| {
            if !limits.contains(&time) {
                let value = format!("{time:?}");
                complaints.push(ParameterError {
                    setting,
                    value,
                    range,
                });
            }
        };
        let limits = Duration::from_millis(100)..=60 * second;
        check("rescue.interval", self.interval, limits, "[100 ms, 60 s]");
        check("rescue.idle_max", self.idle_max, second..=day, "[1 s, 1 d]");
        let limits = second..=day;
        check("rescue.object_ttl", self.object_ttl, limits, "[1 s, 1 d]");
        let limits = 60 * second..=30 * day;
        check(
            "rescue.alias_keep",
            self.alias_keep,
            limits,
            "[1 min, 30 d]",
        );
        let limits = second..=3600 * second;
        let setting = "community.registry_period";
        check(setting, self.registry_period, limits, "[1 s, 1 h]");
    }

    fn check_counts(&self, complaints: &mut Vec<ParameterError>) {
        let mut check = |setting, value: String, fits: bool, range| {
            if !fits {
                complaints.push(ParameterError {
                    setting,
                    value,
                    range,
                });
            }
        };
        let fits = self.link >= ByteRate::from_kilobytes(1);
        check("link.rate", self.link.to_string(), fits, "[1 kB/s, any)");
        let value = self.connection_overhead;
        check(
            "link.overhead",
            value.to_string(),
            value <= 2000,
            "[0, 2000]",
        );
        let value = self.low_intervals;
        let fits = (1..=3600).contains(&value);
        check("rescue.low_intervals", value.to_string(), fits, "[1, 3600]");
        let value = self.large_file;
        check(
            "rescue.large_file",
            value.to_string(),
            value >= 1,
            "[1, any)",
        );
        let value = self.rescue_servers_max;
        let fits = (1..=64).contains(&value);
        check(
            "rescue.rescue_servers_max",
            value.to_string(),
            fits,
            "[1, 64]",
        );
        let value = self.origins_max;
        check(
            "help.origins_max",
            value.to_string(),
            value <= 64,
            "[0, 64]",
        );
        let value = self.candidates_max;
        let fits = (1..=64).contains(&value);
        check("rescue.candidates_max", value.to_string(), fits, "[1, 64]");
        let fits = self.alias_host.len() <= ALIAS_HOST_MAX
            && !self.alias_host.contains('.')
            && self.alias_host.parse::<HostName>().is_ok();
        let range = "one host name label of at most 40 characters";
        check("community.alias_host", self.alias_host.clone(), fits, range);
        let fits = self.alias_domain.as_str().len() <= 253 - ALIAS_HOST_MAX - 24;
        let value = self.alias_domain.to_string();
        let range = "host names of at most 189 characters";
        check("community.alias_domain", value, fits, range);
    }
}

/// The defaults of Table 1.
impl Default for Thresholds {
    fn default() -> Self {
        Self {
            low: 0.1,
            alert: 0.5,
            high: 0.75,
            cutoff: 0.9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Parameters {
        let site = WebAddress {
            host: "www.example.org".parse().unwrap(),
            port: 80,
        };
        let address = "192.0.2.1".parse().unwrap();
        let domain = "aliases.example.net".parse().unwrap();
        Parameters::new(site, address, domain, ByteRate::from_kilobytes(1250))
    }

    #[test]
    fn the_defaults_are_in_range_and_give_the_figures_of_the_paper() {
        let parameters = defaults().check().unwrap();
        assert_eq!(parameters.usable_rate(), ByteRate::from_kilobytes(1000));
        assert_eq!(parameters.rescue_rate(), ByteRate::from_kilobytes(500));
        assert_eq!(parameters.redirect_cost(227), 468.0);
        assert_eq!(parameters.idle_max, Duration::from_secs(300));
        assert_eq!(parameters.large_file_here(), 100_000);
    }

    #[test]
    fn before_there_is_a_certificate_everybody_comes_by_http() {
        for visitors in [Visitors::Http, Visitors::Both, Visitors::Https] {
            assert_eq!(visitors.while_answered_at(None), Visitors::Http);
            assert_eq!(visitors.while_answered_at(Some(443)), visitors);
        }
    }

    #[test]
    fn every_value_out_of_range_is_named_at_once() {
        let mut parameters = defaults();
        parameters.thresholds = Thresholds {
            low: 0.0,
            alert: 0.39,
            high: f64::NAN,
            cutoff: 1.0,
        };
        parameters.interval = Duration::from_millis(99);
        parameters.low_intervals = 0;
        parameters.usable = 1.01;
        parameters.crawler_share = 0.0;
        parameters.origins_max = 65;
        parameters.alias_host = "a.b".to_owned();
        let complaints = parameters.check().unwrap_err();
        let names: Vec<_> = complaints.iter().map(|c| c.setting).collect();
        assert_eq!(
            names,
            [
                "rescue.threshold_low",
                "rescue.threshold_alert",
                "rescue.threshold_high",
                "rescue.threshold_cutoff",
                "link.usable",
                "crawlers.share",
                "rescue.interval",
                "rescue.low_intervals",
                "help.origins_max",
                "community.alias_host",
            ]
        );
        assert_eq!(
            complaints[1].to_string(),
            "rescue.threshold_alert is 39 %, but must be in [40 %, 60 %]"
        );
    }
}
