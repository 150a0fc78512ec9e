//! Names of sites, checked once so that nobody has to check them again.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// A host name: lower case, no trailing dot, labels of letters, digits and hyphens.
///
/// Cheap to clone. It identifies a site in its community.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Arc<str>);

/// Why a text is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostNameError {
    /// Nothing was given.
    #[error("host name is empty")]
    Empty,
    /// More than 253 characters (RFC 1035 section 2.3.4).
    #[error("host name is longer than 253 characters")]
    TooLong,
    /// A label is empty, over 63 characters, or begins or ends with a hyphen.
    #[error("a label of the host name is empty, over 63 characters, or has a hyphen at its edge")]
    BadLabel,
    /// A character other than a letter, a digit, a hyphen or a dot.
    #[error("host name has a character other than letters, digits, hyphens and dots")]
    BadCharacter,
}

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first label: `www` of `www.example.org`.
    pub fn first_label(&self) -> &str {
        self.0.split('.').next().unwrap_or(&self.0)
    }

    /// The part that two servers of one administrative domain share: the last two labels, or three
    /// where the last two look like `co.uk`, a country with at most three letters before it.
    ///
    /// A hint, for which the list of public suffixes would be too heavy: 10 000 rules that change
    /// every week. Where it is wrong (`gouv.fr`, or `t.co`), two strangers are taken for one
    /// domain, or one domain for two, and a crowd is spread a little worse.
    pub fn domain(&self) -> &str {
        let mut dots = self.0.rmatch_indices('.').map(|(dot, _)| dot);
        let (last, second, third) = (dots.next(), dots.next(), dots.next());
        let from = |dot: Option<usize>| dot.map_or(self.as_str(), |dot| &self.0[dot + 1..]);
        let length_of_last = last.map_or(0, |last| self.0.len() - last - 1);
        let length_before = last.map_or(0, |last| last - second.map_or(0, |second| second + 1));
        match length_of_last == COUNTRY_LENGTH && length_before <= SECOND_LEVEL_MAX {
            true => from(third),
            false => from(second),
        }
    }
}

/// ISO 3166-1 alpha-2.
const COUNTRY_LENGTH: usize = 2;
/// `co`, `ac`, `gov`, `com`, `org`: what stands before a country is this short.
const SECOND_LEVEL_MAX: usize = 3;

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(HostNameError::Empty);
        }
        if text.len() > 253 {
            return Err(HostNameError::TooLong);
        }
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if !text.bytes().all(fits) {
            return Err(HostNameError::BadCharacter);
        }
        let bad = |label: &str| {
            label.is_empty() || label.len() > 63 || label.starts_with('-') || label.ends_with('-')
        };
        if text.split('.').any(bad) {
            return Err(HostNameError::BadLabel);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }
}

/// Lets a map of names be asked with a borrowed text, without an allocation on the request path.
impl Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a site answers web requests: what stands in a URL between `http://` and the path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebAddress {
    /// The name that goes into the Host header.
    pub host: HostName,
    /// The port that visitors use.
    pub port: u16,
}

/// `www.example.org`, or `www.example.org:8080` where the port is not 80.
impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            80 => write!(f, "{}", self.host),
            port => write!(f, "{}:{port}", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_one_administrative_domain_are_told_by_their_names() {
        let check = |name: &str, domain| {
            let name: HostName = name.parse().expect("a good name");
            assert_eq!(name.domain(), domain);
        };
        check("www.a.example.org", "example.org");
        check("example.org", "example.org");
        check("localhost", "localhost");
        check("www.example.co.uk", "example.co.uk");
        check("example.co.uk", "example.co.uk");
        check("co.uk", "co.uk");
        check("www.shop.example.com.au", "example.com.au");
        check("www.example.de", "example.de");
    }

    #[test]
    fn host_names_are_lower_case_and_strict() {
        let name: HostName = "WWW.Example.org.".parse().expect("a good name");
        assert_eq!(name.as_str(), "www.example.org");
        assert_eq!(name.first_label(), "www");
        assert_eq!(name.domain(), "example.org");
        assert_eq!("".parse::<HostName>(), Err(HostNameError::Empty));
        assert_eq!("a..b".parse::<HostName>(), Err(HostNameError::BadLabel));
        assert_eq!("-a.b".parse::<HostName>(), Err(HostNameError::BadLabel));
        assert_eq!("a/b".parse::<HostName>(), Err(HostNameError::BadCharacter));
        assert_eq!(
            "a".repeat(254).parse::<HostName>(),
            Err(HostNameError::TooLong)
        );
    }
}
