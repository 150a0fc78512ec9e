//! Where a visitor finds a server by its name.
//!
//! Whatever stands in a page or a redirect, a visitor can only reach servers that the lab itself
//! has started: it asks a resolver for one name at most, and that one a name server of the lab's.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::resolvers::Resolver;
use super::url::Url;

/// The names that a visitor knows.
#[derive(Clone, Debug, Default)]
pub enum Names {
    /// `localhost` and everything under it, which is this machine (RFC 6761 section 6.3).
    #[default]
    Localhost,
    /// Emulated hosts by domain: each name in it and under it is theirs.
    Hosts(BTreeMap<String, IpAddr>),
    /// The same, but what this resolver knows it is asked for.
    Resolved(Resolver, BTreeMap<String, IpAddr>),
}

impl Names {
    /// The servers of `url`, in the order in which to try them; none where the visitor must not go
    /// there.
    ///
    /// Cancel safety: as [`Resolver::addresses`].
    pub async fn servers_of(&self, url: &Url) -> Vec<SocketAddr> {
        let addresses = match self {
            Self::Localhost => {
                let named = url.host == "localhost" || url.host.ends_with(".localhost");
                let local = named || url.host == "127.0.0.1";
                let here = local.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST));
                Vec::from_iter(here)
            }
            Self::Hosts(hosts) => Vec::from_iter(host_of(hosts, &url.host)),
            Self::Resolved(resolver, _) if resolver.knows(&url.host) => resolver.addresses().await,
            Self::Resolved(_, hosts) => Vec::from_iter(host_of(hosts, &url.host)),
        };
        let servers = addresses.into_iter();
        servers
            .map(|address| SocketAddr::new(address, url.port))
            .collect()
    }
}

fn host_of(hosts: &BTreeMap<String, IpAddr>, name: &str) -> Option<IpAddr> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return hosts.values().find(|known| **known == address).copied();
    }
    let mut domain = name;
    loop {
        if let Some(address) = hosts.get(domain) {
            return Some(*address);
        }
        (_, domain) = domain.split_once('.')?;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn found(names: &Names, url: &str) -> Option<String> {
        let url = url.parse().unwrap();
        // Nothing is asked for here, so it is done at once.
        let servers = names.servers_of(&url).now_or_never().unwrap();
        servers.first().map(SocketAddr::to_string)
    }

    #[test]
    fn by_default_only_this_machine_is_known() {
        let names = Names::default();
        let here = Some("127.0.0.1:8080".to_owned());
        assert_eq!(found(&names, "http://alice.localhost:8080/"), here);
        assert_eq!(found(&names, "http://example.org/"), None);
        assert_eq!(found(&names, "http://192.0.2.1/"), None);
    }

    #[test]
    fn hosts_are_found_by_every_name_of_their_domain() {
        let hosts = [("maglev.test".to_owned(), [10, 80, 0, 2].into())];
        let names = Names::Hosts(hosts.into());
        let maglev = Some("10.80.0.2:80".to_owned());
        assert_eq!(found(&names, "http://maglev.test/"), maglev);
        assert_eq!(found(&names, "http://vh1.maglev.test/a"), maglev);
        assert_eq!(found(&names, "http://10.80.0.2/"), maglev);
        assert_eq!(found(&names, "http://10.80.0.3/"), None);
        assert_eq!(found(&names, "http://nomaglev.test/"), None);
    }
}
