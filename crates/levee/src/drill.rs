//! `levee drill`: a rehearsal of a rescue with the real community.
//!
//! ```text
//!  levee drill ─ POST /-/drill ─▶ admin address ─▶ office ─Input─▶ Brain ─ SOS drill=60 ─▶ members
//!       │      ◀ GET /drill.json ─ (key, members)    ▲ reasons
//!       └── visits with the key ──▶ the site ──302──▶ the rescue servers, over the real network
//! ```
//!
//! The running server calls and redirects (`office`); the command makes the visits (`crowd`), so
//! whatever ends the command ends the drill: the server hears from it twice a second, or stops. The
//! visits do what browsers do, by HTTPS where the site sends its visitors there (`crate::way`),
//! follow the redirect and look at each byte (`visit`), and end in a report for people (`report`).
//! What may be done when is decided in `levee_control`.

mod account;
mod client;
mod crowd;
mod findings;
mod ledger;
mod names;
mod office;
mod report;
mod visit;

pub use account::{Account, Invitation, Member, Part};
pub use client::{Wanted, drill, stop};
pub use ledger::Ledger;
pub use office::{Begun, Doors, DrillDesk, DrillOffice};
pub use report::Report;

pub use crate::way::Scheme;
