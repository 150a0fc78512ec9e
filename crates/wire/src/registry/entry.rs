//! What a site says of itself: its entry, its farewell, and the proof that it was the site who said
//! so.
//!
//! A stamp is the site's own counter, so that of two registrations every registry takes the newer
//! one, in whatever order they arrive. A proof is carried, never looked into: registries pass it on
//! unchanged, and every member of a closed community checks it from end to end.
//!
//! Whether the site's aliases answer by HTTPS is signed apart, over the same text and the word:
//! older versions leave the word out when they pass an entry on, and what is left is still what the
//! first signature covers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use levee_vocab::{AliasHttps, ByteRate, HostName, WebAddress};
use thiserror::Error;

use crate::grammar::{ParseError, Words, fill, flag};

/// What a site offers, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name and web port.
    pub site: WebAddress,
    /// Its address and rescue port, which round robin does not rotate.
    pub rescue: SocketAddr,
    /// d_free; whole kilobytes a second on the wire.
    pub free: ByteRate,
    /// How long the entry is to live, or still lives; whole seconds on the wire.
    pub lifetime: Duration,
    /// Milliseconds since 1970 by the site's clock, larger each time; 0 where it gives none.
    pub stamp: u64,
    /// Whether its aliases answer by HTTPS.
    pub https: AliasHttps,
    /// Who says so, in a closed community.
    pub proof: Option<Proof>,
}

/// What a site says that takes its entry back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// Its name.
    pub site: HostName,
    /// As in [`Entry::stamp`].
    pub stamp: u64,
    /// Who says so, in a closed community; its `asked` is zero.
    pub proof: Option<Proof>,
}

/// That it was the site who said so: a signature over [`Entry::signed_text`] or
/// [`Farewell::signed_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The site's public key.
    pub key: ProofWord,
    /// What it signed.
    pub signature: ProofWord,
    /// The lifetime that the site asked for and signed, of which `Entry::lifetime` is what is left;
    /// whole seconds on the wire.
    pub asked: Duration,
    /// A signature over [`Entry::signed_https_text`]; none where that says nothing.
    pub https_signature: Option<ProofWord>,
}

/// A key or a signature as text: 1 to 128 letters, digits and `:`, `-`, `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProofWord(Box<str>);

/// A text is no key and no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not 1 to 128 letters, digits, colons, hyphens and underscores")]
pub struct NotAProofWord;

impl Entry {
    /// An entry without stamp and proof that says nothing of HTTPS.
    pub const fn new(
        site: WebAddress,
        rescue: SocketAddr,
        free: ByteRate,
        lifetime: Duration,
    ) -> Self {
        let (stamp, proof) = (0, None);
        Self {
            site,
            rescue,
            free,
            lifetime,
            stamp,
            https: AliasHttps::Unknown,
            proof,
        }
    }

    /// What the owner of `key` signs: the line `REGISTER ...` without number and signature, in the
    /// units of the wire.
    pub fn signed_text(&self, key: &ProofWord) -> String {
        let proof = self.proof.as_ref();
        let lifetime = proof.map_or(self.lifetime, |proof| proof.asked);
        let (fixed, stamp) = (self.fixed(lifetime), self.stamp);
        format!("REGISTER {fixed} stamp={stamp} key={key}")
    }

    /// What the owner of `key` signs beside [`Self::signed_text`] where it says something of HTTPS:
    /// the same, and that.
    pub fn signed_https_text(&self, key: &ProofWord) -> Option<String> {
        let word = https_word(self.https)?;
        Some(format!("{}{word}", self.signed_text(key)))
    }

    pub(crate) fn parse(mut words: Words<'_>) -> Result<Self, ParseError> {
        let host: HostName = words.value("name")?;
        let port = words.port("web port")?;
        let address: IpAddr = words.value("address")?;
        let rescue_port = words.port("rescue port")?;
        let free = ByteRate::from_kilobytes(u64::from(words.number("free rate")?));
        let lifetime = Duration::from_secs(u64::from(words.number("lifetime")?));
        let mut attributes = Attributes::default();
        attributes.read(words)?;
        let rescue = SocketAddr::new(address.to_canonical(), rescue_port);
        let stamp = attributes.stamp.unwrap_or(0);
        let https = match attributes.https {
            None => AliasHttps::Unknown,
            Some(false) => AliasHttps::No,
            Some(true) => AliasHttps::Yes,
        };
        let https_signature = attributes.https_signature(https)?;
        let proof = attributes.proof(lifetime)?;
        Ok(Self {
            site: WebAddress { host, port },
            rescue,
            free,
            lifetime,
            stamp,
            https,
            proof: proof.map(|proof| Proof {
                https_signature,
                ..proof
            }),
        })
    }

    fn fixed(&self, lifetime: Duration) -> String {
        let WebAddress { host, port } = &self.site;
        let (address, rescue_port) = (self.rescue.ip(), self.rescue.port());
        let (free, lifetime) = (self.free.as_kilobytes(), whole_seconds(lifetime));
        format!("{host} {port} {address} {rescue_port} {free} {lifetime}")
    }
}

