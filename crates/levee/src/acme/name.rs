//! A name that a certificate can be for: `www.example.org`, or `*.example.net`.

use std::fmt;
use std::str::FromStr;

use levee_vocab::{HostName, HostNameError};
use thiserror::Error;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateName {
    host: HostName,
    reach: Reach,
}

/// How many names it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reach {
    One,
    /// All with one label more.
    Below,
}

/// Why there is no certificate for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CertificateNameError {
    /// It is no name.
    #[error(transparent)]
    NoName(#[from] HostNameError),
    /// `localhost`, or the name of a machine in somebody's house.
    #[error("no authority gives a certificate for a name that the internet does not know")]
    NotPublic,
    /// Digits and dots.
    #[error("no certificate is ordered for an address, only for names")]
    Address,
}

impl CertificateName {
    /// The wildcard for all names one label below `domain`.
    pub fn below(domain: &HostName) -> Self {
        Self {
            host: domain.clone(),
            reach: Reach::Below,
        }
    }

    /// Whether it stands for all names one label below another.
    pub fn is_wildcard(&self) -> bool {
        self.reach == Reach::Below
    }

    /// Whether a certificate for it is one for `host`: a star stands for one label (RFC 9525
    /// section 6.3).
    pub fn covers(&self, host: &HostName) -> bool {
        match self.reach {
            Reach::One => self.host == *host,
            Reach::Below => {
                let parent = host.as_str().split_once('.').map(|(_, parent)| parent);
                parent == Some(self.host.as_str())
            }
        }
    }

    /// The name without its star: what an authority looks at.
    pub const fn host(&self) -> &HostName {
        &self.host
    }

    /// The name as a file is called: without the star, which shells would replace.
    pub fn file_stem(&self) -> String {
        match self.reach {
            Reach::One => self.host.to_string(),
            Reach::Below => format!("_.{}", self.host),
        }
    }
}

impl FromStr for CertificateName {
    type Err = CertificateNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (reach, rest) = match text.strip_prefix("*.") {
            Some(rest) => (Reach::Below, rest),
            None => (Reach::One, text),
        };
        let host: HostName = rest.parse()?;
        let last = host.as_str().rsplit('.').next().unwrap_or_default();
        if last.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(CertificateNameError::Address);
        }
        if !host.as_str().contains('.') || matches!(last, "localhost" | "local") {
            return Err(CertificateNameError::NotPublic);
        }
        Ok(Self { host, reach })
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reach {
            Reach::One => write!(f, "{}", self.host),
            Reach::Below => write!(f, "*.{}", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_an_authority_can_certify_are_told_from_others() {
        let read = |text: &str| text.parse::<CertificateName>().map(|name| name.to_string());
        assert_eq!(read("WWW.example.org").as_deref(), Ok("www.example.org"));
        assert_eq!(read("*.example.net").as_deref(), Ok("*.example.net"));
        for private in ["localhost", "blog.localhost", "nas.local", "*.org"] {
            assert_eq!(read(private), Err(CertificateNameError::NotPublic));
        }
        assert_eq!(read("192.0.2.1"), Err(CertificateNameError::Address));
        assert!(matches!(
            read("a.*.b"),
            Err(CertificateNameError::NoName(_))
        ));
    }
}
