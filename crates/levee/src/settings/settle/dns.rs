//! The table `[dns]`: who keeps the zone of the site's name, and how it is changed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use levee_vocab::HostName;

use super::mesh::is_member;
use super::types::Settings;
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

impl DnsSettings {
    /// In which order our own name server tells addresses.
    pub const fn order(&self) -> AnswerOrder {
        match &self.server {
            NameServer::Remote { .. } => AnswerOrder::Turns,
            NameServer::Own(own) => own.order,
        }
    }

    /// Where our own name server listens.
    pub const fn listen(&self) -> Option<SocketAddr> {
        match &self.server {
            NameServer::Remote { .. } => None,
            NameServer::Own(own) => Some(own.listen),
        }
    }
}

impl Settings {
    /// How long others may remember who is in the site's name; none where rescue servers never are.
    pub(super) fn name_ttl(&self) -> Option<Duration> {
        let dns = self.dns.as_ref()?;
        let https = self.tls.is_some() || self.acme.is_some();
        let used = self.community.is_some() && !https;
        used.then_some(dns.ttl)
    }
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
    /// We do.
    Own(OwnServer),
}

/// A name server of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnServer {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its zone file.
    pub zone_file: PathBuf,
    /// File of the key by which others may change it.
    pub key: Option<PathBuf>,
    /// Who keeps copies.
    pub secondaries: Vec<SocketAddr>,
    /// In which order addresses are told.
    pub order: AnswerOrder,
}

/// In which order several addresses of a name are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerOrder {
    /// They take turns.
    Turns,
    /// By chance, in proportion to free capacity.
    Weighted,
}

/// Where aliases are registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasZone {
    /// The name server.
    pub server: SocketAddr,
    /// The zone in which they lie.
    pub zone: HostName,
    /// File of the key.
    pub key: PathBuf,
    /// How long others may remember them.
    pub ttl: Duration,
}

/// Shortest and longest TTL: shorter than a second is no TTL, and longer than a day no help.
const TTL_MIN: Duration = Duration::from_secs(1);
const TTL_MAX: Duration = Duration::from_secs(86_400);

pub(super) fn dns(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Option<DnsSettings> {
    let (remote, listen) = (
        values.given_socket("dns.server"),
        values.given_socket("dns.listen"),
    );
    let by = match (remote, listen) {
        (None, None) => {
            complain_of_idle(values, complaints);
            return None;
        }
        (Some(_), None) => "dns.server",
        (_, Some(_)) => "dns.listen",
    };
    let mut complain = |name: &str, text: String| {
        let line = values.file.line(name);
        complaints.push(Complaint { line, text });
    };
    if remote.is_some() && listen.is_some() {
        let text = "dns.listen: give dns.server or dns.listen: one of them keeps the zone";
        complain("dns.listen", text.into());
    }
    let site = values.hosts("site.name").into_iter().next();
    let site = site.expect("the table has a default name");
    let zone = zone(values, &site, by, &mut complain);
    let ttl = values.time("dns.ttl");
    if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
        let text = "dns.ttl: must be within [1 s, 1 day]";
        complain("dns.ttl", text.into());
    }
    let given = |name| values.file.given(name).is_some();
    if is_member(values) && !given("state.folder") {
        let text = format!(
            "{by}: what is put into DNS must outlive a crash, or nobody takes it out again; give \
             state.folder = \"/var/lib/levee\""
        );
        complain(by, text);
    }
    let server = match (remote, listen) {
        (Some(server), None) => remote_server(values, server, &mut complain),
        (_, Some(listen)) => own_server(values, listen, &mut complain),
        (None, None) => None,
    };
    Some(DnsSettings {
        zone: zone?,
        server: server?,
        ttl,
    })
}

fn remote_server(
    values: &Values<'_>,
    server: SocketAddr,
    complain: &mut impl FnMut(&str, String),
) -> Option<NameServer> {
    let own = ["dns.zone_file", "dns.secondaries", "dns.weighted"];
    for name in own {
        if values.file.given(name).is_some() {
            let text = format!("{name}: does nothing without dns.listen, our own name server");
            complain(name, text);
        }
    }
    let key = values.path("dns.key");
    if key.is_none() {
        let text = "dns.server: updates must be signed; give the key as dns.key = \"dns.key\", a \
                    file that `tsig-keygen` writes";
        complain("dns.server", text.into());
    }
    Some(NameServer::Remote { server, key: key? })
}

