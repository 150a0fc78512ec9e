//! The table `[dns]`: who keeps the zone of the site's name, and how it is changed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use levee_vocab::HostName;

use super::values::Values;
use crate::settings::read::Complaint;
use crate::settings::table::SETTINGS;

/// The table `[dns]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    /// The zone in which the site's name lies.
    pub zone: HostName,
    /// Who keeps it.
    pub server: NameServer,
    /// How long others may remember our records.
    pub ttl: Duration,
}

/// Who keeps the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameServer {
    /// A name server that takes updates.
    Remote {
        /// Where it listens.
        server: SocketAddr,
        /// File of the key that signs them.
        key: PathBuf,
    },
}

/// Shortest and longest TTL: shorter than a second is no TTL, and longer than a day no help.
const TTL_MIN: Duration = Duration::from_secs(1);
const TTL_MAX: Duration = Duration::from_secs(86_400);

pub(super) fn dns(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Option<DnsSettings> {
    let Some(server) = values.given_socket("dns.server") else {
        complain_of_idle(values, complaints);
        return None;
    };
    let mut complain = |name: &str, text: String| {
        let line = values.file.line(name);
        complaints.push(Complaint { line, text });
    };
    let site = values.hosts("site.name").into_iter().next();
    let site = site.expect("the table has a default name");
    let zone = zone(values, &site, &mut complain);
    let ttl = values.time("dns.ttl");
    if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
        let text = "dns.ttl: must be within [1 s, 1 day]";
        complain("dns.ttl", text.into());
    }
    let key = values.path("dns.key");
    if key.is_none() {
        let text = "dns.server: updates must be signed; give the key as dns.key = \"dns.key\", a \
                    file that `tsig-keygen` writes";
        complain("dns.server", text.into());
    }
    let given = |name| values.file.given(name).is_some();
    if given("community.registry") && !given("state.folder") {
        let text = "dns.server: what is put into DNS must outlive a crash, or nobody takes it out \
                    again; give state.folder = \"/var/lib/levee\"";
        complain("dns.server", text.into());
    }
    Some(DnsSettings {
        zone: zone?,
        server: NameServer::Remote { server, key: key? },
        ttl,
    })
}

/// The zone of `site`, unless it cannot be.
fn zone(
    values: &Values<'_>,
    site: &HostName,
    complain: &mut impl FnMut(&str, String),
) -> Option<HostName> {
    let Some(zone) = values.hosts("dns.zone").into_iter().next() else {
        let (_, domain) = site.as_str().split_once('.').unwrap_or_default();
        let zone = domain.parse().ok();
        if zone.is_none() {
            let text = format!("dns.server: site.name `{site}` has no domain; give dns.zone");
            complain("dns.server", text);
        }
        return zone;
    };
    let rest = site.as_str().strip_suffix(zone.as_str());
    if rest.is_none_or(|rest| !rest.is_empty() && !rest.ends_with('.')) {
        let text = format!("dns.zone: site.name `{site}` does not lie in zone `{zone}`");
        complain("dns.zone", text);
        return None;
    }
    Some(zone)
}

/// Settings of DNS where nobody is told what to do with them.
fn complain_of_idle(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    let given = |name: &str| values.file.given(name).is_some();
    let names = SETTINGS.iter().map(|setting| setting.name);
    for name in names.filter(|name| name.starts_with("dns.") && given(name)) {
        complaints.push(Complaint {
            line: values.file.line(name),
            text: format!(
                "{name}: does nothing without dns.server, the name server that takes updates"
            ),
        });
    }
}
