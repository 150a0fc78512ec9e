//! The network that an address belongs to: what one line or one machine has.
//!
//! Who has one IPv6 address has 2^64 of them, so a limit for each address would be none.

use std::net::IpAddr;

/// An IPv4 address, or the /64 of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(u64);

impl Network {
    /// That of `address`. An IPv4 address in IPv6 clothes counts as what it is.
    pub const fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            // No line has the first 2^32 networks of IPv6.
            IpAddr::V4(address) => address.to_bits() as u64,
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one(one: &str, other: &str) -> bool {
        let network = |text: &str| Network::of(text.parse().expect("an address"));
        network(one) == network(other)
    }

    #[test]
    fn a_line_of_ipv6_is_one_network_however_many_addresses_it_has() {
        assert!(is_one("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
        assert!(!is_one("2001:db8:0:1::1", "2001:db8:0:2::1"));
        assert!(is_one("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!is_one("192.0.2.1", "192.0.2.2"));
    }
}
