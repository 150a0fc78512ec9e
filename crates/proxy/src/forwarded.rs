//! Who a visitor is behind proxies that we trust, and what an upstream is told of it.
//!
//! `X-Forwarded-For` is a list to which each proxy adds whom it heard. Anybody may send one, so it
//! is believed only as far as trusted proxies wrote it: from its end back to the first address that
//! is not one of theirs. From anybody else the fields are replaced by our own.

use std::cell::RefCell;
use std::net::IpAddr;

use bytes::Bytes;
use levee_vocab::AddressBlock;

use crate::flight::RequestHeaders;

/// One hop of a request, as an upstream is told of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop<'a> {
    /// Whom we heard.
    pub peer: IpAddr,
    /// Host and port that were asked for.
    pub host: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Whose word is believed.
    pub trusted: &'a [AddressBlock],
}

/// The fields that are ours to write.
pub(crate) const FORWARDED_FIELDS: [&str; 5] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The visitor's own address, as far as it can be believed. Allocates nothing.
pub(crate) fn visitor(
    peer: IpAddr,
    trusted: &[AddressBlock],
    headers: &(impl RequestHeaders + ?Sized),
) -> IpAddr {
    if !is_trusted(trusted, peer) {
        return peer;
    }
    let mut path = Path::default();
    headers.each("x-forwarded-for", &mut |value| {
        for node in value.split(|&byte| byte == b',') {
            path.add(address_of(node), trusted);
        }
    });
    if path == Path::default() {
        headers.each("forwarded", &mut |value| {
            for element in outside_quotes(value, b',') {
                path.add(node_of(element).and_then(address_of), trusted);
            }
        });
    }
    path.visitor.or(path.first_proxy).unwrap_or(peer)
}

/// Whether the word of `address` is believed.
pub(crate) fn is_trusted(trusted: &[AddressBlock], address: IpAddr) -> bool {
    trusted.iter().any(|block| block.contains(address))
}

/// What is known of the way of a request, read from its far end to ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Path {
    /// The last that no trusted proxy has.
    visitor: Option<IpAddr>,
    /// The first of the proxies behind it.
    first_proxy: Option<IpAddr>,
}

impl Path {
    fn add(&mut self, node: Option<IpAddr>, trusted: &[AddressBlock]) {
        match node {
            // Who is hidden, or does not make sense, ends what can be known.
            None => *self = Self::default(),
            Some(address) if is_trusted(trusted, address) => {
                self.first_proxy.get_or_insert(address);
            }
            Some(address) => {
                self.visitor = Some(address);
                self.first_proxy = None;
            }
        }
    }
}

