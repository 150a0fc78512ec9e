//! The PROXY protocol, version 1 and 2: one header before everything else, by which a proxy tells
//! who opened the connection.
//!
//! The specification is HAProxy's `doc/proxy-protocol.txt`. The parser is strict: what is not a
//! header is refused at the first byte that cannot be one, lengths are bounded, and nothing is
//! guessed. Type-length-values behind the addresses of version 2 are skipped; their content is
//! nobody's here. Ours and not a library's: `ppp` needs a second version of `thiserror`, and
//! guesses at incomplete headers of version 1.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// Who a connection is from and where it went, as the proxy saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxiedAddresses {
    /// Who opened it.
    pub source: SocketAddr,
    /// Where it was opened to. Of the same family.
    pub destination: SocketAddr,
}

/// A header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Its bytes; what follows is the connection's own.
    pub length: usize,
    /// None where the proxy speaks for itself (a health check) or does not know: then the
    /// connection is the proxy's own.
    pub addresses: Option<ProxiedAddresses>,
}

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProxyHeaderFault {
    /// They begin like neither version.
    #[error("no PROXY header")]
    Signature,
    /// Version 1 without an end after 107 bytes.
    #[error("a PROXY line of more than 107 bytes")]
    LongLine,
    /// Version 1 with something else than a family, two addresses and two ports.
    #[error("a PROXY line that is not well-formed")]
    Line,
    /// Version 2 with a version or command that does not exist.
    #[error("a PROXY header of an unknown version or command")]
    Command,
    /// Version 2 with a family or transport that does not exist.
    #[error("a PROXY header of an unknown address family")]
    Family,
    /// Version 2 with more behind it than anybody needs.
    #[error("a PROXY header of more than 2048 bytes")]
    LongHeader,
    /// Version 2 whose length does not hold its addresses.
    #[error("a PROXY header that is shorter than its addresses")]
    ShortAddresses,
}

/// Bytes before the length of version 2, without version and command.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before its addresses.
const FIXED_BYTES: usize = 16;
const LINE_START: &[u8] = b"PROXY ";
/// Longest line of version 1, with its end: section 2.1 of the specification.
const LINE_BYTES_MAX: usize = 107;
/// Longest header of either version. Addresses take 52 bytes at most (216 for sockets in the file
/// system); the rest are type-length-values, of which a client certificate's name is the longest.
pub const PROXY_HEADER_BYTES_MAX: usize = 2048;

impl ProxyHeader {
    /// The header at the start of `bytes`; none where more bytes are needed to tell.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, ProxyHeaderFault> {
        let begins = |start: &[u8]| {
            let common = bytes.len().min(start.len());
            bytes[..common] == start[..common]
        };
        match (begins(LINE_START), begins(SIGNATURE)) {
            (false, false) => Err(ProxyHeaderFault::Signature),
            _ if bytes.is_empty() => Ok(None),
            (true, _) => parse_line(bytes),
            (false, true) => parse_binary(bytes),
        }
    }
}

impl ProxyVersion {
    /// The header that tells of `addresses`; without them, that the connection is the proxy's own.
    pub fn header(self, addresses: Option<ProxiedAddresses>) -> Vec<u8> {
        let addresses = addresses.map(ProxiedAddresses::in_one_family);
        match self {
            Self::V1 => line(addresses),
            Self::V2 => binary(addresses),
        }
    }
}

impl ProxiedAddresses {
    /// IPv4 in IPv6's clothes is IPv4; of two families, both are IPv6.
    fn in_one_family(self) -> Self {
        let plain = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
        let (source, destination) = (plain(self.source), plain(self.destination));
        if source.is_ipv4() == destination.is_ipv4() {
            return Self {
                source,
                destination,
            };
        }
        let mapped = |at: SocketAddr| match at.ip() {
            IpAddr::V4(address) => SocketAddr::from((address.to_ipv6_mapped(), at.port())),
            IpAddr::V6(_) => at,
        };
        Self {
            source: mapped(source),
            destination: mapped(destination),
        }
    }
}

