//! What a Brain shows of itself: to the status page, to the state folder, and to stories.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{ByteRate, HostName, LinkId, Resource, ServerState, Timestamp, WebAddress};

use crate::copies::Heat;
use crate::drill::DrillView;
use crate::help::RefusedCall;
use crate::input::Candidate;
use crate::reason::Reason;

/// The whole of a Brain's mind, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct BrainView {
    /// State of the server.
    pub state: ServerState,
    /// Where exactly it stands.
    pub phase: PhaseName,
    /// D_out.
    pub usable: ByteRate,
    /// D_resc less what is allotted: d_free.
    pub free: ByteRate,
    /// Level of each resource in the last interval; 1 is capacity.
    pub levels: Vec<(Resource, f64)>,
    /// T_redi of the current plan; none when nothing is redirected.
    pub redirect_threshold: Option<f64>,
    /// Consecutive intervals below T_low.
    pub calm_intervals: u32,
    /// Rescue servers that help us.
    pub rescue_servers: Vec<RescueView>,
    /// Origins that we help.
    pub origins: Vec<RescueView>,
    /// Origins whose rescue is over, and whose last visitors are still served.
    pub ending: Vec<EndingView>,
    /// The drill that we hold or take part in.
    pub drill: Option<DrillView>,
    /// What is given to others, and to whom it is not.
    pub help: HelpView,
    /// Hot resources and their copies, the hottest first.
    pub hot: Vec<HotView>,
    /// Candidates, best first.
    pub candidates: Vec<Candidate>,
    /// What has become of calling for help.
    pub call: CallView,
    /// The last decisions, oldest first.
    pub decisions: Vec<Entry>,
}

/// What has become of calling for help, for as long as help is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallView {
    /// Nobody was asked, or nobody needs to be.
    #[default]
    NotCalled,
    /// Somebody is being asked.
    Asking,
    /// Nobody is left to ask.
    NobodyLeft {
        /// Candidates that are left alone for a while, since they did not help or stopped helping.
        resting: usize,
    },
}

/// The phases of a Brain: the three states of the paper, and the steps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseName {
    /// Neither helps nor is helped.
    Normal,
    /// Normal, but asks for help.
    Calling,
    /// Normal, but rehearses a rescue.
    Drilling,
    /// Is being rescued.
    Sos,
    /// Rescues others.
    Rescue,
    /// Rescue, but has told its origins to go and waits for their answers.
    Closing,
    /// Normal for good: the operator stops this server.
    Drained,
}

/// One rescue, from either side.
#[derive(Clone, Debug, PartialEq)]
pub struct RescueView {
    /// Its link.
    pub link: LinkId,
    /// Slot of its counters.
    pub slot: u8,
    /// The other side's own name and port.
    pub peer: WebAddress,
    /// The alias in use.
    pub alias: WebAddress,
    /// When it began.
    pub since: Timestamp,
    /// D_redi.
    pub rate: ByteRate,
    /// d_redi(S_r) or d_resc(S_o) of the last interval.
    pub used: ByteRate,
    /// The origin has died, and permits us to go on until then.
    pub orphaned_until: Option<Timestamp>,
}

/// A rescue that we gave and that is over, while its alias still serves.
#[derive(Clone, Debug, PartialEq)]
pub struct EndingView {
    /// The link that it had.
    pub link: LinkId,
    /// The origin's own name and port.
    pub peer: WebAddress,
    /// The alias.
    pub alias: HostName,
    /// When it began.
    pub since: Timestamp,
}

/// What was given to others in the last 24 hours, and to whom it was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HelpView {
    /// Bytes given to all.
    pub given: u64,
    /// What there is for all together, by the limits.
    pub rate: ByteRate,
    /// To whom how much was given, most first; none stands for all that are not told apart.
    pub origins: Vec<(Option<HostName>, u64)>,
    /// The last whom we did not help, oldest first.
    pub refused: Vec<RefusedCall>,
    /// How many there were, by kind.
    pub refused_by_kind: BTreeMap<&'static str, u64>,
}

/// A resource that is copied.
#[derive(Clone, Debug, PartialEq)]
pub struct HotView {
    /// Host and path.
    pub url: String,
    /// How hot it is.
    pub heat: Heat,
    /// The time between two requests when it became that hot.
    pub gap: Duration,
    /// Rescue servers that hold it, by their links.
    pub holders: Vec<LinkId>,
    /// Copies that are being made.
    pub under_way: usize,
    /// The page that embeds it, where it is not hot of its own.
    pub page: Option<String>,
}

/// One decision and when it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What and why.
    pub reason: Reason,
}

/// An alias that was given out, as it is written to the state folder: a server that crashed still
/// sends the visitors of its old aliases back to their origins, and never reuses a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasRecord {
    /// Its number n in `<host>-vh<n>`.
    pub number: u64,
    /// The alias.
    pub alias: HostName,
    /// Whose it is.
    pub origin: WebAddress,
    /// The port at which that one answers by HTTPS.
    pub tls: Option<u16>,
    /// Whether the origin's own name may lead to us.
    pub own_name: OwnName,
}

/// Where the own name of an origin leads that we rescue or have rescued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnName {
    /// Not to us.
    #[default]
    Elsewhere,
    /// To us, as far as its DNS or somebody's memory of it says so.
    Here,
}
