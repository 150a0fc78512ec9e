//! The decisions of rescue control, without a clock, a socket or a thread.
//!
//! [`Brain`] owns all of them: it is told what happened ([`Input`]) and answers what must be done
//! ([`Output`]). The server runs one under the real clock, the lab runs hundreds under a virtual one.
//! Requests never wait for it: each core reads an immutable [`RoutePlan`] through its own [`Gate`].

mod input;
mod output;
mod parameters;
mod plan;
mod view;

pub use input::{Candidate, Input, LinkLoss, LoadSample, Rejection, RescueCall, Traffic};
pub use output::{Output, Reason, ShutdownCause};
pub use parameters::{ParameterError, Parameters, Thresholds};
pub use plan::{Destination, HostTable, OriginPhase, OriginRoute, RedirectPlan, RoutePlan, Target};
pub use view::{AliasRecord, BrainView, Entry, RescueView};
