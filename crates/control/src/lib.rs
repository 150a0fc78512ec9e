//! The decisions of rescue control, without a clock, a socket or a thread.
//!
//! [`Brain`] owns all of them: it is told what happened ([`Input`]) and answers what must be done
//! ([`Output`]). The server runs one under the real clock, the lab runs hundreds under a virtual
//! one. Requests never wait for it: each core reads an immutable [`RoutePlan`] through its own
//! [`Gate`]. Beside it stands [`Purges`], which has our rescue servers remove what we take back.
//!
//! Where to find what: R2 and R3 `load`, `parameters`; R1 `rescue`; R4 `allocation` and
//! `rescue/calls`; R5 `redirect` and `gate`; R6 `gate`; R8 `aliases`; R9 `termination`; R11
//! `discovery`; R12 `view` and `journal`. R7, the protocol on the wire, is the shell's. Beside the
//! rescue: `upstreams`, which application of a site gets a request; `homes`, which of an origin's
//! rescue servers fetches an object for all of them; H1 and H2 `hotspot`, which resources are about
//! to become hot; H5 `way_back`, how a visitor gets back to the origin and never round and round;
//! `help`, what an operator gives at most; `drill`, a rehearsal of it all.

mod aliases;
mod allocation;
mod brain;
mod copies;
mod crawlers;
mod desk;
mod discovery;
mod drill;
mod gate;
mod help;
mod homes;
mod hotspot;
mod input;
mod inspection;
mod journal;
mod law;
mod link_estimate;
mod load;
mod output;
mod parameters;
mod plan;
mod purges;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod reason;
mod redirect;
mod rescue;
mod slots;
mod termination;
mod upstreams;
mod view;
mod way_back;

pub use brain::Brain;
pub use copies::{Copies, CopyMeans, CopyOrder, CopyOutcome, Embedded, Heat, HotRoute};
pub use crawlers::{
    Block, CrawlerNames, CrawlerWatch, Named, Noted, PageRequest, RecognisedBy, Visitor,
};
pub use drill::{
    DRILL_LENGTH_MAX, DRILL_LINK_SHARE, DRILL_RATE_MAX, DrillEnd, DrillOrder, DrillPlan,
    DrillRefusal, DrillStop, DrillView,
};
pub use gate::{Ask, Gate, GateLimits, PuttingOff, Redirectability, Verdict};
pub use help::{CallRefusal, GIVEN_WINDOW, GivenRecord, HelpLimits, HelpPlan, RefusedCall};
pub use homes::{AskEnd, Asking, Asks, Home, HomeChoice, Homes, NeededBy, object_hash};
pub use hotspot::{
    Arrival, ArrivalTable, Arrivals, HotSpotInput, HotSpotOutput, HotSpotRules, HotSpotStep,
    HotSpots, ResourcePhase, ResourceView, UrlText, Watching,
};
pub use input::{
    Candidate, CrawlerTraffic, Input, LinkLoss, LoadSample, Records, Rejection, RescueCall, Traffic,
};
pub use inspection::{Inspection, Look, NextStep, Pace, found_by};
pub use law::{HotSpotPolicy, Law, Replication};
pub use link_estimate::{HeldUpBy, LinkEstimate, SendReading, SendSample};
pub use output::{Output, ShutdownCause};
pub use parameters::{Drills, ParameterError, Parameters, Redirects, Thresholds, Visitors};
pub use plan::{
    CrawlPlan, Destination, HostTable, OriginPhase, OriginRoute, RedirectPlan, RoutePlan, Target,
};
pub use purges::{Confirmation, PurgeInput, PurgeOutcome, PurgeOutput, Purges};
pub use reason::{Reason, Wanted};
pub use upstreams::{
    Checked, Choice, NoChoice, RetryGrant, Sign, Tier, UpstreamGroup, UpstreamId, UpstreamRules,
    UpstreamView,
};
pub use view::{
    AliasRecord, BrainView, CallView, EndingView, Entry, HelpView, HotView, OwnName, PhaseName,
    RescueView,
};
pub use way_back::{Comeback, Marks, Onward, REDIRECTS_MAX, Signature, WayBack};
