//! A page whose links to its own objects are made relative before it is pushed, so that a browser
//! which got it from a rescue server asks for them there too (hotspot-avoidance, section 3).
//!
//! It is another page than the origin serves: its ETag says so, by which it also replaces the page
//! as it is at a rescue server that has fetched that already; and since it goes without a coding it
//! varies by none. Whenever the rescue server fetches it, because its time is over or it went, it
//! gets the page as it is, and the rewritten one is sent again (`renewals.rs`). Links that visitors
//! follow lead where they led.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use levee_page::{Hyperlinks, Rewriter};
use levee_proxy::{Errand, Facts, Publisher, digest_of};

use super::Member;
use super::look::Seen;
use super::push::Errands;
use crate::settings::CopiedLinks;

/// Fields that are about the bytes as they were.
const OF_THE_BYTES: [&str; 14] = [
    "accept-ranges",
    "connection",
    "content-digest",
    "content-length",
    "content-md5",
    "digest",
    "etag",
    "keep-alive",
    "last-modified",
    "repr-digest",
    "signature",
    "signature-input",
    "transfer-encoding",
    "vary",
];

/// The end of the ETag of a rewritten page.
const TAG_END: &str = "-relative\"";

/// A page that was rewritten.
pub(super) struct Rewritten {
    /// Its ETag.
    pub version: HeaderValue,
    /// The response as it goes over a connection.
    pub message: Bytes,
}

impl Errands {
    /// The response for `target`, rewritten; none where there is nothing to rewrite in it, or it
    /// cannot be read as a whole: it then goes as it is.
    ///
    /// Cancel safety: as nothing is changed, it may be dropped at any point.
    pub(super) async fn rewritten(&self, target: &str, member: &Member) -> Option<Rewritten> {
        if self.site().links == CopiedLinks::Kept {
            return None;
        }
        let reader = member.address.ip();
        // It is looked at first, so that what goes as it is is charged once.
        let seen = self
            .read(Method::HEAD, target, Errand::Look(reader), None)
            .await;
        self.rewriter(target, &seen.ok()?)?;
        let seen = self
            .read(
                Method::GET,
                target,
                Errand::PassOn(reader),
                Some(member.key.to_string()),
            )
            .await;
        let seen = seen.ok()?;
        let mut rewriter = self.rewriter(target, &seen)?;
        let mut page = Vec::with_capacity(seen.body.len());
        rewriter.write(&seen.body, &mut page);
        rewriter.finish(&mut page);
        let version = version(&seen.headers, &page);
        Some(Rewritten {
            message: message(
                &seen.headers,
                &version,
                &page,
                &self.signed(target, &seen, &page),
            ),
            version,
        })
    }

    /// The lines that sign the page as it is now: it is ours like the one as it was.
    fn signed(&self, target: &str, seen: &Seen, page: &[u8]) -> String {
        let facts = Facts {
            status: StatusCode::OK.as_u16(),
            content_type: Some(seen.content_type()),
            content_encoding: None,
            target,
        };
        let publisher = self.site().publisher;
        let lines = |publisher: Arc<Publisher>| publisher.lines(facts, digest_of(page));
        publisher.map(lines).unwrap_or_default()
    }

    fn rewriter(&self, target: &str, seen: &Seen) -> Option<Rewriter> {
        let host = self.site().web.host;
        if !may_be_rewritten(seen) || is_tied(&seen.headers, host.as_str()) {
            return None;
        }
        Rewriter::new(seen.content_type(), self.place(target)?, Hyperlinks::Kept)
    }
}

/// Pages only: a style sheet or a script may be named with a hash of its bytes (`integrity`).
//= RFC 9111 section 5.2.2.6: with no-transform an intermediary "MUST NOT transform the content".
fn may_be_rewritten(seen: &Seen) -> bool {
    let kind = seen.content_type().split(';').next().unwrap_or_default();
    let is_page = ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|page| kind.trim().eq_ignore_ascii_case(page));
    let controls = seen.headers.get_all(header::CACHE_CONTROL).iter();
    let mut words = controls
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    is_page && !words.any(|word| word.trim().eq_ignore_ascii_case("no-transform"))
}

