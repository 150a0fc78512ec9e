//! The part of `[community]` that says where its registries are.

use std::net::SocketAddr;

use levee_vocab::HostName;

use super::values::Values;
use crate::registry_finder::RegistryPlaces;
use crate::settings::read::Complaint;

/// Whether the site joins a community, well or badly.
pub(super) fn is_member(values: &Values<'_>) -> bool {
    let places = [
        "community.registry",
        "community.registries",
        "community.registry_domain",
    ];
    places.iter().any(|name| values.file.given(name).is_some())
}

/// Where the registries are; none for a site that stands alone.
pub(super) fn registries(
    values: &Values<'_>,
    complaints: &mut Vec<Complaint>,
) -> Option<RegistryPlaces> {
    let one = values.given_socket("community.registry");
    let several = values.words("community.registries");
    let domain = values.hosts("community.registry_domain").into_iter().next();
    let mut complain = |setting: &str, text: String| {
        let line = values.file.line(setting);
        complaints.push(Complaint { line, text });
    };
    if one.is_some() && !several.is_empty() {
        let text = "community.registry: give this one or community.registries, not both";
        complain("community.registry", text.to_owned());
    }
    for place in several.iter().filter(|place| !is_place(place)) {
        let text = format!(
            "community.registries: `{place}` is no host with a port, e.g. \"a.example.org:7070\""
        );
        complain("community.registries", text);
    }
    let mut list: Vec<String> = one.iter().map(SocketAddr::to_string).collect();
    list.extend(several);
    if list.is_empty() && domain.is_some() && values.address("community.address").is_none() {
        let text = "community.registry_domain: the address of this server cannot be told from a \
                    name; give community.address = \"192.0.2.10\" too";
        complain("community.registry_domain", text.to_owned());
    }
    let is_member = !list.is_empty() || domain.is_some();
    is_member.then_some(RegistryPlaces { list, domain })
}

fn is_place(text: &str) -> bool {
    let is_named = || {
        let (host, port) = text.rsplit_once(':')?;
        let is_port = port.parse().is_ok_and(|port: u16| port > 0);
        (host.parse::<HostName>().is_ok() && is_port).then_some(())
    };
    text.parse::<SocketAddr>().is_ok() || is_named().is_some()
}