thread_local! {
    /// Where scheme and Host are written while an object is looked for: a hit allocates nothing.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Hop<'_> {
    /// Calls `look` with the scheme and Host that an application is told, by which the cache keeps
    /// its objects apart: `http://www.example.org`, and after a line end the other Host that a
    /// trusted proxy was asked for. Allocates nothing once this thread has seen a text as long.
    ///
    /// Upper case stays: an application that does not know `EXAMPLE.org` must not have what it says
    /// to it shown to others.
    pub fn with_base<R>(
        &self,
        headers: &(impl RequestHeaders + ?Sized),
        look: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let mut text = SCRATCH.take();
        text.clear();
        let is_trusted = is_trusted(self.trusted, self.peer);
        if is_trusted {
            push_joined(headers, "x-forwarded-proto", &mut text);
        }
        if text.is_empty() {
            text.extend_from_slice(self.scheme.as_bytes());
        }
        text.extend_from_slice(b"://");
        text.extend_from_slice(self.host.as_bytes());
        if is_trusted {
            text.push(b'\n');
            push_joined(headers, "x-forwarded-host", &mut text);
        }
        let found = look(&text);
        SCRATCH.set(text);
        found
    }

    /// The fields for an upstream. What a trusted proxy has told goes along.
    pub fn fields(&self, headers: &(impl RequestHeaders + ?Sized)) -> [(Bytes, Bytes); 5] {
        let is_trusted = is_trusted(self.trusted, self.peer);
        let told = |name: &str| match is_trusted {
            true => joined(headers, name),
            false => None,
        };
        let with = |name: &str, ours: String| match told(name) {
            Some(theirs) => [&theirs[..], b", ", ours.as_bytes()].concat(),
            None => ours.into_bytes(),
        };
        let or = |name: &str, ours: &str| told(name).unwrap_or_else(|| ours.as_bytes().to_vec());
        let node = match self.peer {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("\"[{address}]\""),
        };
        let element = format!("for={node};host=\"{}\";proto={}", self.host, self.scheme);
        let values = [
            with("forwarded", element),
            with("x-forwarded-for", self.peer.to_string()),
            or("x-forwarded-host", self.host),
            or("x-forwarded-proto", self.scheme),
            // Many proxies pass on what a visitor made up here, so it is always our word.
            visitor(self.peer, self.trusted, headers)
                .to_string()
                .into_bytes(),
        ];
        let mut values = values.into_iter().map(Bytes::from);
        FORWARDED_FIELDS.map(|name| {
            let value = values.next().unwrap_or_default();
            (Bytes::from_static(name.as_bytes()), value)
        })
    }
}

/// All values of a field as one; none where it is missing or empty.
fn joined(headers: &(impl RequestHeaders + ?Sized), name: &str) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    push_joined(headers, name, &mut all);
    (!all.is_empty()).then_some(all)
}

