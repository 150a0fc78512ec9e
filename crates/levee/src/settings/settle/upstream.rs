//! The table `[upstream]`: where requests go, how long each step may take, who is left out.

use std::time::Duration;

use levee_control::{Checked, Tier, UpstreamRules};
use levee_proxy::{CheckSettings, Endpoint, ServerErrors, UpstreamSettings};
use levee_wire::ProxyVersion;

use super::values::Values;
use crate::settings::read::Complaint;

/// The table `[upstream]`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamTable {
    /// The upstreams; none for a site that is a folder.
    pub group: UpstreamSettings,
    /// How long each step of a fetch may take. For fetches from origins too.
    pub times: FetchTimes,
    /// Connections kept for the next request.
    pub idle_connections: usize,
}

/// How long each step of a fetch may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FetchTimes {
    /// To connect.
    pub connect: Duration,
    /// From the request to the first byte of its response.
    pub first_byte: Duration,
    /// Between two pieces of a body.
    pub between_bytes: Duration,
    /// For a whole answer that many may wait for.
    pub whole: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
}

pub(super) fn upstream(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> UpstreamTable {
    let site = values.hosts("site.name").into_iter().next();
    let host = site.map(|site| site.to_string()).unwrap_or_default();
    UpstreamTable {
        group: UpstreamSettings {
            list: list(values, complaints),
            rules: rules(values),
            check: CheckSettings {
                path: health_path(values, complaints),
                host,
                ..CheckSettings::default()
            },
            server_errors: match values.flag("upstream.count_server_errors") {
                true => ServerErrors::Failures,
                false => ServerErrors::Tolerated,
            },
            proxy_protocol: match values.text("upstream.proxy_protocol").as_str() {
                "v1" => Some(ProxyVersion::V1),
                "v2" => Some(ProxyVersion::V2),
                _ => None,
            },
        },
        times: FetchTimes {
            connect: values.time("upstream.connect_max"),
            first_byte: values.time("upstream.first_byte_max"),
            between_bytes: values.time("upstream.between_bytes_max"),
            whole: values.time("upstream.fetch_max"),
            idle: values.time("upstream.idle_time"),
        },
        idle_connections: values.number("upstream.idle_connections") as usize,
    }
}

fn list(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Vec<(Endpoint, Tier)> {
    let primary = values.endpoints("site.upstream").into_iter();
    let backup = values.endpoints("upstream.backup").into_iter();
    let list: Vec<_> = primary
        .map(|endpoint| (endpoint, Tier::Primary))
        .chain(backup.map(|endpoint| (endpoint, Tier::Backup)))
        .collect();
    let line = |tier| {
        values.file.line(match tier {
            Tier::Primary => "site.upstream",
            Tier::Backup => "upstream.backup",
        })
    };
    for (index, (endpoint, tier)) in list.iter().enumerate() {
        if list[..index].iter().any(|(other, _)| other == endpoint) {
            complaints.push(Complaint {
                line: line(*tier),
                text: format!("the upstream {endpoint} stands in the list twice; name it once"),
            });
        }
    }
    let has = |wanted: Tier| list.iter().any(|(_, tier)| *tier == wanted);
    if has(Tier::Backup) && !has(Tier::Primary) {
        complaints.push(Complaint {
            line: line(Tier::Backup),
            text: "upstream.backup stands in for site.upstream, which is not given".into(),
        });
    }
    list
}

fn rules(values: &Values<'_>) -> UpstreamRules {
    UpstreamRules {
        failures_max: values.number("upstream.failures_max") as u32,
        outstanding_max: values.number("upstream.connections_max") as u32,
        check_interval: values.time("upstream.health_interval"),
        checks_max: values.number("upstream.health_failures") as u32,
        checked: match values.text("upstream.health_path").is_empty() {
            true => Checked::Ejected,
            false => Checked::All,
        },
        retry_share: values.share("upstream.retry_share"),
        ..UpstreamRules::default()
    }
}

fn health_path(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Option<String> {
    let path = values.text("upstream.health_path");
    if path.is_empty() {
        return None;
    }
    let fits = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        complaints.push(Complaint {
            line: values.file.line("upstream.health_path"),
            text: format!("upstream.health_path: `{path}` is not a path such as \"/healthz\""),
        });
    }
    Some(path)
}
