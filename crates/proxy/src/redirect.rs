//! Redirects and refusals: the answers of our worst minute.
//!
//! They are as short as HTTP allows, for each byte of one is a visitor who is not helped; and they
//! are written into a buffer that is used again, from pieces made when the plan was adopted, so
//! that one costs neither an allocation nor a lock.

use levee_control::{RedirectPlan, Target};
use levee_vocab::WebAddress;
use levee_wire::{BackWord, push_back};

use crate::response::{Closing, push_number, push_status};

/// What the current plan redirects to, ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Redirects {
    targets: Vec<Template>,
    longest: usize,
}

#[derive(Debug)]
struct Template {
    start: Vec<u8>,
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
                let mut start = Vec::new();
                push_start(302, &target.alias, &mut start);
                Template {
                    start,
                    slot: target.slot,
                }
            })
            .collect();
        let longest = targets.iter().map(|target| target.start.len()).max();
        Self {
            longest: longest.unwrap_or_default() + REST.len() + END_BYTES,
            targets,
        }
    }

    /// Bytes of a redirect for `target`; those of the longest where rescue servers have names of
    /// different length. What is counted too much here is a redirect that the Gate does not grant.
    pub const fn bytes(&self, target: &str, closing: Closing) -> u64 {
        (self.longest + target.len() + closing.line().len()) as u64
    }

    /// Writes the redirect of `target`, a path with its query, to the rescue server at `index`.
    /// Gives the slot of its counters; none where the plan has no such server.
    pub fn write(
        &self,
        index: usize,
        target: &str,
        date: &[u8],
        closing: Closing,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let template = self.targets.get(index)?;
        out.extend_from_slice(&template.start);
        finish(target, date, closing, out);
        Some(template.slot)
    }
}

/// A redirect from an alias back to its origin, outside of any plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Return<'a> {
    /// 302; or 307, which keeps the method, for what only the origin can answer.
    pub status: u16,
    pub site: &'a WebAddress,
    pub target: &'a str,
    /// What the visitor tells the origin.
    pub word: Option<BackWord>,
}

/// Writes a redirect back.
pub(crate) fn write_back(way: Return<'_>, date: &[u8], closing: Closing, out: &mut Vec<u8>) {
    push_start(way.status, way.site, out);
    push_returning(way.target, way.word, out);
    finish("", date, closing, out);
}

/// The lines of a redirect back that are not in every head.
pub(crate) fn lines_back(site: &WebAddress, target: &str, word: BackWord) -> String {
    let mut lines = Vec::with_capacity(256);
    push_location(site, &mut lines);
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
fn push_start(status: u16, site: &WebAddress, out: &mut Vec<u8>) {
    push_status(status, out);
    push_location(site, out);
}

fn push_location(site: &WebAddress, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Location: http://");
    out.extend_from_slice(site.host.as_str().as_bytes());
    if site.port != 80 {
        out.push(b':');
        push_number(site.port.into(), out);
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

    use levee_vocab::{ByteRate, LinkId};

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
            rate: ByteRate::from_kilobytes(100),
        }]);
        let date = DateLine::new(SystemTime::now());
        for closing in [Closing::Stay, Closing::StayExplicitly, Closing::Close] {
            let mut head = Vec::new();
            redirects.write(0, "/a?b=c", date.line(), closing, &mut head);
            assert_eq!(redirects.bytes("/a?b=c", closing), head.len() as u64);
        }
    }
}