fn parse_line(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderFault> {
    let seen = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = seen.iter().position(|&byte| byte == b'\n') else {
        return match bytes.len() < LINE_BYTES_MAX {
            true => Ok(None),
            false => Err(ProxyHeaderFault::LongLine),
        };
    };
    let line = seen[..end].strip_suffix(b"\r");
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let line = line.ok_or(ProxyHeaderFault::Line)?;
    let mut words = line.split(' ').skip(1);
    let mut word = || words.next().ok_or(ProxyHeaderFault::Line);
    let addresses = match word()? {
        // What follows it is for nobody.
        "UNKNOWN" => None,
        family @ ("TCP4" | "TCP6") => {
            let (source, destination) = (word()?, word()?);
            let (from, to) = (word()?, word()?);
            let ip = |text| address_of(family, text);
            let addresses = ProxiedAddresses {
                source: (ip(source)?, port_of(from)?).into(),
                destination: (ip(destination)?, port_of(to)?).into(),
            };
            if words.next().is_some() {
                return Err(ProxyHeaderFault::Line);
            }
            Some(addresses)
        }
        _ => return Err(ProxyHeaderFault::Line),
    };
    let length = end + 1;
    Ok(Some(ProxyHeader { length, addresses }))
}

fn address_of(family: &str, text: &str) -> Result<IpAddr, ProxyHeaderFault> {
    let address = match family {
        "TCP4" => text.parse::<Ipv4Addr>().map(IpAddr::from),
        _ => text.parse::<Ipv6Addr>().map(IpAddr::from),
    };
    address.map_err(|_| ProxyHeaderFault::Line)
}

/// Digits only, and no zero before others.
fn port_of(text: &str) -> Result<u16, ProxyHeaderFault> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_zero = text.len() > 1 && text.starts_with('0');
    match text.parse() {
        Ok(port) if is_plain && !has_zero => Ok(port),
        Ok(_) | Err(_) => Err(ProxyHeaderFault::Line),
    }
}

fn parse_binary(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyHeaderFault> {
    if let Some(&command) = bytes.get(12)
        && !matches!(command, 0x20 | 0x21)
    {
        return Err(ProxyHeaderFault::Command);
    }
    let Some(fixed) = bytes.first_chunk::<FIXED_BYTES>() else {
        return Ok(None);
    };
    let [command, family, high, low] = [fixed[12], fixed[13], fixed[14], fixed[15]];
    let length = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if length > PROXY_HEADER_BYTES_MAX {
        return Err(ProxyHeaderFault::LongHeader);
    }
    let (kind, transport) = (family >> 4, family & 0x0F);
    if kind > 3 || transport > 2 {
        return Err(ProxyHeaderFault::Family);
    }
    let Some(payload) = bytes.get(FIXED_BYTES..length) else {
        return Ok(None);
    };
    // A command of 0 is the proxy's own connection: whatever addresses follow are not to be used.
    let addresses = match (command, kind, transport) {
        (0x21, 1, 1) => Some(addresses_v4(payload)?),
        (0x21, 2, 1) => Some(addresses_v6(payload)?),
        _ => None,
    };
    Ok(Some(ProxyHeader { length, addresses }))
}

fn addresses_v4(payload: &[u8]) -> Result<ProxiedAddresses, ProxyHeaderFault> {
    let fields = payload.first_chunk::<12>();
    let fields = fields.ok_or(ProxyHeaderFault::ShortAddresses)?;
    let address = |at: usize| {
        let octets = [fields[at], fields[at + 1], fields[at + 2], fields[at + 3]];
        Ipv4Addr::from(octets)
    };
    let port = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    Ok(ProxiedAddresses {
        source: (address(0), port(8)).into(),
        destination: (address(4), port(10)).into(),
    })
}

fn addresses_v6(payload: &[u8]) -> Result<ProxiedAddresses, ProxyHeaderFault> {
    let fields = payload.first_chunk::<36>();
    let fields = fields.ok_or(ProxyHeaderFault::ShortAddresses)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fields[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    let port = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    Ok(ProxiedAddresses {
        source: (address(0), port(32)).into(),
        destination: (address(16), port(34)).into(),
    })
}

fn line(addresses: Option<ProxiedAddresses>) -> Vec<u8> {
    let Some(addresses) = addresses else {
        return b"PROXY UNKNOWN\r\n".to_vec();
    };
    let (from, to) = (addresses.source, addresses.destination);
    let family = match from {
        SocketAddr::V4(_) => "TCP4",
        SocketAddr::V6(_) => "TCP6",
    };
    let ips = format!("{} {}", from.ip(), to.ip());
    let ports = format!("{} {}", from.port(), to.port());
    format!("PROXY {family} {ips} {ports}\r\n").into_bytes()
}

fn binary(addresses: Option<ProxiedAddresses>) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    let Some(addresses) = addresses else {
        header.extend([0x20, 0, 0, 0]);
        return header;
    };
    let ends = [addresses.source, addresses.destination];
    match addresses.source {
        SocketAddr::V4(_) => header.extend([0x21, 0x11, 0, 12]),
        SocketAddr::V6(_) => header.extend([0x21, 0x21, 0, 36]),
    }
    for end in ends {
        match end.ip() {
            IpAddr::V4(address) => header.extend(address.octets()),
            IpAddr::V6(address) => header.extend(address.octets()),
        }
    }
    for end in ends {
        header.extend(end.port().to_be_bytes());
    }
    header
}

#[cfg(test)]
mod tests;
