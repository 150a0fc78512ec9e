//! Everything that can happen in a world.

use levee_control::{Candidate, CopyMeans, CopyOutcome};
use levee_vocab::{ByteRate, FetchKey, LinkId};

use crate::world::SiteId;
use crate::world::cache::{Brought, ObjectKey};
use crate::world::copies::Orderer;
use crate::world::links::{ConnectionId, Message, Side};
use crate::world::request::{Answer, CrowdId, RequestId};

/// Something that happens at its time.
#[derive(Debug)]
pub enum Event {
    /// At a site, whatever life it is in by then.
    Arrives {
        /// Where.
        site: SiteId,
        /// What.
        what: Arrival,
    },
    /// Inside a site; void if the site has died since.
    Inside {
        /// Where.
        site: SiteId,
        /// In which life it was planned.
        life: u32,
        /// What.
        what: Inner,
    },
    /// At the registry.
    Registry(RegistryEvent),
    /// The next visitor of a crowd comes.
    VisitorComes(CrowdId),
    /// An answer reaches a visitor.
    Answered {
        /// To which request.
        request: RequestId,
        /// What it says.
        answer: Answer,
    },
}

/// Something that comes to a site over the network.
#[derive(Debug)]
pub enum Arrival {
    /// A request of a visitor.
    Request(RequestId),
    /// A message on a rescue link.
    Message {
        /// The connection.
        connection: ConnectionId,
        /// Which end it comes to.
        to: Side,
        /// What it says.
        message: Message,
    },
    /// An ask by another rescue server of the same origin: we are the object's home.
    Ask {
        /// Who asks.
        fetcher: Fetcher,
        /// For what.
        object: ObjectKey,
    },
    /// An order of an origin to hold a copy.
    Order {
        /// Who ordered it.
        orderer: Orderer,
        /// Of what.
        object: ObjectKey,
        /// How it comes here.
        means: CopyMeans,
    },
    /// A fetch by a rescue server.
    Fetch {
        /// Who fetches.
        fetcher: Fetcher,
        /// What.
        object: ObjectKey,
        /// The key that it shows.
        key: Option<FetchKey>,
    },
}

/// Who fetches, and in which life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetcher {
    /// The rescue server.
    pub site: SiteId,
    /// Its life when it asked.
    pub life: u32,
    /// Its link with the origin.
    pub link: LinkId,
    /// Whom it asks.
    pub from: From,
    /// Number of the fetch there: a late answer must not end a later fetch.
    pub flight: u64,
}

/// Whom a rescue server asks for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Its origin.
    Origin,
    /// Its home, another rescue server.
    Home,
    /// The rescue server that was its home until lately, for a copy.
    Copy,
}

/// Something that a site planned for itself, or that answers what it asked.
#[derive(Debug)]
pub enum Inner {
    /// The control interval is over.
    IntervalEnded,
    /// Look at what is asked for.
    Looked,
    /// A copy was made, or could not be.
    CopyEnded {
        /// The rescue server.
        link: LinkId,
        /// Of what.
        url: String,
        /// How.
        outcome: CopyOutcome,
    },
    /// A deadline of the Brain may have come.
    DeadlineCame,
    /// A piece has left over the link.
    PieceLeft,
    /// Look whether requests that wait can go on.
    PollParked,
    /// A call for help has had its time.
    CallExpired(LinkId),
    /// The answer to a SHUTDOWN has had its time.
    CloseExpired(LinkId),
    /// The registry answered, or did not.
    SearchEnded(Option<Vec<Candidate>>),
    /// A fetch ended.
    FetchEnded {
        /// What was fetched.
        object: ObjectKey,
        /// For which fetch.
        fetcher: Fetcher,
        /// The object, if the fetch went well.
        brought: Option<Brought>,
    },
}

/// Something that comes to the registry.
#[derive(Debug)]
pub enum RegistryEvent {
    /// A registration.
    Registered {
        /// Whose.
        site: SiteId,
        /// What it offers.
        free: ByteRate,
    },
    /// A search.
    Searched {
        /// Who searches.
        site: SiteId,
        /// In which life.
        life: u32,
        /// How many are wanted.
        count: usize,
    },
}
