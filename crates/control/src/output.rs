//! What a Brain wants done.
//!
//! Outputs are in the imperative. Each decision comes with its reason, which the status page, the
//! dashboard and the log show as it is.

use std::fmt;

use levee_vocab::{ByteRate, LinkId, Peer, WebAddress};

use crate::copies::CopyOrder;
use crate::input::{Candidate, RescueCall};
use crate::reason::Reason;

/// Something that must be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open a link to this candidate and send it our SOS with a fresh fetch key. The shell answers
    /// with `RescueAccepted` or `RescueRefused`, at the latest after two control intervals.
    CallForHelp {
        /// Number of the new link.
        link: LinkId,
        /// Whom to ask.
        candidate: Candidate,
        /// What to say; `key` is filled in by the shell.
        call: RescueCall,
    },
    /// Answer an SOS with `200 OK`: we rescue.
    AcceptSos {
        /// The link.
        link: LinkId,
        /// The alias that we gave out, and our web port.
        alias: WebAddress,
        /// D_init.
        rate: ByteRate,
    },
    /// Answer an SOS with `403 Reject` and close the link.
    RejectSos {
        /// The link.
        link: LinkId,
        /// For the log.
        reason: Reason,
    },
    /// Send RATE.
    TellRate {
        /// The link.
        link: LinkId,
        /// D_redi.
        rate: ByteRate,
        /// d_resc of this origin.
        carried: Option<ByteRate>,
    },
    /// Tell a rescue server who helps us, itself included; nobody where it is alone. The shell adds
    /// the key that they show each other.
    TellPeers {
        /// The link.
        link: LinkId,
        /// The heaviest first.
        members: Vec<Peer>,
    },
    /// Send SHUTDOWN, wait briefly for its answer, close the link.
    ShutDown {
        /// The link.
        link: LinkId,
        /// Why.
        cause: ShutdownCause,
    },
    /// Close the link without a word: the other side is dead or hostile.
    DropLink {
        /// The link.
        link: LinkId,
    },
    /// Ask the registry for candidates.
    SearchRegistry {
        /// How many.
        count: usize,
    },
    /// Tell the registry what we offer now.
    Register {
        /// d_free.
        free: ByteRate,
    },
    /// Have a rescue server hold a resource (H3). The shell answers with `CopyEnded`.
    Copy(CopyOrder),
    /// Hand the new route plan, `Brain::plan`, to every core.
    SwapPlan,
    /// Write the aliases given out, `Brain::aliases`, to the state folder before they are used.
    RememberAliases,
    /// Write what was given in the last day, `Brain::given`, to the state folder.
    RememberGiven,
    /// Nothing to do: a decision for people to read.
    Explain(Reason),
}

/// Why a rescue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownCause {
    /// Origin: all rescue servers are consistently low; this one is the smallest (R9).
    PartialRelease,
    /// Origin: d_out is consistently low (R9).
    CompleteRelease,
    /// Rescue server: no rescue traffic for the origin's idle time (R9).
    Idle,
    /// Rescue server: it is overloaded itself (R9).
    Overload,
    /// Either: the operator stops this server, or turned helping off.
    Drain,
    /// Rescue server: the origin is expelled.
    Expelled,
    /// Either: the drill is over.
    DrillOver,
    /// Rescue server: its operator wants no drill now.
    DrillStopped,
    /// Rescue server: a site in need calls, and a drill gives way.
    RealCall,
    /// Rescue server: what it gives in a day is given.
    DayGiven,
    /// Rescue server: what it gives to one site in a day is given.
    MemberDayGiven,
    /// Origin: visitors wait too long for what this one delivers.
    TooSlow,
    /// Origin: visitors come by HTTPS, which the alias does not answer by.
    NoHttps,
}

impl fmt::Display for ShutdownCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl ShutdownCause {
    /// The cause in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::PartialRelease => "less help is needed",
            Self::CompleteRelease => "the crowd has left",
            Self::Idle => "no visitors came for too long",
            Self::Overload => "the rescue server is overloaded itself",
            Self::Drain => "the operator stopped helping",
            Self::Expelled => "it is expelled",
            Self::DrillOver => "the drill is over",
            Self::DrillStopped => "the operator stopped the drill",
            Self::RealCall => "a site in need calls, and a drill gives way",
            Self::DayGiven => "what the rescue server gives in a day is given",
            Self::MemberDayGiven => "what the rescue server gives to one site in a day is given",
            Self::TooSlow => "visitors wait too long for what comes from there",
            Self::NoHttps => "visitors come by HTTPS, and its alias does not answer by it",
        }
    }
}
