//! Redirects and refusals: the answers of our worst minute.
//!
//! They are as short as HTTP allows, for each byte of one is a visitor who is not helped; and they
//! are written into a buffer that is used again, from pieces made when the plan was adopted, so
//! that one costs neither an allocation nor a lock.

use levee_control::{OriginRoute, RedirectPlan, Target};
use levee_vocab::HostName;
use levee_wire::{BackWord, push_back};

use crate::request::Scheme;
use crate::response::{Closing, push_number, push_status};

/// What the current plan redirects to, ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    targets: Vec<Template>,
    longest: usize,
    /// The same of those by HTTPS.
    longest_secure: usize,
}

#[derive(Debug)]
struct Template {
    start: Vec<u8>,
    /// For visitors who came by HTTPS; none where the rescue server does not speak it.
    secure: Option<Vec<u8>>,
    slot: u8,
}

/// 302: the visitor comes back here next time. no-store: no cache keeps it after the crowd is gone.
const REST: &[u8] = b"\r\nCache-Control: no-store\r\nContent-Length: 0\r\n";
/// What follows in every redirect: Date and the empty line.
const END_BYTES: usize = 37 + 2;

impl Redirects {
    /// Templates for the targets of `plan`.
    pub fn of(plan: Option<&RedirectPlan>) -> Self {
        Self::to(plan.map_or(&[], |redirect| &redirect.targets))
    }

    fn to(targets: &[Target]) -> Self {
        let targets: Vec<Template> = targets
            .iter()
            .map(|target| {
                let host = &target.alias.host;
                let to = |scheme, port| {
                    let mut start = Vec::new();
                    push_start(302, (scheme, host, port), &mut start);
                    start
                };
                Template {
                    start: to(Scheme::Http, target.alias.port),
                    secure: target.tls.map(|port| to(Scheme::Https, port)),
                    slot: target.slot,
                }
            })
            .collect();
        let whole = |start: Option<usize>| start.unwrap_or_default() + REST.len() + END_BYTES;
        let plain = targets.iter().map(|target| target.start.len());
        let secure = targets.iter().filter_map(|target| target.secure.as_ref());
        Self {
            longest: whole(plain.max()),
            longest_secure: whole(secure.map(Vec::len).max()),
            targets,
        }
    }

    /// Bytes of a redirect of `target` by `scheme`; those of the longest where rescue servers have
    /// names of different length. What is counted too much here is a redirect that the Gate does
    /// not grant.
    pub const fn bytes(&self, scheme: Scheme, target: &str, closing: Closing) -> u64 {
        let longest = match scheme {
            Scheme::Http => self.longest,
            Scheme::Https => self.longest_secure,
        };
        (longest + target.len() + closing.line().len()) as u64
    }

    /// Writes the redirect of `target`, a path with its query, to the rescue server at `index`, for
    /// a visitor who came by `scheme`. Gives the slot of its counters; none where the plan has no
    /// such server, or none that speaks it.
    pub fn write(
        &self,
        (index, scheme): (usize, Scheme),
        target: &str,
        date: &[u8],
        closing: Closing,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let template = self.targets.get(index)?;
        out.extend_from_slice(match scheme {
            Scheme::Http => &template.start,
            Scheme::Https => template.secure.as_ref()?,
        });
        finish(target, date, closing, out);
        Some(template.slot)
    }
}

/// A redirect from an alias back to its origin, outside of any plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Return<'a> {
    /// 302; or 307, which keeps the method, for what only the origin can answer.
    pub status: u16,
    pub site: &'a SiteUrl,
    pub target: &'a str,
    /// What the visitor tells the origin.
    pub word: Option<BackWord>,
}

/// The beginning of a URL: scheme, name and port of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SiteUrl {
    scheme: Scheme,
    host: HostName,
    port: u16,
}

impl SiteUrl {
    /// Where a visitor who came by `scheme` finds `origin`: by HTTPS again, if it speaks it.
    pub fn of(origin: &OriginRoute, scheme: Scheme) -> Self {
        let (scheme, port) = match (scheme, origin.tls) {
            (Scheme::Https, Some(port)) => (Scheme::Https, port),
            (Scheme::Https, None) | (Scheme::Http, _) => (Scheme::Http, origin.origin.port),
        };
        let host = origin.origin.host.clone();
        Self { scheme, host, port }
    }

