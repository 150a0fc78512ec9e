//! PERMIT and REPORT, as the parameters of a line.
//!
//! ```text
//! origin -> rescue   5 PERMIT for=3600 stamp=1790000000000 key=ed25519:... sig=...
//! rescue -> origin   9 REPORT of=www-vh4.other.net:80 url=/news?page=2 seen=<64 hex> tls=1
//! ```
//!
//! Without `key` and `sig` a permit is a word between the two ends of the link. Keys and signatures
//! are texts here: who they belong to, and whether they hold, is no matter of lines. `tls=1` in a
//! report says that it was delivered by HTTPS.

use std::fmt;
use std::time::Duration;

use levee_vocab::WebAddress;

use crate::grammar::{ParseError, Words, digits, fill, flag};
use crate::publication::Digest;

/// What an origin allows its rescue server: to go on without it for so long after its last word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// `for`; whole seconds on the wire. Zero takes it back.
    pub length: Duration,
    /// Who says so, in a way that others can check.
    pub proof: Option<PermitProof>,
}

/// The origin's signature of a permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermitProof {
    /// `stamp`: when it was given, in milliseconds since 1970.
    pub stamp: u64,
    /// `key`: text of the origin's key.
    pub key: String,
    /// `sig`: text of the signature over [`Permit::claim`].
    pub signature: String,
}

/// A rescue server says that another one delivered something that the origin did not publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `of`: the alias under which it was delivered, with the port.
    pub alias: WebAddress,
    /// `url`: path and query.
    pub target: String,
    /// `seen`: what the body had.
    pub seen: Digest,
    /// `tls`: it was delivered by HTTPS.
    pub by_https: bool,
}

/// Longest key or signature.
const PROOF_MAX: usize = 120;
/// Longest target in a report: what is longer is not reported.
pub const REPORT_TARGET_MAX: usize = 600;

impl Permit {
    /// The text that is signed: who allows whom what, and when that was said.
    pub fn claim(origin: &WebAddress, alias: &WebAddress, length: Duration, stamp: u64) -> String {
        let seconds = length.as_secs();
        format!("PERMIT {origin} {alias} for={seconds} stamp={stamp}")
    }
}

impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " for={}", self.length.as_secs())?;
        let Some(proof) = &self.proof else {
            return Ok(());
        };
        let (stamp, key, signature) = (proof.stamp, &proof.key, &proof.signature);
        write!(f, " stamp={stamp} key={key} sig={signature}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebAddress { host, port } = &self.alias;
        let seen = self.seen.hexadecimal();
        write!(f, " of={host}:{port} url={} seen={seen}", self.target)?;
        f.write_str(if self.by_https { " tls=1" } else { "" })
    }
}

pub(crate) fn parse_permit(words: Words<'_>) -> Result<Permit, ParseError> {
    let (mut length, mut stamp, mut key, mut signature) = (None, None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "for" => fill(&mut length, "for", digits(value))?,
            "stamp" => fill(&mut stamp, "stamp", stamp_of(value))?,
            "key" => fill(&mut key, "key", proof_text(value))?,
            "sig" => fill(&mut signature, "sig", proof_text(value))?,
            _ => {}
        }
    }
    let proof = match (stamp, key, signature) {
        (Some(stamp), Some(key), Some(signature)) => Some(PermitProof {
            stamp,
            key,
            signature,
        }),
        (None, None, None) => None,
        (_, _, _) => return Err(ParseError::Missing("stamp, key or sig")),
    };
    let length = length.ok_or(ParseError::Missing("for"))?;
    Ok(Permit {
        length: Duration::from_secs(u64::from(length)),
        proof,
    })
}

pub(crate) fn parse_report(words: Words<'_>) -> Result<Report, ParseError> {
    let (mut alias, mut target, mut seen, mut by_https) = (None, None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "of" => fill(&mut alias, "of", alias_of(value))?,
            "url" => fill(&mut target, "url", target_of(value))?,
            "seen" => fill(&mut seen, "seen", digest_of(value))?,
            "tls" => fill(&mut by_https, "tls", flag(value))?,
            _ => {}
        }
    }
    Ok(Report {
        alias: alias.ok_or(ParseError::Missing("of"))?,
        target: target.ok_or(ParseError::Missing("url"))?,
        seen: seen.ok_or(ParseError::Missing("seen"))?,
        by_https: by_https.unwrap_or(false),
    })
}

fn stamp_of(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn proof_text(text: &str) -> Option<String> {
    (!text.is_empty() && text.len() <= PROOF_MAX).then(|| text.to_owned())
}

fn alias_of(text: &str) -> Option<WebAddress> {
    let (host, port) = text.rsplit_once(':')?;
    let port = u16::try_from(digits(port)?).ok()?;
    Some(WebAddress {
        host: host.parse().ok()?,
        port: Some(port).filter(|&port| port > 0)?,
    })
}

pub(crate) fn target_of(text: &str) -> Option<String> {
    let fits = text.starts_with('/') && text.len() <= REPORT_TARGET_MAX;
    fits.then(|| text.to_owned())
}

pub(crate) fn digest_of(text: &str) -> Option<Digest> {
    Digest::from_hexadecimal(text)
}
