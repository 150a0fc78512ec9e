//! A member says that another one altered what it delivered; or takes that back.
//!
//! ```text
//! 7 ACCUSE www.origin.com www.liar.com stamp=1790000000000 url=/news seen=<64 hex> key=… sig=…
//! 7 ACCUSE www.origin.com www.liar.com stamp=1790000009000 key=… sig=…      taken back
//! ```
//!
//! The line is the same on its way to a registry, between registries, and in the answer to a member
//! who asks; a proof is carried and never looked into here.

use std::fmt;

use levee_vocab::HostName;

use super::entry::{ProofWord, whole};
use crate::grammar::{ParseError, Words, fill};
use crate::integrity_words::{digest_of, target_of};
use crate::publication::Digest;

/// What one member says of another. Of two with the same names the larger stamp counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accusation {
    /// Who says so.
    pub accuser: HostName,
    /// Of whom.
    pub accused: HostName,
    /// When, in milliseconds since 1970 by the accuser's clock.
    pub stamp: u64,
    /// What it saw; none where it takes back what it said before.
    pub sight: Option<Sight>,
    /// That it was the accuser who said so.
    pub proof: AccusationProof,
}

/// A page that was altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// `url`: path and query, cut to [`ACCUSED_TARGET_MAX`].
    pub target: String,
    /// `seen`: digest of what was delivered.
    pub seen: Digest,
}

/// A signature over [`Accusation::signed_text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccusationProof {
    /// `key`: the accuser's public key.
    pub key: ProofWord,
    /// `sig`: what it signed.
    pub signature: ProofWord,
}

/// Longest target: with two names of 253 letters the line stays below `LINE_MAX`.
pub const ACCUSED_TARGET_MAX: usize = 160;

impl Sight {
    /// The sight of `target`, cut where it is too long: it is for people, who find the rest at the
    /// accuser's own.
    pub fn of(target: &str, seen: Digest) -> Self {
        let fits = |byte: &u8| byte.is_ascii_graphic();
        let kept = target.bytes().take_while(fits).take(ACCUSED_TARGET_MAX);
        Self {
            target: kept.map(char::from).collect(),
            seen,
        }
    }
}

impl Accusation {
    /// What the owner of `key` signs: the line without number and signature.
    pub fn signed_text(&self, key: &ProofWord) -> String {
        let Self {
            accuser,
            accused,
            stamp,
            sight,
            ..
        } = self;
        let mut text = format!("ACCUSE {accuser} {accused} stamp={stamp}");
        if let Some(Sight { target, seen }) = sight {
            text.push_str(&format!(" url={target} seen={}", seen.hexadecimal()));
        }
        text.push_str(&format!(" key={key}"));
        text
    }

    /// What follows the command.
    pub(crate) fn parse(mut words: Words<'_>) -> Result<Self, ParseError> {
        let accuser = words.value("accuser")?;
        let accused = words.value("accused")?;
        let (mut stamp, mut target, mut seen) = (None, None, None);
        let (mut key, mut signature) = (None, None);
        for pair in words.pairs() {
            let (name, value) = pair?;
            match name {
                "stamp" => fill(&mut stamp, "stamp", whole(value))?,
                "url" => fill(&mut target, "url", short(value))?,
                "seen" => fill(&mut seen, "seen", digest_of(value))?,
                "key" => fill(&mut key, "key", value.parse().ok())?,
                "sig" => fill(&mut signature, "sig", value.parse().ok())?,
                _ => {}
            }
        }
        let sight = match (target, seen) {
            (Some(target), Some(seen)) => Some(Sight { target, seen }),
            (None, None) => None,
            (Some(_), None) => return Err(ParseError::Missing("seen")),
            (None, Some(_)) => return Err(ParseError::Missing("url")),
        };
        Ok(Self {
            accuser,
            accused,
            stamp: stamp.ok_or(ParseError::Missing("stamp"))?,
            sight,
            proof: AccusationProof {
                key: key.ok_or(ParseError::Missing("key"))?,
                signature: signature.ok_or(ParseError::Missing("sig"))?,
            },
        })
    }
}

fn short(text: &str) -> Option<String> {
    target_of(text).filter(|target| target.len() <= ACCUSED_TARGET_MAX)
}

impl fmt::Display for Accusation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AccusationProof { key, signature } = &self.proof;
        write!(f, "{} sig={signature}", self.signed_text(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LINE_MAX;
    use crate::registry::{Request, parse_request};

    fn accusation(sight: Option<Sight>) -> Accusation {
        let word = |letter: &str, length| letter.repeat(length).parse().unwrap();
        Accusation {
            accuser: "www.origin.example".parse().unwrap(),
            accused: "www.liar.example".parse().unwrap(),
            stamp: 1_790_000_000_000,
            sight,
            proof: AccusationProof {
                key: word("k", 51),
                signature: word("s", 86),
            },
        }
    }

    fn check(accusation: Accusation) {
        let mut line = Vec::new();
        Request::Accuse(Box::new(accusation.clone())).encode(u32::MAX, &mut line);
        assert!(line.len() <= LINE_MAX, "{}", line.len());
        let read = parse_request(line.trim_ascii_end());
        assert_eq!(read, Ok((u32::MAX, Request::Accuse(Box::new(accusation)))));
    }

    #[test]
    fn an_accusation_reads_as_it_is_written() {
        let seen = Digest([7; 32]);
        check(accusation(Some(Sight::of("/news?page=2", seen))));
        check(accusation(None));
    }

    #[test]
    fn the_longest_fits_a_line() {
        let long = format!("/{}", "x".repeat(1000));
        let mut longest = accusation(Some(Sight::of(&long, Digest([7; 32]))));
        let label = "a".repeat(63);
        let name = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        longest.accuser = name.parse().unwrap();
        longest.accused = name.parse().unwrap();
        check(longest);
    }

    #[test]
    fn half_a_sight_or_half_a_proof_is_a_mistake() {
        let refused = |rest: &str, missing| {
            let line = format!("1 ACCUSE a.example b.example {rest}");
            let read = parse_request(line.as_bytes());
            assert_eq!(read, Err(ParseError::Missing(missing)), "{rest}");
        };
        refused("stamp=1 url=/ key=k sig=s", "seen");
        refused("stamp=1 key=k", "sig");
        refused("key=k sig=s", "stamp");
    }
}
