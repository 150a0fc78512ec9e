//! A block of addresses, `10.0.0.0/8`, or a single one: who may do something.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBlock {
    first: IpAddr,
    bits: u8,
}

/// A text is no block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an address or a block of them, like 192.0.2.7 or 10.0.0.0/8")]
pub struct AddressBlockError;

impl AddressBlock {
    /// Whether `address` lies in it. An IPv4 address in IPv6 clothes counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(other)) => {
                let differing = u32::from(first) ^ u32::from(other);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(first), IpAddr::V6(other)) => {
                let differing = u128::from(first) ^ u128::from(other);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for AddressBlock {
    type Err = AddressBlockError;

    fn from_str(text: &str) -> Result<Self, AddressBlockError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| AddressBlockError)?;
        let most = match first {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| AddressBlockError)?
            }
            Some(_) => return Err(AddressBlockError),
        };
        match bits <= most {
            true => Ok(Self { first, bits }),
            false => Err(AddressBlockError),
        }
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(block: &str, address: &str) -> bool {
        let block: AddressBlock = block.parse().unwrap();
        block.contains(address.parse().unwrap())
    }

    #[test]
    fn a_block_contains_what_begins_with_its_bits() {
        assert!(contains("127.0.0.0/8", "127.1.2.3"));
        assert!(contains("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(!contains("127.0.0.0/8", "128.0.0.1"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(contains("::1", "::1") && !contains("::1", "127.0.0.1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::5"));
        assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::/129",
            "a/8",
            "10.0.0/8",
        ] {
            assert!(bad.parse::<AddressBlock>().is_err(), "{bad}");
        }
    }
}
