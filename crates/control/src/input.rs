//! What can happen to a Brain.
//!
//! Inputs are in the past tense. A late, repeated or unknown one is legal and changes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use levee_vocab::{AliasHttps, ByteRate, FetchKey, HostName, LinkId, Misses, Peers, WebAddress};

use crate::copies::CopyOutcome;
use crate::hotspot::HotSpotOutput;

use crate::drill::{DrillOrder, DrillStop};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A control interval is over; this is what was measured in it (R2).
    IntervalEnded(LoadSample),
    /// A deadline named by `Brain::next_deadline` has come.
    TimerFired,
    /// The registry answered a search; best first.
    CandidatesFound(Vec<Candidate>),
    /// The registry could not be asked. The last candidates stay.
    SearchFailed,
    /// Our SOS was accepted.
    RescueAccepted {
        /// The link that we asked for.
        link: LinkId,
        /// Alias and port under which the rescue server serves us.
        alias: WebAddress,
        /// Where it answers web requests.
        address: IpAddr,
        /// D_redi, which we may redirect to it.
        rate: ByteRate,
        /// The key that it will show when it fetches; part of our SOS, made by the shell.
        key: FetchKey,
        /// Whether it promised a RATE in each interval (`beat=1`); without that promise its silence
        /// proves nothing.
        beats: bool,
        /// Whether it knows that it is a drill (`drill=1`).
        drill: bool,
        /// The port at which the alias answers by HTTPS.
        tls: Option<u16>,
    },
    /// Our SOS was refused, or the link could not be opened, or no answer came in time.
    RescueRefused {
        /// The link that we asked for.
        link: LinkId,
        /// Why.
        rejection: Rejection,
    },
    /// Another server asks us for help.
    SosReceived {
        /// The link on which it asked.
        link: LinkId,
        /// What it said.
        call: RescueCall,
    },
    /// The rescue server tells its D_redi, new or, as a beat, the same.
    RateReceived {
        /// The link.
        link: LinkId,
        /// D_redi.
        rate: ByteRate,
        /// d_resc: what it sent to our visitors, those included whom we did not redirect; none
        /// where it does not say.
        carried: Option<ByteRate>,
    },
    /// An origin that we rescue tells who else does.
    PeersReceived {
        /// The link.
        link: LinkId,
        /// All of them. The shell has left out whom we must not ask.
        peers: Peers,
    },
    /// An origin that we rescue permits us to show what we have after its death. The shell has
    /// checked that it is the origin's word.
    PermitReceived {
        /// The link.
        link: LinkId,
        /// For so long from now on; zero takes it back.
        length: Duration,
    },
    /// An origin that had died answers again.
    OriginReturned {
        /// The link that it had.
        link: LinkId,
    },
    /// These members are expelled: all of them, each time.
    MembersExpelled(Vec<HostName>),
    /// Visitors wait too long for what the rescue server on this link delivers: its own link is
    /// full, whatever it says.
    DeliveryLate {
        /// The link.
        link: LinkId,
    },
    /// The other side answered a RATE or SHUTDOWN of ours: it is alive.
    AnswerReceived {
        /// The link.
        link: LinkId,
    },
    /// The other side ended the rescue.
    ShutdownReceived {
        /// The link.
        link: LinkId,
    },
    /// The link is gone, or was cut because of what the other side did.
    LinkLost {
        /// The link.
        link: LinkId,
        /// Why.
        loss: LinkLoss,
    },
    /// Resources changed their heat (H1, H2): what returned to normal first, then the hottest.
    ResourcesStepped(Vec<HotSpotOutput>),
    /// A page that was copied embeds these: they are copied with it.
    EmbeddedFound {
        /// Host and path of the page.
        page: String,
        /// Host and path of each.
        resources: Vec<String>,
    },
    /// A [`crate::CopyOrder`] was carried out, or could not be.
    CopyEnded {
        /// The rescue server.
        link: LinkId,
        /// Host and path.
        url: String,
        /// How.
        outcome: CopyOutcome,
    },
    /// A visitor came back from a rescue server that does not hold what he wanted (H5).
    CopyMissing {
        /// The rescue server.
        link: LinkId,
        /// Host and path.
        url: String,
    },
    /// What must outlive a crash can be written down, or cannot any more.
    RecordsChanged(Records),
    /// The operator reloaded the settings.
    ParametersChanged(Box<crate::Parameters>),
    /// The operator wants to rehearse a rescue.
    DrillOrdered(DrillOrder),
    /// A drill must end, our own or one that we take part in.
    DrillStopped(DrillStop),
    /// The operator stops this server: end every rescue, accept none.
    DrainStarted,
}

/// Whether what must outlive a crash, such as the aliases given out, can be written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Records {
    /// It can.
    #[default]
    Kept,
    /// It cannot: no rescue may begin.
    Lost,
}

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "what must outlive a crash can be written down",
            Self::Lost => "what must outlive a crash cannot be written down",
        })
    }
}

/// A server that might rescue us, as the registry describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name and web port.
    pub site: WebAddress,
    /// Its rescue address, which round robin does not rotate.
    pub rescue: SocketAddr,
    /// d_free, what it offers.
    pub free: ByteRate,
    /// Whether its aliases answer by HTTPS, as it says.
    pub https: AliasHttps,
}

