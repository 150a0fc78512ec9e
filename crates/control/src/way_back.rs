//! Visitors who are sent back to the origin by a rescue server that cannot answer them (H4, H5),
//! and why nobody is sent round and round.
//!
//! ```text
//!            first ── redirect ──▶ alias ── holds it, or may fetch it ──▶ page
//!   origin ◀── word ────────────────┘ │ does not
//!      │ believed: answers itself     ▼
//!      │ not believed, or unsigned: may redirect once more, with a mark of its own in the URL
//!      └──────── marked ───────────▶ alias: answers itself, or refuses; if it has expired:
//!   origin ◀── the same mark ─────────┘
//!        knows its mark, and answers itself
//! ```
//!
//! The two servers may believe what they like about each other: who is alive, whose rescue is over,
//! who holds what, which key is right. Two rules end every visit all the same. A rescue server
//! signs for nobody who has a word already: who cannot be answered then goes back with what he has.
//! And the origin redirects nobody who brings back the mark that it gave him a moment ago. So the
//! words of one visit only ever go from none to the rescue server's to the origin's:
//! [`REDIRECTS_MAX`].
//!
//! Why a word that is not believed is not the end, nor one without a signature: people share URLs
//! from the address bar. A link with the word of last week's rescue may be what brings the next
//! crowd, and a crowd that may not be redirected is a crowd without help. Any word that is never
//! redirected without a proof could be shared so; hence the origin takes nobody's word but its own,
//! and its own for a minute.
//!
//! A mark also tells whom it sent the visitor to, so the origin learns who sends visitors back
//! without signing ([`Marks`]).
//!
//! What is looked at is in the URL alone: no cookie, no Referer, no memory of visitors.

use crate::plan::OriginPhase;

/// Most redirects between an origin and its rescue servers before one of them answers a visit,
/// whatever they believe: there, back, there with a mark, back with it. Two where both know the key
/// of the rescue.
pub const REDIRECTS_MAX: u32 = 4;

/// What a request says of where it has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comeback {
    /// Nothing.
    None,
    /// A rescue server of ours sent it back a moment ago, and proves it.
    Believed,
    /// It has the mark with which we redirected it a moment ago.
    Returned,
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
    /// With a mark of ours in the URL, by which it is known when it comes back.
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
    /// With the word that he came with.
    Kept,
}

impl Comeback {
    /// How such a request may be redirected.
    pub const fn onward(self) -> Onward {
        match self {
            Self::None => Onward::Plain,
            Self::Doubtful | Self::Unsigned => Onward::Marked,
            Self::Believed | Self::Returned => Onward::Never,
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
            (OriginPhase::Restored { .. } | OriginPhase::Expired { .. }, Comeback::None, _) => {
                Self::Unsigned
            }
            // There is nobody left to answer here, whatever the visitor has been through.
            (
                OriginPhase::Restored { .. } | OriginPhase::Expired { .. },
                Comeback::Believed | Comeback::Returned | Comeback::Doubtful | Comeback::Unsigned,
                _,
            ) => Self::Kept,
        }
    }
}

/// What became in a while of visitors whom we redirected with a mark to one rescue server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sent there.
    pub sent: u64,
    /// Those of them who brought it back.
    pub returned: u64,
}

impl Marks {
    /// How many visitors a rescue server has sent back without signing, about: of the `redirected`
    /// to it the part that the marks tell, but never more than have come without a signature
    /// (`unsigned`).
    ///
    /// Why so: who came without a signature names nobody. Those of them who are redirected again
    /// do, by the mark; but anybody can have himself marked and come back with it. So one who
    /// forges counts for one, and not for the crowd that the marks speak for.
    pub fn comebacks(self, redirected: u64, unsigned: u64) -> u64 {
        if self.sent == 0 {
            return 0;
        }
        let returned = self.returned.min(self.sent);
        let share = returned as f64 / self.sent as f64;
        ((redirected as f64 * share).round() as u64).min(unsigned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_speak_for_all_who_came_without_a_signature_and_for_nobody_else() {
        let marks = |sent, returned| Marks { sent, returned };
        // Each of a hundred came back, thirty of whom were redirected there again.
        assert_eq!(marks(30, 30).comebacks(130, 100), 100);
        // It serves those who were marked: somebody else sends them back.
        assert_eq!(marks(30, 0).comebacks(130, 100), 0);
        assert_eq!(marks(0, 5).comebacks(130, 100), 0);
        // One visitor who plays both parts, as often as he likes.
        assert_eq!(marks(1, 1).comebacks(1000, 1), 1);
        assert_eq!(marks(1, 500).comebacks(1000, 1), 1);
    }
}
