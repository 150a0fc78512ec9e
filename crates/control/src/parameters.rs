//! What an operator may set about rescue control, with the paper's defaults and ranges (R3).
//!
//! Table 1 of the dotslash paper. A value outside its range is refused with the range named.

use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName, WebAddress};
use thiserror::Error;

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