impl Farewell {
    /// A farewell without stamp and proof.
    pub const fn new(site: HostName) -> Self {
        let (stamp, proof) = (0, None);
        Self { site, stamp, proof }
    }

    /// What the owner of `key` signs: the line `DEREGISTER ...` without number and signature.
    pub fn signed_text(&self, key: &ProofWord) -> String {
        format!("DEREGISTER {} stamp={} key={key}", self.site, self.stamp)
    }

    pub(crate) fn parse(mut words: Words<'_>) -> Result<Self, ParseError> {
        let site = words.value("name")?;
        let mut attributes = Attributes::default();
        attributes.read(words)?;
        Ok(Self {
            site,
            stamp: attributes.stamp.unwrap_or(0),
            proof: attributes.proof(Duration::ZERO)?,
        })
    }
}

impl ProofWord {
    /// The word as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProofWord {
    type Err = NotAProofWord;

    fn from_str(text: &str) -> Result<Self, NotAProofWord> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_".contains(&byte);
        let is_word = (1..=PROOF_WORD_MAX).contains(&text.len()) && text.bytes().all(fits);
        is_word.then(|| Self(text.into())).ok_or(NotAProofWord)
    }
}

/// Parameters that may follow an entry or a farewell.
#[derive(Default)]
struct Attributes {
    stamp: Option<u64>,
    key: Option<ProofWord>,
    signature: Option<ProofWord>,
    asked: Option<u64>,
    https: Option<bool>,
    https_signature: Option<ProofWord>,
}

impl Attributes {
    fn read(&mut self, words: Words<'_>) -> Result<(), ParseError> {
        for pair in words.pairs() {
            let (name, value) = pair?;
            match name {
                "stamp" => fill(&mut self.stamp, "stamp", whole(value))?,
                "key" => fill(&mut self.key, "key", value.parse().ok())?,
                "sig" => fill(&mut self.signature, "sig", value.parse().ok())?,
                "asked" => fill(&mut self.asked, "asked", seconds(value))?,
                "https" => fill(&mut self.https, "https", flag(value))?,
                "https_sig" => fill(&mut self.https_signature, "https_sig", value.parse().ok())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A signature over a word that is not there, or of nobody, is a mistake.
    fn https_signature(&mut self, https: AliasHttps) -> Result<Option<ProofWord>, ParseError> {
        let signature = self.https_signature.take();
        match (&signature, &self.key) {
            (Some(_), _) if https == AliasHttps::Unknown => Err(ParseError::Missing("https")),
            (Some(_), None) => Err(ParseError::Missing("key")),
            (Some(_), Some(_)) | (None, _) => Ok(signature),
        }
    }

    /// Half a proof is a mistake; a lifetime that was asked for without one means nothing.
    fn proof(self, lifetime: Duration) -> Result<Option<Proof>, ParseError> {
        let asked = self.asked.map_or(lifetime, Duration::from_secs);
        match (self.key, self.signature) {
            (Some(key), Some(signature)) => Ok(Some(Proof {
                key,
                signature,
                asked,
                https_signature: None,
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ParseError::Missing("sig")),
            (None, Some(_)) => Err(ParseError::Missing("key")),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fixed(self.lifetime))?;
        write_attributes(f, self.stamp, self.proof.as_ref())?;
        f.write_str(https_word(self.https).unwrap_or_default())?;
        let proof = self.proof.as_ref();
        if let Some(signature) = proof.and_then(|proof| proof.https_signature.as_ref()) {
            write!(f, " https_sig={signature}")?;
        }
        let left = whole_seconds(self.lifetime);
        let asked = proof.map(|proof| whole_seconds(proof.asked));
        match asked {
            Some(asked) if asked != left => write!(f, " asked={asked}"),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Display for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.site)?;
        write_attributes(f, self.stamp, self.proof.as_ref())
    }
}

impl fmt::Display for ProofWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn write_attributes(f: &mut fmt::Formatter<'_>, stamp: u64, proof: Option<&Proof>) -> fmt::Result {
    if stamp > 0 {
        write!(f, " stamp={stamp}")?;
    }
    match proof {
        Some(proof) => write!(f, " key={} sig={}", proof.key, proof.signature),
        None => Ok(()),
    }
}

/// How it is said whether aliases answer by HTTPS; none where it is not.
const fn https_word(https: AliasHttps) -> Option<&'static str> {
    match https {
        AliasHttps::Unknown => None,
        AliasHttps::No => Some(" https=0"),
        AliasHttps::Yes => Some(" https=1"),
    }
}

/// Digits only: `u64::from_str` would take a plus sign too.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

fn seconds(text: &str) -> Option<u64> {
    whole(text).filter(|&seconds| seconds <= u64::from(u32::MAX))
}

pub(crate) fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// An Ed25519 signature has 86 characters in base64url, a key with its algorithm 51.
const PROOF_WORD_MAX: usize = 128;
