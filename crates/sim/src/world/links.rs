//! Rescue links: the connections over which an origin server and a rescue server talk.
//!
//! What the shell does on a real link is done here on a virtual one: it opens, answers RATE and
//! SHUTDOWN, gives up a call after two control intervals, and tells the Brain when a link is gone.

use std::net::IpAddr;

use levee_control::RescueCall;
use levee_vocab::{ByteRate, FetchKey, LinkId, Peer, Timestamp, WebAddress};

use crate::world::SiteId;

/// Number of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub usize);

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The site that asks for help.
    Opener,
    /// The site that was asked.
    Acceptor,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

/// What travels on a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// `SOS`.
    Sos(RescueCall),
    /// `200 OK` to an SOS.
    Accepted {
        /// The alias.
        alias: WebAddress,
        /// Where it is served.
        address: IpAddr,
        /// D_init.
        rate: ByteRate,
        /// The port at which the alias answers by HTTPS.
        tls: Option<u16>,
    },
    /// `403 Reject`.
    Rejected,
    /// `RATE`.
    Rate(ByteRate, Option<ByteRate>),
    /// `PEERS`.
    Peers(Vec<Peer>),
    /// `200 OK` to a RATE, PEERS or SHUTDOWN.
    Answer,
    /// `SHUTDOWN`.
    Shutdown,
    /// The other end is closed: FIN or RST.
    Closed,
}

/// Life of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndPhase {
    /// The SOS has not arrived here yet.
    Unborn,
    /// The SOS is not answered yet.
    Calling,
    /// The rescue stands.
    Live,
    /// SHUTDOWN is sent, its answer awaited.
    Closing,
    /// Nothing more is expected or sent.
    Closed,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct End {
    /// Whose end it is.
    pub site: SiteId,
    /// In which life of that site.
    pub life: u32,
    /// Its name for the Brain there.
    pub link: LinkId,
    /// Where it stands.
    pub phase: EndPhase,
    /// When the last message on its way to this end arrives: none overtakes another.
    pub last_arrival: Timestamp,
}

/// A connection between two sites.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The site that asks for help.
    pub opener: End,
    /// The site that was asked.
    pub acceptor: End,
    /// The key that our SOS names.
    pub key: FetchKey,
    /// Whether the SOS asked for beats; who helps here always agrees.
    pub beats: bool,
    /// Whether the SOS was a drill; who helps here knows drills.
    pub drill: bool,
}

impl Connection {
    /// The end at `side`.
    pub const fn end(&self, side: Side) -> &End {
        match side {
            Side::Opener => &self.opener,
            Side::Acceptor => &self.acceptor,
        }
    }

    /// The end at `side`, to change it.
    pub const fn end_mut(&mut self, side: Side) -> &mut End {
        match side {
            Side::Opener => &mut self.opener,
            Side::Acceptor => &mut self.acceptor,
        }
    }
}

impl End {
    /// An end that waits for its SOS, or for the answer to it.
    pub const fn new(site: SiteId, life: u32, link: LinkId, phase: EndPhase) -> Self {
        Self {
            site,
            life,
            link,
            phase,
            last_arrival: Timestamp::ZERO,
        }
    }
}
