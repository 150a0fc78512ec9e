//! The limits themselves, as the operator sets them, and their ranges.

use levee_vocab::{ByteRate, HostName};

use super::CallRefusal;
use crate::parameters::ParameterError;

/// Least of a limit on bytes: less is some pages.
const BYTES_MIN: u64 = 1_000_000;

/// What an operator gives at most. Nothing is limited by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HelpLimits {
    /// Most of the link for all others together.
    pub rate: Option<ByteRate>,
    /// Most bytes for all others together in any 24 hours.
    pub bytes_per_day: Option<u64>,
    /// Most of the link for one origin.
    pub member_rate: Option<ByteRate>,
    /// Most bytes for one origin in any 24 hours.
    pub member_bytes_per_day: Option<u64>,
    /// Who is helped: these, and whoever lies under them; everybody where there is none.
    pub members: Vec<HostName>,
    /// Who is never helped: these, and whoever lies under them.
    pub never: Vec<HostName>,
}

impl HelpLimits {
    /// Whether `host` may be helped at all.
    pub(crate) fn check_member(&self, host: &HostName) -> Result<(), CallRefusal> {
        let covers = |names: &[HostName]| names.iter().any(|name| is_under(host, name));
        if covers(&self.never) {
            return Err(CallRefusal::Never);
        }
        match self.members.is_empty() || covers(&self.members) {
            true => Ok(()),
            false => Err(CallRefusal::NotNamed),
        }
    }

    /// Every value that is out of range.
    pub(crate) fn check(&self) -> Vec<ParameterError> {
        let rates = [
            ("help.rate", self.rate),
            ("help.member_rate", self.member_rate),
        ];
        let bytes = [
            ("help.bytes_per_day", self.bytes_per_day),
            ("help.member_bytes_per_day", self.member_bytes_per_day),
        ];
        let rates = rates.into_iter().filter_map(|(setting, rate)| {
            let rate = rate.filter(|&rate| rate < ByteRate::from_kilobytes(1))?;
            Some(ParameterError {
                setting,
                value: rate.to_string(),
                range: "[1 kB/s, any)",
            })
        });
        let bytes = bytes.into_iter().filter_map(|(setting, bytes)| {
            let bytes = bytes.filter(|&bytes| bytes < BYTES_MIN)?;
            Some(ParameterError {
                setting,
                value: format!("{bytes} bytes"),
                range: "[1 MB, any)",
            })
        });
        rates.chain(bytes).collect()
    }
}

/// Whether `host` is `name`, or lies under it as `www.example.org` under `example.org`.
fn is_under(host: &HostName, name: &HostName) -> bool {
    let rest = host.as_str().strip_suffix(name.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_speaks_for_what_lies_under_it_and_never_has_the_last_word() {
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let limits = HelpLimits {
            members: names(&["example.org", "www.friend.example"]),
            never: names(&["shop.example.org"]),
            ..HelpLimits::default()
        };
        let check = |host: &str| limits.check_member(&host.parse().unwrap());
        assert_eq!(check("example.org"), Ok(()));
        assert_eq!(check("www.example.org"), Ok(()));
        assert_eq!(check("www.friend.example"), Ok(()));
        assert_eq!(check("friend.example"), Err(CallRefusal::NotNamed));
        assert_eq!(check("myexample.org"), Err(CallRefusal::NotNamed));
        assert_eq!(check("www.shop.example.org"), Err(CallRefusal::Never));
    }
}
