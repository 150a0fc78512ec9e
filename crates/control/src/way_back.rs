//! Visitors who are sent back to the origin by a rescue server that cannot answer them (H4, H5),
//! and why nobody is sent round and round.
//!
//! ```text
//!            first ── redirect ──▶ alias ── holds it, or may fetch it ──▶ page
//!   origin ◀── signed word ─────────┘ │ does not
//!      │ believed: answers itself     ▼
//!      │ not believed: may redirect once more, with the word left in the URL
//!      └──────── marked ───────────▶ alias: answers itself, or refuses; if it has expired:
//!   origin ◀── unsigned word ─────────┘
//!        answers itself
//! ```
//!
//! The two servers may believe what they like about each other: who is alive, whose rescue is over,
//! who holds what, which key is right. Two rules end every visit all the same. The origin redirects
//! nobody whose word it believes, nor whose word is unsigned. A rescue server sends nobody back by
//! a signed word who has a word already. So the words of one visit only ever go from none to signed
//! to unsigned, and each leg uses one up: [`REDIRECTS_MAX`].
//!
//! Why a word that is not believed is not the end: people share URLs from the address bar. A link
//! with the word of last week's rescue may be what brings the next crowd, and a crowd that may not
//! be redirected is a crowd without help.
//!
//! What is looked at is in the URL alone: no cookie, no Referer, no memory of visitors.

use crate::plan::OriginPhase;

/// Most redirects between an origin and its rescue servers before one of them answers a visit,
/// whatever they believe: there, back, there by a word that was not believed, back without one.
/// Two where the origin knows the keys of its rescue servers.
pub const REDIRECTS_MAX: u32 = 4;

/// What a request says of where it has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comeback {
    /// Nothing.
    None,
    /// A rescue server of ours sent it back a moment ago, and proves it.
    Believed,
    /// It has a word that proves nothing: of another rescue, too old, or forged; or nobody here can
    /// tell.
    Doubtful,
    /// It has a word without a proof.
    Unsigned,
}

/// How the origin may redirect a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// Without a word.
    Plain,
    /// With its word left in the URL, so that it is not sent back again.
    Marked,
    /// Not at all.
    Never,
}

/// Whether a rescue server could sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    /// It has the key of the rescue.
    Possible,
    /// It was restarted since, or was given none.
    Impossible,
}

/// How a rescue server sends a visitor back whom it cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WayBack {
    /// Not at all: it says what is wrong.
    None,
    /// With a signed word.
    Signed,
    /// With an unsigned one.
    Unsigned,
}

impl Comeback {
    /// How such a request may be redirected.
    pub const fn onward(self) -> Onward {
        match self {
            Self::None => Onward::Plain,
            Self::Doubtful => Onward::Marked,
            Self::Believed | Self::Unsigned => Onward::Never,
        }
    }
}

impl WayBack {
    /// The way back for a GET or HEAD that cannot be answered at an alias in this phase.
    pub const fn of(phase: OriginPhase, comeback: Comeback, signature: Signature) -> Self {
        match (phase, comeback, signature) {
            (
                OriginPhase::Live | OriginPhase::Ending { .. } | OriginPhase::Expired { .. },
                Comeback::None,
                Signature::Possible,
            ) => Self::Signed,
            // Of an origin that has died nobody would be there to answer.
            (
                OriginPhase::Live | OriginPhase::Orphaned { .. } | OriginPhase::Ending { .. },
                _,
                _,
            ) => Self::None,
            // There is nobody left to answer here, whatever the visitor has been through.
            (OriginPhase::Restored { .. } | OriginPhase::Expired { .. }, _, _) => Self::Unsigned,
        }
    }
}
