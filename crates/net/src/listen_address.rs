//! Where a server listens: on an address and port, or at a socket in the file system.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenAddress {
    /// TCP; port 0 picks a free one.
    Tcp(SocketAddr),
    /// A stream socket in the file system, by its absolute path.
    Unix(PathBuf),
}

/// What is wrong with the text of such an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ListenAddressError {
    /// It is neither.
    #[error("is no address and port such as `127.0.0.1:8080`, and no `unix:/run/levee.sock`")]
    Unknown,
    /// The kernel has room for 107 bytes.
    #[error("has a path of more than 107 bytes, which no socket can have")]
    LongPath,
}

/// Bytes of a socket's path: `sockaddr_un` has 108 with the final zero.
const PATH_BYTES_MAX: usize = 107;

impl ListenAddress {
    /// Address and port, where it has them.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        match text.strip_prefix("unix:") {
            Some(path) if path.len() > PATH_BYTES_MAX => Err(ListenAddressError::LongPath),
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(ListenAddressError::Unknown),
            None => match text.parse() {
                Ok(address) => Ok(Self::Tcp(address)),
                Err(_) => Err(ListenAddressError::Unknown),
            },
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in ["127.0.0.1:80", "[::1]:443", "unix:/run/levee.sock"] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "unix:run/levee.sock", "/run/levee.sock", "127.0.0.1"] {
            let read = text.parse::<ListenAddress>();
            assert_eq!(read, Err(ListenAddressError::Unknown), "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(200));
        let read = long.parse::<ListenAddress>();
        assert_eq!(read, Err(ListenAddressError::LongPath));
    }
}