fn own_server(
    values: &Values<'_>,
    listen: SocketAddr,
    complain: &mut impl FnMut(&str, String),
) -> Option<NameServer> {
    let zone_file = values.path("dns.zone_file");
    if zone_file.is_none() {
        let text = "dns.listen: there is nothing to answer from; give dns.zone_file = \
                    \"example.org.zone\"";
        complain("dns.listen", text.into());
    }
    let mut secondaries = vec![];
    for place in values.listens("dns.secondaries") {
        match place.tcp() {
            Some(address) => secondaries.push(address),
            None => {
                let text = format!("dns.secondaries: {place} is no address and port");
                complain("dns.secondaries", text);
            }
        }
    }
    Some(NameServer::Own(OwnServer {
        listen,
        zone_file: zone_file?,
        key: values.path("dns.key"),
        secondaries,
        order: match values.flag("dns.weighted") {
            true => AnswerOrder::Weighted,
            false => AnswerOrder::Turns,
        },
    }))
}

/// The zone of `site`, unless it cannot be.
fn zone(
    values: &Values<'_>,
    site: &HostName,
    by: &str,
    complain: &mut impl FnMut(&str, String),
) -> Option<HostName> {
    let Some(zone) = values.hosts("dns.zone").into_iter().next() else {
        let (_, domain) = site.as_str().split_once('.').unwrap_or_default();
        let zone = domain.parse().ok();
        if zone.is_none() {
            let text = format!("{by}: site.name `{site}` has no domain; give dns.zone");
            complain(by, text);
        }
        return zone;
    };
    if !lies_in(site, &zone) {
        let text = format!("dns.zone: site.name `{site}` does not lie in zone `{zone}`");
        complain("dns.zone", text);
        return None;
    }
    Some(zone)
}

/// Where the aliases of a server whose aliases lie in `domain` are registered.
pub(super) fn alias_zone(
    values: &Values<'_>,
    domain: Option<&HostName>,
    complaints: &mut Vec<Complaint>,
) -> Option<AliasZone> {
    let mut complain = |name: &str, text: &str| {
        let (line, text) = (values.file.line(name), format!("{name}: {text}"));
        complaints.push(Complaint { line, text });
    };
    let Some(server) = values.given_socket("dns.alias_server") else {
        for name in ["dns.alias_zone", "dns.alias_key"] {
            if values.file.given(name).is_some() {
                complain(name, "does nothing without dns.alias_server");
            }
        }
        return None;
    };
    let Some(domain) = domain else {
        // Who joins one badly is told that.
        if !is_member(values) {
            let text = "a site that joins no community (community.registry) gives out no aliases";
            complain("dns.alias_server", text);
        }
        return None;
    };
    let zone = values.hosts("dns.alias_zone").into_iter().next();
    let zone = zone.unwrap_or_else(|| domain.clone());
    if !lies_in(domain, &zone) {
        complain(
            "dns.alias_zone",
            "community.alias_domain does not lie in it",
        );
    }
    let key = values.path("dns.alias_key");
    if key.is_none() {
        let text = "updates must be signed; give the key as dns.alias_key = \"aliases.key\"";
        complain("dns.alias_server", text);
    }
    Some(AliasZone {
        server,
        zone,
        key: key?,
        ttl: values.time("dns.ttl"),
    })
}

/// Whether `name` is `zone` or lies below it.
pub(super) fn lies_in(name: &HostName, zone: &HostName) -> bool {
    let rest = name.as_str().strip_suffix(zone.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Settings of DNS where nobody is told what to do with them.
fn complain_of_idle(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    let given = |name: &str| values.file.given(name).is_some();
    let names = SETTINGS.iter().map(|setting| setting.name);
    // Those of aliases go by themselves, and the TTL is theirs as well.
    let ours = |name: &&str| name.starts_with("dns.") && !name.starts_with("dns.alias_");
    let aliases = given("dns.alias_server");
    for name in names.filter(|name| ours(name) && given(name) && !(aliases && *name == "dns.ttl")) {
        complaints.push(Complaint {
            line: values.file.line(name),
            text: format!(
                "{name}: does nothing without dns.server, a name server that takes updates, or \
                 dns.listen, one of our own"
            ),
        });
    }
}