    /// Appends it.
    pub fn push(&self, out: &mut Vec<u8>) {
        push_site((self.scheme, &self.host, self.port), out);
    }
}

/// Writes a redirect back.
pub(crate) fn write_back(way: Return<'_>, date: &[u8], closing: Closing, out: &mut Vec<u8>) {
    let SiteUrl { scheme, host, port } = way.site;
    push_start(way.status, (*scheme, host, *port), out);
    push_returning(way.target, way.word, out);
    finish("", date, closing, out);
}

/// The lines of a redirect back that are not in every head.
pub(crate) fn lines_back(site: &SiteUrl, target: &str, word: BackWord) -> String {
    let mut lines = Vec::with_capacity(256);
    lines.extend_from_slice(b"Location: ");
    site.push(&mut lines);
    push_returning(target, Some(word), &mut lines);
    lines.extend_from_slice(b"\r\nCache-Control: no-store\r\n");
    String::from_utf8(lines).unwrap_or_default()
}

fn push_returning(target: &str, word: Option<BackWord>, out: &mut Vec<u8>) {
    match word {
        Some(word) => push_back(target, word, out),
        None => out.extend_from_slice(target.as_bytes()),
    }
}

/// Writes a redirect of `target` to the same by HTTPS. Caches may keep it for an hour: an operator
/// who changes his mind waits no longer than that.
pub(crate) fn write_to_https(
    (host, port): (&str, u16),
    target: &str,
    date: &[u8],
    closing: Closing,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"HTTP/1.1 308 Permanent Redirect\r\nLocation: https://");
    out.extend_from_slice(host.as_bytes());
    if port != 443 {
        out.push(b':');
        push_number(port.into(), out);
    }
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b"\r\nCache-Control: max-age=3600\r\nContent-Length: 0\r\n");
    out.extend_from_slice(date);
    out.extend_from_slice(closing.line());
    out.extend_from_slice(b"\r\n");
}

/// Writes a refusal: come back later. The time is short, for help is on its way; visitors who all
/// come back at once find it there.
pub(crate) fn write_refusal(date: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n",
    );
    out.extend_from_slice(date);
    out.extend_from_slice(Closing::Close.line());
    out.extend_from_slice(b"\r\n");
}

/// Tells a crawler to come back later. What it may have is given out evenly, so a while is enough.
pub(crate) fn write_putting_off(date: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 60\r\nContent-Length: 0\r\n",
    );
    out.extend_from_slice(date);
    out.extend_from_slice(Closing::Close.line());
    out.extend_from_slice(b"\r\n");
}

/// Status line and Location, up to the path.
fn push_start(status: u16, site: (Scheme, &HostName, u16), out: &mut Vec<u8>) {
    push_status(status, out);
    out.extend_from_slice(b"Location: ");
    push_site(site, out);
}

fn push_site((scheme, host, port): (Scheme, &HostName, u16), out: &mut Vec<u8>) {
    let usual = match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    out.extend_from_slice(scheme.as_str().as_bytes());
    out.extend_from_slice(b"://");
    out.extend_from_slice(host.as_str().as_bytes());
    if port != usual {
        out.push(b':');
        push_number(port.into(), out);
    }
}

fn finish(target: &str, date: &[u8], closing: Closing, out: &mut Vec<u8>) {
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(REST);
    out.extend_from_slice(date);
    out.extend_from_slice(closing.line());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use levee_vocab::{ByteRate, LinkId, WebAddress};

    use super::*;
    use crate::date::DateLine;

    #[test]
    fn a_redirect_is_as_long_as_the_gate_was_told() {
        let redirects = Redirects::to(&[Target {
            link: LinkId::Outbound(1),
            slot: 0,
            alias: WebAddress {
                host: "www-vh1.rescue.example".parse().unwrap(),
                port: 8080,
            },
            address: [192, 0, 2, 1].into(),
            tls: Some(443),
            rate: ByteRate::from_kilobytes(100),
        }]);
        let date = DateLine::new(SystemTime::now());
        for closing in [Closing::Stay, Closing::StayExplicitly, Closing::Close] {
            for scheme in [Scheme::Http, Scheme::Https] {
                let mut head = Vec::new();
                redirects.write((0, scheme), "/a?b=c", date.line(), closing, &mut head);
                let told = redirects.bytes(scheme, "/a?b=c", closing);
                assert_eq!(told, head.len() as u64);
            }
        }
    }
}
