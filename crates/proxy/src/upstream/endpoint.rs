//! Where a server listens to which requests are sent: an address, a name, or a socket in the file
//! system.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// An address.
    Address(SocketAddr),
    /// A name and a port; its addresses are looked up, again and again.
    Name(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// What is wrong with the text of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// It begins with neither scheme.
    #[error("begins neither with http:// nor with unix:/")]
    Scheme,
    /// TLS towards upstreams is not spoken.
    #[error("https to an upstream is not spoken: it belongs on the same machine or network")]
    Https,
    /// Something stands behind host and port.
    #[error("has something behind host and port; a path, a query or a user cannot be given")]
    Path,
    /// The host is no address and no name.
    #[error("has no host name or address (an IPv6 address stands in brackets)")]
    Host,
    /// The port is no number from 1 to 65535.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// The kernel has room for 107 bytes.
    #[error("has a path of more than 107 bytes, which no socket can have")]
    LongPath,
}

/// Bytes of a socket's path: `sockaddr_un` has 108 with the final zero.
const PATH_BYTES_MAX: usize = 107;

/// `http://host:port` or `unix:/path`.
impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true if path.len() > PATH_BYTES_MAX => Err(EndpointError::LongPath),
                true => Ok(Self::Unix(path.into())),
                false => Err(EndpointError::Scheme),
            };
        }
        if text.starts_with("https://") {
            return Err(EndpointError::Https);
        }
        let rest = text
            .strip_prefix("http://")
            .ok_or(EndpointError::Scheme)?
            .trim_end_matches('/');
        if rest.contains(['/', '?', '#', '@']) {
            return Err(EndpointError::Path);
        }
        // A port ends the text behind the last colon that is not inside an IPv6 address.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port_of(port)?),
            Some(_) | None => (rest, 80),
        };
        match host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']')) {
            Some(address) => {
                let address: std::net::Ipv6Addr =
                    address.parse().map_err(|_| EndpointError::Host)?;
                Ok(Self::Address((address, port).into()))
            }
            None => match host.parse::<std::net::Ipv4Addr>() {
                Ok(address) => Ok(Self::Address((address, port).into())),
                Err(_) if is_name(host) => Ok(Self::Name(host.to_ascii_lowercase(), port)),
                Err(_) => Err(EndpointError::Host),
            },
        }
    }
}

fn port_of(text: &str) -> Result<u16, EndpointError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if is_number && port > 0 => Ok(port),
        Ok(_) | Err(_) => Err(EndpointError::Port),
    }
}

/// Names as resolvers take them: underscores too, which container networks use. What looks like a
/// number is a mistyped address.
fn is_name(host: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(fits)
        && !host.split('.').any(str::is_empty)
        && !host.rsplit('.').next().is_some_and(is_number)
}

/// As the status page, metrics and logs call it.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_addresses_names_and_paths() {
        let cases = [
            ("http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://127.0.0.1:3000/", "127.0.0.1:3000"),
            ("http://[::1]:3000", "[::1]:3000"),
            ("http://[::1]", "[::1]:80"),
            ("http://App_1.internal", "app_1.internal:80"),
            ("http://localhost:8000", "localhost:8000"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
        ];
        for (text, shown) in cases {
            let endpoint = text.parse::<Endpoint>();
            assert_eq!(endpoint.expect(text).to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_endpoint_says_why() {
        use EndpointError::{Host, Https, LongPath, Path, Port, Scheme};
        let long = format!("unix:/{}", "a".repeat(107));
        let cases = [
            ("127.0.0.1:3000", Scheme),
            ("unix:app.sock", Scheme),
            ("https://127.0.0.1", Https),
            ("http://127.0.0.1/app", Path),
            ("http://me@127.0.0.1", Path),
            ("http://", Host),
            ("http://::1:80", Host),
            ("http://127.0.0.1.5:80", Host),
            ("http://a..b", Host),
            ("http://127.0.0.1:0", Port),
            ("http://127.0.0.1:99999", Port),
            ("http://127.0.0.1:+80", Port),
            ("http://127.0.0.1:", Port),
            (&long, LongPath),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }
}
