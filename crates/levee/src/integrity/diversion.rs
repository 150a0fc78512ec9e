//! Whether what is delivered sends visitors elsewhere than the origin would.
//!
//! A rescue server may send a visitor back to the origin, or to the same page of the same alias (to
//! HTTPS). It has no reason to send him anywhere else from a page that the origin answers with 200.
//! Browsers read a great deal as a URL, so what is not plainly one of those two is elsewhere.
//!
//! Of fields only `Refresh` is compared: it moves a visitor as a redirect does. A rescue server
//! adds a `Link` of its own (`rel="canonical"`).

use http::header::{self, HeaderMap, HeaderName};
use levee_vocab::WebAddress;

use super::scene::Helper;
use crate::way::Scheme;

/// Moves a visitor after some seconds; an old field without an RFC, in the HTML standard since.
const REFRESH: HeaderName = header::REFRESH;

/// Longest piece of a URL that is kept as evidence.
const EVIDENCE_MAX: usize = 200;

/// Where a visitor is who has asked `helper` for `target` of `site`.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'a> {
    pub(super) site: &'a WebAddress,
    pub(super) helper: &'a Helper,
    pub(super) target: &'a str,
}

impl Whereabouts<'_> {
    /// Whether this `Location` leads where a rescue server may send him.
    pub fn is_at_home(self, location: &[u8]) -> bool {
        let text = String::from_utf8_lossy(location);
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(_) | None => {
                let is_target = text == self.target && !text.starts_with("//");
                return is_target && text.bytes().all(is_plain);
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // What stands behind it is the visitor's: who asks for odd paths is sent back with them.
        if !authority.bytes().all(is_plain) {
            return false;
        }
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (authority, Some(scheme.usual_port())),
        };
        let (alias, _) = self.helper.door(scheme);
        let is_origin = host == self.site.host.as_str() && port.is_some();
        let is_same = host == alias.host.as_str() && port == Some(alias.port);
        is_origin || (is_same && target == self.target)
    }
}

/// Whether it means the same to everybody who reads URLs; browsers leave out tabs, for example.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'\\'
}

/// Whether two readings of a page of ours move visitors alike: one that does so in a new way each
/// time says nothing of what others deliver.
pub fn moves_alike(before: &HeaderMap, after: &HeaderMap) -> bool {
    before
        .get_all(REFRESH)
        .iter()
        .eq(after.get_all(REFRESH).iter())
}

/// Whether `delivered` moves a visitor by a field that `ours` has not.
pub fn is_moved_by(delivered: &HeaderMap, ours: &HeaderMap) -> bool {
    let mut refreshes = delivered.get_all(REFRESH).iter();
    refreshes.any(|value| !ours.get_all(REFRESH).iter().any(|one| one == value))
}

/// Whether it moves a visitor by a field at all.
pub fn moves(delivered: &HeaderMap) -> bool {
    delivered.contains_key(REFRESH)
}

/// Where a visitor is sent, as evidence: one word. `location` is that of a redirect.
pub fn evidence(location: Option<&[u8]>, delivered: &HeaderMap) -> Option<String> {
    let refresh = || delivered.get(REFRESH).map(header::HeaderValue::as_bytes);
    let (mark, value) = match location {
        Some(location) => ("redirect-to:", location),
        None => ("refresh:", refresh()?),
    };
    let letter = |&byte: &u8| match byte.is_ascii_graphic() {
        true => char::from(byte),
        false => '_',
    };
    let value = value.iter().take(EVIDENCE_MAX).map(letter);
    Some(mark.chars().chain(value).collect())
}

#[cfg(test)]
mod tests {
    use levee_vocab::LinkId;

    use super::*;

    fn address(host: &str, port: u16) -> WebAddress {
        let host = host.parse().unwrap();
        WebAddress { host, port }
    }

    fn is_at_home(location: &str) -> bool {
        let helper = Helper {
            link: LinkId::Outbound(1),
            site: "www.alice.test".parse().unwrap(),
            alias: address("news-vh1.alice.test", 8080),
            address: "127.0.0.1:8080".parse().unwrap(),
            tls: Some(443),
        };
        let whereabouts = Whereabouts {
            site: &address("www.news.test", 80),
            helper: &helper,
            target: "/page?2",
        };
        whereabouts.is_at_home(location.as_bytes())
    }

    #[test]
    fn a_rescue_server_may_send_visitors_back_and_to_the_same_page_by_https() {
        for location in [
            "http://www.news.test/page?2&levee-back=x",
            "https://www.news.test:8443/elsewhere",
            "https://www.news.test",
            "https://news-vh1.alice.test/page?2",
            "http://news-vh1.alice.test:8080/page?2",
            "/page?2",
        ] {
            assert!(is_at_home(location), "{location}");
        }
    }

    /// Found in review: whoever asked a single-page application for `/a\b` could have had an honest
    /// member expelled, which had sent him back with that path.
    #[test]
    fn odd_paths_that_visitors_ask_for_are_sent_back_as_they_are() {
        for location in [
            "http://www.news.test/a\\b?levee-back=x",
            "http://www.news.test/\u{e4}?levee-back=x",
            "http://www.news.test/a\tb",
        ] {
            assert!(is_at_home(location), "{location}");
        }
    }

    #[test]
    fn what_a_browser_may_read_as_another_place_is_elsewhere() {
        for location in [
            "http://www.evil.test/page?2",
            "http://www.news.test.evil.test/",
            "http://www.news.test@evil.test/",
            "http://www.news.test:80@evil.test/",
            "http://www.news.test\\@evil.test/",
            "http://news-vh1.alice.test/page?2",
            "https://news-vh1.alice.test/another",
            "https://news-vh2.alice.test/page?2",
            "//evil.test/page?2",
            "/\\evil.test/",
            "/another",
            "http:evil.test",
            "\thttp://evil.test/",
            "http://www.ne\tws.test.evil.test/",
            "http://www.ne\tws.test/",
            "/page?2\\",
            "javascript:alert(1)",
            "ftp://www.news.test/",
            "",
        ] {
            assert!(!is_at_home(location), "{location}");
        }
    }

    #[test]
    fn a_refresh_that_the_origin_sends_moves_nobody() {
        let fields = |values: &[&'static str]| {
            let fields = values.iter().map(|value| {
                let value = header::HeaderValue::from_static(value);
                (REFRESH, value)
            });
            fields.collect::<HeaderMap>()
        };
        let ours = fields(&["30"]);
        assert!(!is_moved_by(&ours, &ours));
        assert!(!is_moved_by(&fields(&[]), &ours));
        assert!(is_moved_by(&ours, &fields(&[])));
        let both = fields(&["30", "0; url=//evil.test"]);
        assert!(!moves(&fields(&[])) && moves(&both) && is_moved_by(&both, &ours));
        assert!(moves_alike(&ours, &ours) && !moves_alike(&ours, &both));
        let told = evidence(None, &fields(&["0; url=//evil.test"]));
        assert_eq!(told.as_deref(), Some("refresh:0;_url=//evil.test"));
        let told = evidence(Some(b"//evil.test"), &ours);
        assert_eq!(told.as_deref(), Some("redirect-to://evil.test"));
        assert_eq!(evidence(None, &HeaderMap::new()), None);
    }
}
