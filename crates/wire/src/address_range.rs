//! What kind of place an address in a message is.
//!
//! A stranger's message that names an address makes us connect to it. Addresses inside our own
//! network must not be reachable that way, so each is sorted into one of three ranges first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of place that an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressRange {
    /// Reachable from anywhere.
    Public,
    /// Of this machine or its own network: loopback, private, link-local, shared. Only for
    /// communities whose operators permit it.
    Private,
    /// Nobody's address: unspecified, multicast, broadcast, reserved. Never right in a message.
    Unusable,
}

impl AddressRange {
    /// The range of `address`.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, ..] = address.octets();
        // RFC 6890: 0/8 "this network", 224/4 multicast, 240/4 reserved with the broadcast address.
        if a == 0 || a >= 224 {
            return Self::Unusable;
        }
        // RFC 6598 100.64/10 is shared between a provider and its customers, RFC 2544 198.18/15
        // is for benchmarks.
        let is_shared = a == 100 && b & 0xC0 == 64;
        let is_benchmark = a == 198 && b & 0xFE == 18;
        let is_inside = address.is_loopback() || address.is_private() || address.is_link_local();
        match is_inside || is_shared || is_benchmark {
            true => Self::Private,
            false => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if address.is_unspecified() || address.is_multicast() {
            return Self::Unusable;
        }
        let segments = address.segments();
        // RFC 6052: 64:ff9b::/96 is an IPv4 address behind a translator, and RFC 3056: 2002::/16
        // carries one in the next 32 bits. What counts is where they lead.
        if segments[..6] == [0x64, 0xFF9B, 0, 0, 0, 0] {
            return Self::of_v4(embedded(segments[6], segments[7]));
        }
        if segments[0] == 0x2002 {
            return Self::of_v4(embedded(segments[1], segments[2]));
        }
        let is_unique_local = segments[0] & 0xFE00 == 0xFC00;
        let is_link_local = segments[0] & 0xFFC0 == 0xFE80;
        match address.is_loopback() || is_unique_local || is_link_local {
            true => Self::Private,
            false => Self::Public,
        }
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(range: AddressRange, addresses: &[&str]) {
        for text in addresses {
            let address = text.parse().expect("an address");
            assert_eq!(AddressRange::of(address), range, "{text}");
        }
    }

    #[test]
    fn every_address_is_public_private_or_nobodys() {
        check(
            AddressRange::Public,
            &[
                "1.2.3.4",
                "100.128.0.1",
                "198.20.0.1",
                "2001:470::1",
                "2002:102:304::1",
            ],
        );
        check(
            AddressRange::Private,
            &[
                "127.0.0.1",
                "10.1.2.3",
                "172.16.0.1",
                "192.168.1.1",
                "169.254.1.1",
                "100.64.0.1",
                "198.19.0.1",
                "::1",
                "fd00::1",
                "fe80::1",
                "::ffff:127.0.0.1",
                "64:ff9b::a00:1",
                "2002:7f00:1::",
            ],
        );
        check(
            AddressRange::Unusable,
            &[
                "0.0.0.0",
                "224.0.0.1",
                "255.255.255.255",
                "240.0.0.1",
                "::",
                "ff02::1",
            ],
        );
    }
}
