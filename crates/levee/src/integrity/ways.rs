//! By which ways our visitors come to a rescue server, and so the looks.
//!
//! A visitor by HTTPS is redirected only to an alias that answers by HTTPS. A site that sends all
//! visitors to HTTPS has no others, so who alters pages would alter only those. Where visitors come
//! either way, looks do by turn of chance.

use crate::https::HttpsPorts;
use crate::way::Scheme;

/// What becomes of our visitors by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTheClear {
    /// They are served.
    Served,
    /// They are sent to HTTPS, as soon as there is a certificate.
    SentOn,
}

/// See the file header.
#[derive(Clone, Debug)]
pub struct Ways {
    https: HttpsPorts,
    in_the_clear: InTheClear,
}

impl Ways {
    /// Of a site that is answered by HTTPS like this.
    pub const fn new(https: HttpsPorts, in_the_clear: InTheClear) -> Self {
        Self {
            https,
            in_the_clear,
        }
    }

    /// The ways to an alias that answers by HTTPS at `tls`, if at all. Never empty: an alias that
    /// does not is looked at by HTTP, whoever is sent there.
    pub fn to(&self, tls: Option<u16>) -> &'static [Scheme] {
        ways(self.https.now().site, self.in_the_clear, tls)
    }
}

const fn ways(
    ours: Option<u16>,
    in_the_clear: InTheClear,
    theirs: Option<u16>,
) -> &'static [Scheme] {
    match (ours, in_the_clear, theirs) {
        (None, _, _) | (Some(_), _, None) => &[Scheme::Http],
        (Some(_), InTheClear::SentOn, Some(_)) => &[Scheme::Https],
        (Some(_), InTheClear::Served, Some(_)) => &[Scheme::Http, Scheme::Https],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_as_visitors_do() {
        let https = Some(443);
        assert_eq!(ways(https, InTheClear::SentOn, https), [Scheme::Https]);
        let both = [Scheme::Http, Scheme::Https];
        assert_eq!(ways(https, InTheClear::Served, https), both);
        // Without a certificate of ours visitors stay with HTTP, and without one of theirs nobody
        // is sent there by HTTPS.
        for (ours, theirs) in [(None, https), (https, None), (None, None)] {
            assert_eq!(ways(ours, InTheClear::SentOn, theirs), [Scheme::Http]);
        }
    }
}
