//! A zone that we keep ourselves: an authoritative name server for sites and communities without
//! one.
//!
//! It answers from one zone file and what updates put beside it, by UDP and TCP, with round robin
//! or by weights; takes signed updates (RFC 2136) from those whom it was told; tells its
//! secondaries of each change (NOTIFY) and gives them the whole zone (AXFR), so that names survive
//! it. It resolves nothing for anybody, and signs no zone (DNSSEC).
//!
//! ```text
//!   packet ─▶ budget ─▶ signature ─▶ answer │ update │ transfer ─▶ packet
//! ```

mod answer;
mod budget;
#[cfg(any(test, fuzzing))]
mod fuzzing;
mod listen;
mod notify;
mod own_zone;
mod places;
mod records;
mod signature;
#[cfg(test)]
mod tests;
mod transfer;
mod update;

pub use answer::Weights;
#[cfg(any(test, fuzzing))]
pub use fuzzing::{fuzzed_message, fuzzed_zone};
pub use own_zone::{Counts, Keeps, Memory, OwnZone, OwnZoneSettings, Renewal, Save, ZoneFile};
pub use records::ZoneFileError;
pub use signature::Grant;
