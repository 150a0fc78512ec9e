//! That it is the origin who calls for help: `stamp=`, `id=` and `sig=` of an SOS in a closed
//! community.
//!
//! The signature covers the words of the SOS as they were sent, with those that the receiver does
//! not know, and the name of the one who is asked. So an SOS that was recorded cannot be sent to
//! another rescue server, and a later version may add words. What the words mean to a key is
//! another crate's business; here they are carried.

use std::fmt;

use levee_vocab::HostName;

use crate::grammar::{ParseError, Words, fill};
use crate::registry::{ProofWord, whole};

/// Who calls, and that it is so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SosProof {
    /// The caller's public key; `id` on the wire, because `key` is the fetch key.
    pub id: ProofWord,
    /// Milliseconds since 1970 by the caller's clock; each SOS has another.
    pub stamp: u64,
    /// Over [`Self::signed_text`].
    pub signature: ProofWord,
    /// The words of the SOS that the signature covers: all but itself, one space between them.
    pub covered: String,
}

impl SosProof {
    /// What the caller signs when it asks `asked`.
    pub fn signed_text(covered: &str, asked: &HostName) -> String {
        format!("{covered} for={asked}")
    }
}

impl fmt::Display for SosProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            " stamp={} id={} sig={}",
            self.stamp, self.id, self.signature
        )
    }
}

/// The three words as far as they were found.
pub(super) struct ProofWords {
    covered: String,
    stamp: Option<u64>,
    id: Option<ProofWord>,
    signature: Option<ProofWord>,
}

impl ProofWords {
    /// `words` are those after `SOS`.
    pub(super) fn new(words: &Words<'_>) -> Self {
        let kept = words.all().filter(|word| !word.starts_with("sig="));
        let covered = std::iter::once("SOS").chain(kept).collect::<Vec<_>>();
        Self {
            covered: covered.join(" "),
            stamp: None,
            id: None,
            signature: None,
        }
    }

    /// Takes a parameter if it is one of ours.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<(), ParseError> {
        match name {
            "stamp" => fill(&mut self.stamp, "stamp", whole(value)),
            "id" => fill(&mut self.id, "id", value.parse().ok()),
            "sig" => fill(&mut self.signature, "sig", value.parse().ok()),
            _ => Ok(()),
        }
    }

    /// A signature without the rest says nothing, and is a mistake.
    pub(super) fn proof(self) -> Result<Option<SosProof>, ParseError> {
        let Some(signature) = self.signature else {
            return Ok(None);
        };
        Ok(Some(SosProof {
            id: self.id.ok_or(ParseError::Missing("id"))?,
            stamp: self.stamp.ok_or(ParseError::Missing("stamp"))?,
            signature,
            covered: self.covered,
        }))
    }
}
