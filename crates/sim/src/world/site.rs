//! One site of a world: its settings, what survives a crash, and the process while it runs.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use levee_control::{
    AliasRecord, ArrivalTable, Asks, Brain, Copies, Gate, GateLimits, HotSpots, LoadSample,
    Parameters,
};
use levee_vocab::{ByteRate, HostName, LinkId, Timestamp, WebAddress};

use crate::world::SiteId;
use crate::world::cache::{Brought, ObjectKey, RescueCache};
use crate::world::event::{Event, Fetcher};
use crate::world::links::{ConnectionId, Side};
use crate::world::meter::{Account, Meter};
use crate::world::pacer::Pacer;
use crate::world::request::{Answer, RequestId};

/// A site, as a story or a storm asks for it.
#[derive(Clone, Debug)]
pub struct SiteSettings {
    /// First label of its name; the name is `www.<label>.example`.
    pub label: String,
    /// Bytes of each of its responses, head too.
    pub files: Vec<u64>,
    /// Bytes of a redirect that it sends: n.
    pub redirect_bytes: u64,
    /// When requests wait and when they are refused.
    pub limits: GateLimits,
    /// Settings of its Brain.
    pub parameters: Parameters,
}

/// A site and all that survives its crash.
#[derive(Debug)]
pub struct Site {
    /// What was asked for.
    pub settings: SiteSettings,
    /// The process.
    pub process: Process,
    /// Counts the processes that this site had.
    pub life: u32,
    /// The state folder.
    pub records: Vec<AliasRecord>,
    /// Whether it speaks on its rescue links.
    pub voice: Voice,
    /// How far its clock is ahead of the world's.
    pub clock_ahead: Duration,
    /// Counters since the beginning of the world, through all its lives.
    pub totals: Totals,
    /// Links that others opened to it, in all its lives.
    pub links_accepted: u64,
}

/// The process of a site.
#[derive(Debug)]
pub enum Process {
    /// There is none: it was killed. The host is there and refuses connections.
    Killed,
    /// There is none, and no host that could say so.
    PoweredOff,
    /// It runs.
    Up(Box<Running>),
    /// It is frozen: what comes to it waits.
    Frozen(Box<Running>, Vec<Event>),
}

/// Whether a site speaks on its rescue links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// As it should.
    Speaks,
    /// It accepts an SOS and says nothing more.
    Mute,
}

/// A process that runs.
#[derive(Debug)]
pub struct Running {
    /// The same Brain as in the server.
    pub brain: Brain,
    /// The same Gate as in the server.
    pub gate: Gate,
    /// The outbound link.
    pub pacer: Pacer<Job>,
    /// What was measured in this interval.
    pub meter: Meter,
    /// What was measured in the last one.
    pub last_sample: LoadSample,
    /// Requests that wait for capacity, first come first served.
    pub parked: VecDeque<RequestId>,
    /// What was asked for since the last look.
    pub arrivals: ArrivalTable,
    /// Which of it is hot.
    pub spots: HotSpots,
    /// Who holds copies of it, by the numbers of files.
    pub hot: BTreeMap<usize, Copies>,
    /// Objects of others.
    pub cache: RescueCache,
    /// How it stands with their homes.
    pub asks: Asks,
    /// Homes that are being asked, by the number of the fetch.
    pub asked: BTreeMap<u64, SocketAddr>,
    /// Rescue links by the Brain's names.
    pub links: BTreeMap<LinkId, (ConnectionId, Side)>,
    /// The deadline for which an event is planned.
    pub armed: Option<Timestamp>,
    /// Whether a poll of the parked requests is planned.
    pub poll: Poll,
}

/// Whether a poll of the parked requests is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// None.
    Idle,
    /// One.
    Planned,
}

/// A response on the outbound link.
#[derive(Debug)]
pub enum Job {
    /// To a visitor.
    Response {
        /// Which request it answers.
        request: RequestId,
        /// Whose bytes these are, if they are metered as they leave.
        account: Option<Account>,
        /// What it says.
        answer: Answer,
    },
    /// To a rescue server that fetches.
    Fetched {
        /// Who fetched.
        fetcher: Fetcher,
        /// What.
        object: ObjectKey,
        /// As it leaves.
        brought: Brought,
        /// Whose bytes these are.
        account: Account,
    },
}

/// Counters of a site since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// d_out in bytes: all below together.
    pub out_bytes: u64,
    /// Bytes for its own names, redirects apart.
    pub own_bytes: u64,
    /// Responses for its own names, redirects apart.
    pub own_requests: u64,
    /// Of these, fetches by rescue servers.
    pub fetches: u64,
    /// Bytes for others.
    pub rescue_bytes: u64,
    /// Responses for others.
    pub rescue_requests: u64,
    /// Accounted bytes of redirects.
    pub redirect_bytes: u64,
    /// Redirects.
    pub redirects: u64,
    /// Refusals.
    pub refused: u64,
}

impl Totals {
    /// Adds an interval.
    pub fn add(&mut self, sample: &LoadSample) {
        self.out_bytes += sample.bytes_out();
        self.own_bytes += sample.own.bytes;
        self.own_requests += sample.own.requests;
        self.refused += sample.refused;
        for traffic in sample.rescue.values() {
            self.rescue_bytes += traffic.bytes;
            self.rescue_requests += traffic.requests;
        }
        for traffic in sample.redirects.values() {
            self.redirect_bytes += traffic.bytes;
            self.redirects += traffic.requests;
        }
    }
}

impl Site {
    /// The site's own name.
    pub const fn name(&self) -> &HostName {
        &self.settings.parameters.site.host
    }

    /// The process, if it runs.
    pub const fn running(&self) -> Option<&Running> {
        match &self.process {
            Process::Up(running) => Some(running),
            Process::Killed | Process::PoweredOff | Process::Frozen(..) => None,
        }
    }

    /// The process, if it runs, to change it.
    pub const fn running_mut(&mut self) -> Option<&mut Running> {
        match &mut self.process {
            Process::Up(running) => Some(running),
            Process::Killed | Process::PoweredOff | Process::Frozen(..) => None,
        }
    }

    /// The process, running or frozen.
    pub const fn process_view(&self) -> Option<&Running> {
        match &self.process {
            Process::Up(running) | Process::Frozen(running, _) => Some(running),
            Process::Killed | Process::PoweredOff => None,
        }
    }
}

/// The address of a site, from the range for tests of networks (RFC 2544), so that no real one is
/// ever meant.
pub fn address_of(site: SiteId) -> IpAddr {
    let low = (site.0 % 250) as u8 + 1;
    let high = (site.0 / 250) as u8;
    IpAddr::V4(Ipv4Addr::new(198, 18, high, low))
}

/// Default parameters of site number `id` with this label and link, member of the community.
///
/// # Panics
/// If the label is not one of a host name.
pub fn default_parameters(id: SiteId, label: &str, link: ByteRate) -> Parameters {
    let host = |text: String| -> HostName { text.parse().expect("labels of sites are checked") };
    let site = WebAddress {
        host: host(format!("www.{label}.example")),
        port: 80,
    };
    let aliases = host(format!("{label}.aliases.example"));
    let mut parameters = Parameters::new(site, address_of(id), aliases, link);
    parameters.rescue_port = RESCUE_PORT;
    parameters
}

/// Any port will do: nothing listens.
pub const RESCUE_PORT: u16 = 7401;
