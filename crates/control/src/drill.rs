//! A drill: a rehearsal of a rescue with the real community, at a bounded rate.
//!
//! Whoever has never been rescued does not know whether it would work. A drill finds out: the same
//! calls, links, aliases and fetches as in a rescue, but what redirects is a plan of its own that
//! only visitors who show its key meet. The site's own visitors are served as if nothing were.
//! Every member that takes part knows that it is a drill: the SOS says so, and only a member whose
//! answer says so as well is used.
//!
//! Here stand the bounds and the words; the phase is in `rescue/drilling`. A drill gives way to
//! everything: a crowd, a site in need, a reload, an operator of either side. It never ends a
//! rescue, for it begins only where there is none.

use std::fmt;
use std::time::Duration;

use levee_vocab::{FetchKey, HostName, Peer, Timestamp};

use crate::plan::RedirectPlan;

/// Longest drill. Whoever learns nothing in ten minutes learns nothing in an hour.
pub const DRILL_LENGTH_MAX: Duration = Duration::from_mins(10);

/// Most visits a second. Enough for each of sixteen rescue servers to see a dozen; a flood it is
/// not.
pub const DRILL_RATE_MAX: u32 = 200;

/// The part of the own usable link that redirects and direct answers of a drill may fill.
pub const DRILL_LINK_SHARE: f64 = 0.1;

/// Control intervals after which a drill that nobody has answered ends.
pub(crate) const DRILL_ALONE_MAX: f64 = 6.0;

/// What the operator orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillOrder {
    /// How long it lasts at most, 1 s to [`DRILL_LENGTH_MAX`].
    pub length: Duration,
    /// By which its visitors are known; made for this drill alone.
    pub key: FetchKey,
}

/// Who or what stops a drill from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrillStop {
    /// An operator of this site, whether it is its own drill or another's.
    Operator,
    /// The program that makes the visits, which has seen enough.
    Client,
    /// The program that makes the visits is gone.
    ClientLost,
    /// The settings are read anew.
    Reload,
}

/// Why a drill is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrillEnd {
    /// Its time is over.
    Over,
    /// It was stopped here.
    Stopped(DrillStop),
    /// A crowd of real visitors has come.
    Crowd,
    /// Another site needs our help.
    Called(HostName),
    /// A rescue server ended its part: its operator said no, or it has a crowd of its own.
    Declined(HostName),
    /// Nobody helps.
    Alone,
    /// The operator stops this server, or it leaves its community.
    Drain,
}

/// Why a drill does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrillRefusal {
    /// The site stands alone.
    NoCommunity,
    /// The site asks for help or is helped.
    InNeed,
    /// The site helps another.
    Helping,
    /// One is under way already.
    UnderWay,
    /// The load is above T_alert / 2: no time to play.
    Loaded,
    /// Longer than [`DRILL_LENGTH_MAX`], or of no length.
    Length,
    /// The operator stops this server.
    Drained,
}

/// How the visitors of a drill are redirected.
#[derive(Clone, Debug, PartialEq)]
pub struct DrillPlan {
    /// What they show.
    pub key: FetchKey,
    /// As in a rescue, but all are redirected that can be, within [`DRILL_LINK_SHARE`].
    pub redirect: RedirectPlan,
}

/// A drill that this site takes part in, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct DrillView {
    /// Whose it is.
    pub site: HostName,
    /// When it ends at the latest.
    pub ends: Timestamp,
    /// Who takes part, where it is our own.
    pub members: Vec<Peer>,
}

impl fmt::Display for DrillEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over => f.write_str("its time is over"),
            Self::Stopped(stop) => f.write_str(stop.why()),
            Self::Crowd => f.write_str("a crowd of real visitors has come"),
            Self::Called(site) => write!(f, "{site} needs our help"),
            Self::Declined(site) => write!(
                f,
                "{site} ended its part: its operator said no, or it has visitors of its own"
            ),
            Self::Alone => f.write_str("nobody helps"),
            Self::Drain => f.write_str("this server stops or leaves its community"),
        }
    }
}

impl DrillEnd {
    /// What the operator of the site can do about it; none where the drill had all its time.
    pub const fn way_out(&self) -> Option<&'static str> {
        match self {
            Self::Over => None,
            Self::Stopped(stop) => Some(stop.way_out()),
            Self::Crowd => Some(
                "drill again in a quiet hour; if nobody came, link.rate is too small for your pages",
            ),
            Self::Called(_) => Some("drill again when it is helped"),
            Self::Declined(_) => Some("ask its operator, or drill again in a quiet hour"),
            Self::Alone => Some("see what each member said"),
            Self::Drain => Some("drill again when the server runs and is a member"),
        }
    }
}

impl DrillStop {
    /// The stop in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Operator => "an operator stopped it",
            Self::Client => "whoever began it has seen enough",
            Self::ClientLost => "whoever began it is gone",
            Self::Reload => "the settings were read anew",
        }
    }

    /// What the operator of the site can do about it.
    pub const fn way_out(self) -> &'static str {
        match self {
            Self::Operator => "drill again when nobody minds",
            Self::Client => "drill again, for longer",
            Self::ClientLost => "let the command run to its end",
            Self::Reload => "drill again",
        }
    }
}

impl fmt::Display for DrillRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl DrillRefusal {
    /// The refusal in words, with the way out.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoCommunity => "this site takes part in no community: set community.registry",
            Self::InNeed => "this site has a crowd now, and that is no drill",
            Self::Helping => "this site helps another now; try again when that is over",
            Self::UnderWay => "a drill is under way: end it with `levee drill stop`",
            Self::Loaded => "this site has too much to do now; try again in a quiet hour",
            Self::Length => "a drill lasts from one second to ten minutes",
            Self::Drained => "this server is stopping",
        }
    }
}
