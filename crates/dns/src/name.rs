//! Names as DNS has them: any labels, `_acme-challenge` and `*` among them, and no case.
//!
//! [`levee_vocab::HostName`] is what a visitor may ask for; this is wider. It is always absolute
//! and in lower case, so that two spellings of one name are one value.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hickory_proto::rr::Name;
use levee_vocab::HostName;
use thiserror::Error;

/// A domain name: absolute, in lower case. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(Arc<Name>);

/// A text that is no domain name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a domain name such as `example.org`")]
pub struct DomainNameError(String);

impl DomainName {
    /// Whether `other` is this name or lies below it.
    pub fn contains(&self, other: &Self) -> bool {
        self.0.zone_of(&other.0)
    }

    /// This name with `label` before it.
    ///
    /// # Errors
    /// When `label` cannot be a label, or the name gets too long.
    pub fn below(&self, label: &str) -> Result<Self, DomainNameError> {
        format!("{label}.{self}").parse()
    }

    pub(crate) fn as_name(&self) -> &Name {
        &self.0
    }
}

impl From<Name> for DomainName {
    fn from(name: Name) -> Self {
        let mut name = name.to_lowercase();
        name.set_fqdn(true);
        Self(Arc::new(name))
    }
}

impl From<&HostName> for DomainName {
    fn from(host: &HostName) -> Self {
        let name = Name::from_ascii(host.as_str());
        name.expect("a host name is a domain name").into()
    }
}

impl FromStr for DomainName {
    type Err = DomainNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = Name::from_ascii(text).ok();
        let name = name.filter(|name| !name.is_root() && !text.is_empty());
        name.map(Self::from)
            .ok_or_else(|| DomainNameError(text.into()))
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One dot only: the last label may end with one itself, which is written `\.`.
        let text = self.0.to_ascii();
        f.write_str(text.strip_suffix('.').unwrap_or(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn two_spellings_of_one_name_are_one_value() {
        assert_eq!(name("WWW.example.ORG."), name("www.example.org"));
        assert_eq!(name("_ACME.example.org").to_string(), "_acme.example.org");
    }

    /// Found by fuzzing.
    #[test]
    fn a_dot_within_the_last_label_is_not_lost() {
        let odd = name("www.example\\.");
        assert_eq!(odd.to_string(), "www.example\\.");
        assert_eq!(name(&odd.to_string()), odd);
    }

    #[test]
    fn a_zone_contains_itself_and_what_is_below_but_not_its_neighbour() {
        let zone = name("example.org");
        assert!(zone.contains(&zone));
        assert!(zone.contains(&zone.below("www").unwrap()));
        assert!(!zone.contains(&name("anexample.org")));
        assert!(!name("www.example.org").contains(&zone));
    }

    #[test]
    fn what_is_no_name_is_told() {
        for text in ["", ".", "a..b", &"x".repeat(64)] {
            assert!(text.parse::<DomainName>().is_err(), "{text}");
        }
    }
}