/// Whether the page has a policy that names the origin, by which a browser would load from nowhere
/// else, or the digest of a style, which must not be changed then.
fn is_tied(headers: &HeaderMap, host: &str) -> bool {
    let mut policies = headers.get_all(header::CONTENT_SECURITY_POLICY).iter();
    policies.any(|policy| {
        let policy = String::from_utf8_lossy(policy.as_bytes()).to_ascii_lowercase();
        policy.contains("'sha") || policy.contains(host)
    })
}

/// The response as it goes over a connection.
fn message(headers: &HeaderMap, version: &HeaderValue, page: &[u8], signed: &str) -> Bytes {
    let mut message = format!(
        "HTTP/1.1 {}\r\ncontent-length: {}\r\n",
        StatusCode::OK,
        page.len()
    )
    .into_bytes();
    let mut push = |name: &HeaderName, value: &[u8]| {
        for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
            message.extend_from_slice(part);
        }
    };
    for (name, value) in headers {
        if !OF_THE_BYTES.contains(&name.as_str()) {
            push(name, value.as_bytes());
        }
    }
    push(&header::ETAG, version.as_bytes());
    for name in other_variations(headers) {
        push(&header::VARY, name.as_bytes());
    }
    message.extend_from_slice(signed.as_bytes());
    message.extend_from_slice(b"\r\n");
    message.extend_from_slice(page);
    message.into()
}

/// An ETag that the page as it is does not have: `"abc"` as `"abc-relative"`; by its content where
/// it has none.
fn version(headers: &HeaderMap, page: &[u8]) -> HeaderValue {
    let tag = headers.get(header::ETAG);
    let inner = tag.and_then(|tag| tag.as_bytes().strip_suffix(b"\""));
    let named = inner.and_then(|inner| {
        let tag = [inner, TAG_END.as_bytes()].concat();
        HeaderValue::from_bytes(&tag).ok()
    });
    named.unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        hasher.write(page);
        let tag = format!("\"{:016x}{TAG_END}", hasher.finish());
        HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"relative\""))
    })
}

/// What it varies by beside the coding.
fn other_variations(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::VARY).iter();
    let names = values.filter_map(|value| value.to_str().ok());
    let names = names.flat_map(|value| value.split(',')).map(str::trim);
    names.filter(|name| !name.eq_ignore_ascii_case(header::ACCEPT_ENCODING.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_rewritten_and_only_where_nobody_forbids_it() {
        let seen = |kind: &str, control: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            headers.insert(header::CACHE_CONTROL, control.parse().unwrap());
            let body = Bytes::new();
            Seen { headers, body }
        };
        assert!(may_be_rewritten(&seen(
            "Text/HTML; charset=utf-8",
            "max-age=60"
        )));
        assert!(!may_be_rewritten(&seen(
            "text/html",
            "max-age=60, No-Transform"
        )));
        assert!(!may_be_rewritten(&seen("text/css", "max-age=60")));
    }

    #[test]
    fn a_rewritten_page_has_validators_of_its_own_and_varies_by_no_coding() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "text/html"),
            ("content-length", "99"),
            ("etag", "W/\"abc\""),
            ("last-modified", "yesterday"),
            ("vary", "Accept-Encoding, Origin"),
            ("cache-control", "max-age=60"),
            ("connection", "close"),
        ] {
            headers.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        let message = message(&headers, &version(&headers, b"page"), b"page", "");
        assert_eq!(
            String::from_utf8(message.to_vec()).unwrap(),
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-type: text/html\r\n\
             cache-control: max-age=60\r\netag: W/\"abc-relative\"\r\nvary: Origin\r\n\r\npage"
        );
        headers.remove(header::ETAG);
        let nameless = version(&headers, b"page");
        assert_eq!(nameless, version(&headers, b"page"));
        assert_ne!(nameless, version(&headers, b"another page"));
    }

    #[test]
    fn a_policy_that_names_the_origin_or_a_digest_ties_a_page() {
        let check = |policy: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy.parse().unwrap());
            assert_eq!(is_tied(&headers, "www.example.org"), expected, "{policy}");
        };
        check("default-src 'self'", false);
        check("style-src 'SHA256-abc='", true);
        check("img-src https://WWW.example.org", true);
        assert!(!is_tied(&HeaderMap::new(), "www.example.org"));
    }
}
