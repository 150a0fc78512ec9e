//! Where others reach this server, and whether somebody listens there.
//!
//! The address is the one in the settings, or the one from which this machine reaches its
//! registries. While DNS is away (everything comes back at once after a power cut) it is the one
//! from which this machine reaches the internet: a site does not stay away for want of a registry.
//! An address is worth nothing where nobody listens, so the port for other members is opened for
//! IPv6 as well where that is what they are told.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use levee_net::ListenAddress;

use crate::community_socket::address_towards;
use crate::settings::Settings;

/// Where others reach this server. Looks names up, and waits for that.
///
/// # Errors
/// When this machine reaches nobody.
pub(super) fn own_address(settings: &mut Settings) -> Result<IpAddr, String> {
    let Some(community) = &mut settings.community else {
        return Ok(Ipv4Addr::LOCALHOST.into());
    };
    let address = match community.address {
        Some(address) => address,
        None => found_address(&community.registries.list, &INTERNET)?,
    };
    community.rescue_listen = listening(community.rescue_listen, address);
    for warning in unheard(settings, address) {
        tracing::warn!("{warning}");
    }
    Ok(address)
}

/// What is wrong with telling others that we are at `address`: nobody listens there.
pub(crate) fn unheard(settings: &Settings, address: IpAddr) -> Vec<String> {
    let Some(community) = settings.community.as_ref().filter(|_| is_ipv6(address)) else {
        return vec![];
    };
    let mut warnings = vec![];
    let listen = listening(community.rescue_listen, address);
    if listen.is_ipv4() {
        warnings.push(format!(
            "other members are told {address}, where nobody listens for them: \
             community.rescue_listen is {listen}; set community.address, or an address of IPv6"
        ));
    }
    let listeners = [
        ("site.listen", Some(&settings.site.listen)),
        ("tls.listen", settings.tls.as_ref().map(|tls| &tls.listen)),
    ];
    for (setting, listen) in listeners {
        let is_deaf = listen.is_some_and(|all| !all.is_empty() && all.iter().all(is_ipv4_only));
        if is_deaf {
            warnings.push(format!(
                "other members are told {address}, where nobody listens for visitors: {setting} \
                 has no address of IPv6; add `[::]` with its port, or set community.address"
            ));
        }
    }
    warnings
}

/// Every address of this machine takes in those of IPv6 where others are told one.
fn listening(asked: SocketAddr, address: IpAddr) -> SocketAddr {
    match asked.ip() == IpAddr::from(Ipv4Addr::UNSPECIFIED) && is_ipv6(address) {
        true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), asked.port()),
        false => asked,
    }
}

fn found_address(registries: &[String], internet: &[SocketAddr]) -> Result<IpAddr, String> {
    let trouble = match towards_any(registries) {
        Ok(address) => return Ok(address),
        Err(trouble) => trouble,
    };
    let places = registries.join(", ");
    let told = format!("cannot tell which address leads from {places} to this server: {trouble}");
    let towards = |place: &SocketAddr| address_towards(*place).ok();
    match internet.iter().find_map(towards) {
        Some(address) => {
            tracing::warn!("{told}; {address} is taken for it, or set community.address");
            Ok(address)
        }
        None => Err(format!("{told}; set community.address")),
    }
}

/// The address from which the first of these that has one is reached.
fn towards_any(places: &[String]) -> io::Result<IpAddr> {
    let mut trouble = io::ErrorKind::NotFound.into();
    for place in places {
        let found = place.to_socket_addrs().map(|mut found| found.next());
        match found.map(|found| found.map(address_towards)) {
            Ok(Some(Ok(address))) => return Ok(address),
            Ok(Some(Err(error))) | Err(error) => trouble = error,
            Ok(None) => {}
        }
    }
    Err(trouble)
}

fn is_ipv6(address: IpAddr) -> bool {
    address.to_canonical().is_ipv6()
}

fn is_ipv4_only(listen: &ListenAddress) -> bool {
    match listen {
        ListenAddress::Tcp(address) => address.is_ipv4(),
        // A proxy in front knows where it listens.
        ListenAddress::Unix(_) => false,
    }
}

/// Somewhere in the internet: nothing is sent there, only the way out is asked for. These stand in
/// documents and belong to nobody (RFC 5737, RFC 3849).
const INTERNET: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9),
    SocketAddr::new(
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        9,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_told_an_address_of_ipv6_finds_somebody_there() {
        let cases = [
            ("0.0.0.0:7401", "2001:db8::2", "[::]:7401"),
            ("0.0.0.0:7401", "192.0.2.2", "0.0.0.0:7401"),
            ("0.0.0.0:7401", "::ffff:192.0.2.2", "0.0.0.0:7401"),
            ("[::]:7401", "192.0.2.2", "[::]:7401"),
            ("192.0.2.2:7401", "2001:db8::2", "192.0.2.2:7401"),
        ];
        for (asked, address, instead) in cases {
            let asked = asked.parse().expect("a socket address");
            let address = address.parse().expect("an address");
            let listen = listening(asked, address);
            assert_eq!(listen.to_string(), instead);
        }
    }

    #[test]
    fn a_site_starts_while_its_registries_cannot_be_looked_up() {
        let registries = ["no-such-name.invalid:7070".to_owned()];
        let this_machine = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 9);
        let address = found_address(&registries, &[this_machine]);
        assert_eq!(address, Ok(Ipv4Addr::LOCALHOST.into()));
        let told = found_address(&registries, &[]).expect_err("nobody is reached");
        assert!(told.contains("no-such-name.invalid:7070"), "{told}");
        assert!(told.ends_with("set community.address"), "{told}");
    }
}
