//! Where the aliases of a drill lead: by their names, as for every visitor.
//!
//! A rescue server whose aliases cannot be resolved helps nobody, and nobody notices before the
//! crowd does; so this is what a drill must find. The visits go on all the same, to the address
//! that the rescue server told, so that the rest is found out as well. Each name is looked up once.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

/// Where an alias leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where to go; none where neither its name nor its rescue server tells.
    pub(super) address: Option<SocketAddr>,
    /// What is wrong with the name, in words.
    pub(super) trouble: Option<String>,
}

/// A visitor waits no longer for a name.
const LOOKUP_MAX: Duration = Duration::from_secs(3);

/// Looks `alias` up, a name with its port; `told` is what its rescue server says.
///
/// Cancel safety: dropped half-way, nothing has happened.
pub(super) async fn look_up(alias: &str, told: Option<SocketAddr>) -> Found {
    let host = alias.rsplit_once(':').map_or(alias, |(host, _)| host);
    //= RFC 6761 section 6.3: "Users may assume that IPv4 and IPv6 address queries for localhost
    //= names will always resolve to the respective IP loopback address."
    if host.ends_with(".localhost") && told.is_some_and(|told| told.ip().is_loopback()) {
        return Found {
            address: told,
            trouble: None,
        };
    }
    let addresses: Vec<SocketAddr> = match timeout(LOOKUP_MAX, lookup_host(alias)).await {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let is_told = |address: &SocketAddr| told.is_none_or(|told| told.ip() == address.ip());
    let domain = host.split_once('.').map_or(host, |(_, domain)| domain);
    let trouble = match (addresses.first(), told) {
        (None, _) => Some(format!(
            "the name {host} leads nowhere: no visitor finds it; it needs a wildcard record, \
             *.{domain}, in its DNS"
        )),
        (Some(first), Some(told)) if !addresses.iter().any(is_told) => Some(format!(
            "the name {host} leads to {}, but it says that it is at {}: mend the record \
             *.{domain}, or its setting community.address",
            first.ip(),
            told.ip()
        )),
        (Some(_), _) => None,
    };
    let address = addresses.iter().find(|address| is_told(address));
    let address = address.or(addresses.first()).copied();
    Found {
        address: address.or(told),
        trouble,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_below_localhost_need_no_record() {
        let told: SocketAddr = "127.0.0.9:8080".parse().unwrap();
        let found = look_up("www-vh1.localhost:8080", Some(told)).await;
        let all_is_well = Found {
            address: Some(told),
            trouble: None,
        };
        assert_eq!(found, all_is_well);
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_is_told_and_visited() {
        let told: SocketAddr = "192.0.2.7:8080".parse().unwrap();
        // An address needs nobody to be looked up.
        let found = look_up("127.0.0.1:8080", Some(told)).await;
        assert_eq!(found.address, Some("127.0.0.1:8080".parse().unwrap()));
        let trouble = found.trouble.unwrap_or_default();
        assert!(
            trouble.contains("it says that it is at 192.0.2.7"),
            "{trouble}"
        );
    }
}