/// What an SOS says about the server that sends it. The shell has checked the address already.
#[derive(Clone, Debug, PartialEq)]
pub struct RescueCall {
    /// The origin's own name and web port.
    pub origin: WebAddress,
    /// Where to fetch from, bypassing round robin.
    pub address: IpAddr,
    /// Idle time after which we shall end the rescue.
    pub idle_max: Duration,
    /// Key to show with each fetch.
    pub key: Option<FetchKey>,
    /// Lifetime for objects that state none.
    pub ttl: Option<Duration>,
    /// Whether the origin asked for a RATE in each interval.
    pub beats: bool,
    /// It is a drill, and over after so long.
    pub drill: Option<Duration>,
    /// Its own name leads to us, too, and others remember that for so long.
    pub name_ttl: Option<Duration>,
    /// What we shall do with a request for something that we do not hold.
    pub misses: Misses,
    /// The port at which the origin answers by HTTPS; of our own call filled in by the shell.
    pub tls: Option<u16>,
}

impl RescueCall {
    /// What the paper's own SOS says, and nothing beyond it.
    pub const fn new(origin: WebAddress, address: IpAddr, idle_max: Duration) -> Self {
        Self {
            origin,
            address,
            idle_max,
            key: None,
            ttl: None,
            beats: false,
            drill: None,
            name_ttl: None,
            misses: Misses::Fetch,
            tls: None,
        }
    }
}

/// Why an SOS led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// `403 Reject`.
    Refused,
    /// No connection, or no answer in time.
    Unreachable,
    /// Something that is not the rescue protocol.
    Garbage,
    /// It helps, but does not know that it is a drill.
    NoDrills,
}

/// Why a rescue link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLoss {
    /// Closed or reset by the other side.
    Closed,
    /// Nothing was heard in time.
    Silent,
    /// Something that is not the rescue protocol.
    Garbage,
    /// Cut by us: it is no member any more, or has lied. Whatever it permitted is over.
    Distrusted,
    /// Cut by the other side, for which we are no member any more: it has not died.
    NotAMember,
}

/// Bytes and requests of one kind in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Accounted bytes: what counts towards d_out.
    pub bytes: u64,
    /// Requests answered.
    pub requests: u64,
    /// For redirects only: size of the files that were redirected, which counts towards d_redi.
    pub file_bytes: u64,
}

/// What crawlers caused in one interval. Where one is recognised, what it had before is told as
/// well: it may be more than what left in this interval, and is then of the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrawlerTraffic {
    /// Accounted bytes for the site's own names.
    pub own_bytes: u64,
    /// Accounted bytes for origins that are rescued.
    pub rescue_bytes: u64,
    /// Part of all requests that were crawlers', whatever became of them, 0 to 1.
    pub part: f64,
    /// Open connections whose last request was a crawler's, against the limit of all, 0 to 1.
    pub connections: f64,
}

/// What was measured in one control interval (R2). d_out is `own + rescue + redirects`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSample {
    /// True length of the interval.
    pub elapsed: Duration,
    /// Responses for the site's own names, redirects apart; also refusals.
    pub own: Traffic,
    /// Responses for each origin that is rescued, by its link.
    pub rescue: BTreeMap<LinkId, Traffic>,
    /// Redirects to each rescue server, by its link; bytes are A_redi each.
    pub redirects: BTreeMap<LinkId, Traffic>,
    /// Visitors whom each rescue server sent back, by its link and by its signed word.
    pub came_back: BTreeMap<LinkId, u64>,
    /// What of it crawlers caused.
    pub crawlers: CrawlerTraffic,
    /// Bytes of `own` for readers who came by HTTPS.
    pub https_bytes: u64,
    /// Bytes of `own` that our own drill caused: what its visits got from us, and what its rescue
    /// servers fetched.
    pub drill_bytes: u64,
    /// Bytes of `own` that told visitors of origins that there is no more for them: the limits of
    /// help, or a dead origin's part.
    pub withheld_bytes: u64,
    /// Requests that were refused for lack of capacity; their bytes are in `own`.
    pub refused: u64,
    /// Requests that are waiting now for capacity.
    pub waiting: u64,
    /// Processor load, 0 to 1.
    pub cpu: f64,
    /// Open connections against their limit, 0 to 1.
    pub connections: f64,
}

impl LoadSample {
    /// d_out of the interval, in accounted bytes.
    pub fn bytes_out(&self) -> u64 {
        let sum = |map: &BTreeMap<LinkId, Traffic>| map.values().map(|t| t.bytes).sum::<u64>();
        self.own.bytes + sum(&self.rescue) + sum(&self.redirects)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl Rejection {
    /// The rejection in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Refused => "it refused",
            Self::Unreachable => "it cannot be reached or did not answer in time",
            Self::Garbage => "it does not speak the rescue protocol",
            Self::NoDrills => "it does not know drills: its Levee is older",
        }
    }
}

impl fmt::Display for LinkLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl LinkLoss {
    /// The loss in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Closed => "the link was closed",
            Self::Silent => "the other side fell silent",
            Self::Garbage => "the other side broke the rescue protocol",
            Self::Distrusted => "the other side is not trusted any more",
            Self::NotAMember => "for the other side this server is no member any more",
        }
    }
}