fn push_joined(headers: &(impl RequestHeaders + ?Sized), name: &str, out: &mut Vec<u8>) {
    let start = out.len();
    headers.each(name, &mut |value| {
        if out.len() > start && !value.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(value);
    });
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`, also in quotes.
fn address_of(node: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(node.trim_ascii()).ok()?;
    let text = text.trim_matches('"');
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.parse().ok(),
        None => text.split_once(':')?.0.parse().ok(),
    }
}

/// The value of `for` in an element of Forwarded (RFC 7239 section 4).
fn node_of(element: &[u8]) -> Option<&[u8]> {
    let mut pairs = outside_quotes(element, b';');
    pairs.find_map(|pair| {
        let at = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = pair.split_at(at);
        let is_for = name.trim_ascii().eq_ignore_ascii_case(b"for");
        is_for.then(|| &value[1..])
    })
}

/// Parts between separators that do not stand in quotes.
fn outside_quotes(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    text.split(move |&byte| {
        is_quoted ^= byte == b'"';
        byte == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(Bytes, Bytes)>;

    fn fields(lines: &[(&'static str, &'static str)]) -> Fields {
        let field = |(name, value): &(&'static str, &'static str)| {
            (
                Bytes::from_static(name.as_bytes()),
                Bytes::from_static(value.as_bytes()),
            )
        };
        lines.iter().map(field).collect()
    }

    fn trusted() -> Vec<AddressBlock> {
        vec!["10.0.0.0/8".parse().unwrap()]
    }

    /// The visitor behind `peer` where these fields came.
    fn check(peer: &str, lines: &[(&'static str, &'static str)], expected: &str) {
        let found = visitor(peer.parse().unwrap(), &trusted(), &fields(lines));
        assert_eq!(found.to_string(), expected, "{lines:?}");
    }

    #[test]
    fn objects_are_kept_apart_by_the_scheme_and_host_that_an_application_is_told() {
        let (host, proto) = ("x-forwarded-host", "x-forwarded-proto");
        let told = [(proto, "https"), (host, "shop.example")];
        let table: [(&str, &[_], &str); 5] = [
            ("192.0.2.1", &[], "http://site.example:8080"),
            ("192.0.2.1", &told, "http://site.example:8080"),
            ("10.0.0.1", &[], "http://site.example:8080\n"),
            ("10.0.0.1", &told, "https://site.example:8080\nshop.example"),
            (
                "10.0.0.1",
                &[(proto, ""), (host, "a.example"), (host, "b.example")],
                "http://site.example:8080\na.example, b.example",
            ),
        ];
        for (peer, lines, expected) in table {
            let hop = Hop {
                peer: peer.parse().unwrap(),
                host: "site.example:8080",
                scheme: "http",
                trusted: &trusted(),
            };
            let base = hop.with_base(&fields(lines), <[u8]>::to_vec);
            assert_eq!(String::from_utf8(base).unwrap(), expected);
        }
    }

    #[test]
    fn the_visitor_is_the_last_that_no_trusted_proxy_has() {
        let xff = "x-forwarded-for";
        check("192.0.2.1", &[(xff, "203.0.113.9")], "192.0.2.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &[(xff, "203.0.113.9")], "203.0.113.9");
        check(
            "10.0.0.1",
            &[(xff, "1.1.1.1, 203.0.113.9, 10.2.2.2")],
            "203.0.113.9",
        );
        check(
            "10.0.0.1",
            &[(xff, "1.1.1.1"), (xff, "203.0.113.9:80")],
            "203.0.113.9",
        );
        check("10.0.0.1", &[(xff, "[2001:db8::1]:80")], "2001:db8::1");
        check("10.0.0.1", &[(xff, "2001:db8::1")], "2001:db8::1");
        check("10.0.0.1", &[(xff, "10.3.3.3, 10.2.2.2")], "10.3.3.3");
        check(
            "10.0.0.1",
            &[(xff, "203.0.113.9, unknown, 10.2.2.2")],
            "10.2.2.2",
        );
        check("10.0.0.1", &[(xff, "203.0.113.9, unknown")], "10.0.0.1");
    }

    #[test]
    fn forwarded_is_read_where_the_older_field_is_missing() {
        let name = "forwarded";
        check(
            "10.0.0.1",
            &[(name, "for=203.0.113.9;proto=https")],
            "203.0.113.9",
        );
        let quoted = "for=1.1.1.1, proto=http;For=\"[2001:db8::1]:80\";by=\"a,b;for=x\"";
        check("10.0.0.1", &[(name, quoted)], "2001:db8::1");
        check("10.0.0.1", &[(name, "for=_hidden")], "10.0.0.1");
        let both = [(name, "for=1.1.1.1"), ("x-forwarded-for", "203.0.113.9")];
        check("10.0.0.1", &both, "203.0.113.9");
    }

    fn told(peer: &str, lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let hop = Hop {
            peer: peer.parse().unwrap(),
            host: "example.org",
            scheme: "http",
            trusted: &trusted(),
        };
        let fields = hop.fields(&fields(lines));
        let text = |(_, value): &(Bytes, Bytes)| String::from_utf8_lossy(value).into_owned();
        fields.iter().map(text).collect()
    }

    #[test]
    fn an_upstream_hears_our_word_and_that_of_trusted_proxies() {
        let lines = [
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "www.example.org"),
            ("forwarded", "for=203.0.113.9"),
            ("x-real-ip", "198.51.100.1"),
        ];
        let ours = "for=192.0.2.1;host=\"example.org\";proto=http";
        let from_anybody = told("192.0.2.1", &lines);
        let expected = [ours, "192.0.2.1", "example.org", "http", "192.0.2.1"];
        assert_eq!(from_anybody, expected);
        let from_trusted = told("10.0.0.1", &lines);
        let ours = "for=203.0.113.9, for=10.0.0.1;host=\"example.org\";proto=http";
        let list = "203.0.113.9, 10.0.0.1";
        let expected = [ours, list, "www.example.org", "https", "203.0.113.9"];
        assert_eq!(from_trusted, expected);
        let v6 = told("2001:db8::1", &[]);
        assert!(v6[0].starts_with("for=\"[2001:db8::1]\";"), "{}", v6[0]);
    }
}
