//! What a Brain wants done.
//!
//! Outputs are in the imperative. Each decision comes with its reason, which the status page, the
//! dashboard and the log show as it is.

use std::fmt;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName, LinkId, Peer, Resource, ServerState, WebAddress};

use crate::drill::{DrillEnd, DrillRefusal};
use crate::input::{Candidate, RescueCall};

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
    /// Hand the new route plan, `Brain::plan`, to every core.
    SwapPlan,
    /// Write the aliases given out, `Brain::aliases`, to the state folder before they are used.
    RememberAliases,
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
    /// Either: the drill is over.
    DrillOver,
    /// Rescue server: its operator wants no drill now.
    DrillStopped,
    /// Rescue server: a site in need calls, and a drill gives way.
    RealCall,
}

/// A decision, for people.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The server's state changed.
    StateChanged {
        /// From.
        from: ServerState,
        /// To.
        to: ServerState,
    },
    /// A load level rose above a threshold.
    LoadRose {
        /// Which resource.
        resource: Resource,
        /// Its level, 1 is capacity.
        level: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Redirecting began or changed by much, or ended (`threshold` is T_redi).
    RedirectThreshold {
        /// T_redi, share of D_out.
        threshold: f64,
        /// R_redi of the last interval, requests a second.
        redirects: f64,
    },
    /// Help is asked of this candidate.
    Asked {
        /// The candidate.
        site: HostName,
        /// What it offered in the registry.
        free: ByteRate,
    },
    /// A rescue began; `rate` is D_redi.
    RescueBegan {
        /// The other side.
        peer: HostName,
        /// D_redi.
        rate: ByteRate,
    },
    /// A rescue ended.
    RescueEnded {
        /// The other side.
        peer: HostName,
        /// Why, in the imperative of who ended it, e.g. `crowd has left`.
        why: &'static str,
    },
    /// D_redi of a rescue changed.
    RateChanged {
        /// The other side.
        peer: HostName,
        /// Before.
        from: ByteRate,
        /// Now.
        to: ByteRate,
    },
    /// A candidate did not help.
    NotHelped {
        /// The candidate.
        site: HostName,
        /// Why.
        why: &'static str,
    },
    /// We did not accept an SOS.
    SosRejected {
        /// Who asked.
        origin: HostName,
        /// Why.
        why: &'static str,
    },
    /// We rehearse a rescue.
    DrillBegan {
        /// For how long at most.
        length: Duration,
    },
    /// We do not rehearse.
    DrillRefused {
        /// Why.
        why: DrillRefusal,
    },
    /// We take part in the drill of another.
    DrillJoined {
        /// Whose it is.
        site: HostName,
        /// For how long at most.
        length: Duration,
    },
    /// Our drill is over.
    DrillEnded {
        /// Why.
        why: DrillEnd,
    },
    /// Nobody is left to ask.
    NoCandidate,
    /// Requests were refused in the last interval.
    Refusing {
        /// How many.
        requests: u64,
        /// Over this time.
        elapsed: Duration,
    },
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
            Self::DrillOver => "the drill is over",
            Self::DrillStopped => "the operator stopped the drill",
            Self::RealCall => "a site in need calls, and a drill gives way",
        }
    }
}

/// A plain sentence, as the status page and the log show it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StateChanged { from, to } => write!(f, "state changed from {from} to {to}"),
            Self::LoadRose {
                resource,
                level,
                threshold,
            } => write!(
                f,
                "{resource} is at {} %, above {} %",
                percent(*level),
                percent(*threshold)
            ),
            Self::RedirectThreshold {
                threshold,
                redirects,
            } => write!(
                f,
                "redirecting above {} % of the usable link, {redirects:.1} redirects a second",
                percent(*threshold)
            ),
            Self::Asked { site, free } => {
                write!(f, "asking {site} for help: it offers {free}")
            }
            Self::RescueBegan { peer, rate } => {
                write!(f, "rescue with {peer} began: redirects up to {rate}")
            }
            Self::RescueEnded { peer, why } => write!(f, "rescue with {peer} ended: {why}"),
            Self::RateChanged { peer, from, to } => {
                write!(f, "redirect rate with {peer} changed from {from} to {to}")
            }
            Self::NotHelped { site, why } => write!(f, "{site} does not help: {why}"),
            Self::SosRejected { origin, why } => {
                write!(f, "rejected the call of {origin}: {why}")
            }
            Self::DrillBegan { length } => write!(
                f,
                "a drill began: a rehearsal of a rescue, of {} s at most",
                length.as_secs()
            ),
            Self::DrillRefused { why } => write!(f, "no drill: {why}"),
            Self::DrillJoined { site, length } => write!(
                f,
                "taking part in a drill of {site}, of {} s at most; no crowd is behind it",
                length.as_secs()
            ),
            Self::DrillEnded { why } => write!(f, "the drill is over: {why}"),
            Self::NoCandidate => f.write_str("nobody is left to ask for help"),
            Self::Refusing { requests, elapsed } => write!(
                f,
                "refused {requests} requests in {:.1} s for lack of capacity",
                elapsed.as_secs_f64()
            ),
        }
    }
}

/// A share as a whole number of percent.
fn percent(share: f64) -> i64 {
    (share * 100.0).round() as i64
}
