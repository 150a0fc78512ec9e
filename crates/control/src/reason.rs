//! Decisions for people: a plain sentence each, which the status page, the dashboard and the log
//! show as it is.

use std::fmt;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName, LinkId, Resource, ServerState};

use crate::drill::{DrillEnd, DrillRefusal};

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
    /// The last visitors of a rescue that is over are served no longer: its origin is not to be
    /// helped any more.
    GraceEnded {
        /// The origin.
        peer: HostName,
    },
    /// An origin that we rescue died, and we go on without it.
    OriginDied {
        /// The origin.
        peer: HostName,
        /// For so long at the longest.
        left: Duration,
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
    /// Visitors come back from a rescue server, or do so no more.
    CameBack {
        /// The rescue server.
        peer: HostName,
        /// Part of those who were redirected there, 0 to 1.
        share: f64,
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
    NoCandidate(Wanted),
    /// Help is asked for before the load asks for it.
    CallingEarly {
        /// The hottest resource.
        url: String,
        /// The time between two requests for it.
        gap: Duration,
    },
    /// A resource is being copied.
    Copying {
        /// Host and path.
        url: String,
        /// To so many rescue servers.
        servers: usize,
        /// The time between two requests for it.
        gap: Duration,
    },
    /// Visitors of a resource are redirected to those that hold it.
    RedirectingResource {
        /// Host and path.
        url: String,
        /// So many rescue servers hold it.
        servers: usize,
        /// The time between two requests for it.
        gap: Duration,
    },
    /// A resource is served here again.
    ServedHere {
        /// Host and path.
        url: String,
    },
    /// A rescue server did not take a copy.
    CopyRefused {
        /// The link to the rescue server.
        link: LinkId,
        /// Host and path.
        url: String,
    },
    /// Requests were refused in the last interval.
    Refusing {
        /// How many.
        requests: u64,
        /// Over this time.
        elapsed: Duration,
    },
}

/// Who is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whoever has room.
    Anybody,
    /// Who answers by HTTPS: others help with the visitors by HTTP.
    ByHttps,
}

/// That nobody of them is left.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anybody => "nobody is left to ask for help",
            Self::ByHttps => {
                "visitors by HTTPS need help of their own, and nobody who may answer by it is \
                 left to ask"
            }
        })
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
            Self::GraceEnded { peer } => write!(f, "late visitors of {peer} are served no longer"),
            Self::OriginDied { peer, left } => {
                let left = left.as_secs();
                write!(f, "{peer} has died, and permits us to go on for {left} s")
            }
            Self::RateChanged { peer, from, to } => {
                write!(f, "redirect rate with {peer} changed from {from} to {to}")
            }
            Self::CameBack { peer, share } => write!(
                f,
                "{} % of the visitors redirected to {peer} come back",
                percent(*share)
            ),
            Self::NotHelped { site, why } => write!(f, "{site} does not help: {why}"),
            Self::SosRejected { origin, why } => {
                write!(f, "rejected the call of {origin}: {why}")
            }
            Self::DrillBegan { .. }
            | Self::DrillRefused { .. }
            | Self::DrillJoined { .. }
            | Self::DrillEnded { .. } => self.write_drills(f),
            Self::NoCandidate(wanted) => wanted.fmt(f),
            Self::CallingEarly { .. }
            | Self::Copying { .. }
            | Self::RedirectingResource { .. }
            | Self::ServedHere { .. }
            | Self::CopyRefused { .. } => self.write_copies(f),
            Self::Refusing { requests, elapsed } => write!(
                f,
                "refused {requests} requests in {:.1} s for lack of capacity",
                elapsed.as_secs_f64()
            ),
        }
    }
}

impl Reason {
    /// The decisions about what is hot.
    fn write_copies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallingEarly { url, gap } => write!(
                f,
                "asking for help early: {url} is asked for every {}",
                seconds(*gap)
            ),
            Self::Copying { url, servers, gap } => write!(
                f,
                "copying {url} to {}: asked for every {}",
                rescue_servers(*servers),
                seconds(*gap)
            ),
            Self::RedirectingResource { url, servers, gap } => write!(
                f,
                "redirecting visitors of {url} to {} that {} it: asked for every {}",
                rescue_servers(*servers),
                if *servers == 1 { "holds" } else { "hold" },
                seconds(*gap)
            ),
            Self::ServedHere { url } => {
                write!(f, "serving {url} here again: it is asked for rarely")
            }
            Self::CopyRefused { link, url } => {
                write!(
                    f,
                    "the rescue server on {link} does not keep a copy of {url}"
                )
            }
            Self::StateChanged { .. }
            | Self::LoadRose { .. }
            | Self::RedirectThreshold { .. }
            | Self::Asked { .. }
            | Self::RescueBegan { .. }
            | Self::RescueEnded { .. }
            | Self::GraceEnded { .. }
            | Self::OriginDied { .. }
            | Self::RateChanged { .. }
            | Self::CameBack { .. }
            | Self::NotHelped { .. }
            | Self::SosRejected { .. }
            | Self::DrillBegan { .. }
            | Self::DrillRefused { .. }
            | Self::DrillJoined { .. }
            | Self::DrillEnded { .. }
            | Self::NoCandidate(_)
            | Self::Refusing { .. } => Ok(()),
        }
    }

    /// The decisions about rehearsals.
    fn write_drills(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
            Self::StateChanged { .. }
            | Self::LoadRose { .. }
            | Self::RedirectThreshold { .. }
            | Self::Asked { .. }
            | Self::RescueBegan { .. }
            | Self::RescueEnded { .. }
            | Self::GraceEnded { .. }
            | Self::OriginDied { .. }
            | Self::RateChanged { .. }
            | Self::CameBack { .. }
            | Self::NotHelped { .. }
            | Self::SosRejected { .. }
            | Self::CallingEarly { .. }
            | Self::Copying { .. }
            | Self::RedirectingResource { .. }
            | Self::ServedHere { .. }
            | Self::CopyRefused { .. }
            | Self::NoCandidate(_)
            | Self::Refusing { .. } => Ok(()),
        }
    }
}

/// A gap between requests, to a tenth of a second where that says anything.
fn seconds(gap: Duration) -> String {
    match gap.as_secs_f64() {
        gap if gap < 0.1 => format!("{gap:.3} s"),
        gap => format!("{gap:.1} s"),
    }
}

fn rescue_servers(count: usize) -> String {
    match count {
        1 => "one rescue server".to_owned(),
        2 => "two rescue servers".to_owned(),
        count => format!("{count} rescue servers"),
    }
}

/// A share as a whole number of percent.
fn percent(share: f64) -> i64 {
    (share * 100.0).round() as i64
}
