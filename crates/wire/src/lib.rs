//! Bytes to values and back, for every protocol that Levee owns or speaks over lines of text.
//!
//! [`LineReader`] cuts a stream into lines, [`rescue`], [`registry`] and [`mesh`] say what a line
//! means, [`RescueSession`] is one side of a rescue link from the first line to the last,
//! [`ProxyHeader`] is the PROXY protocol, and [`BackWord`] is what a visitor carries from one
//! server to another. Bytes from outside meet this crate first, so nothing in it panics on them,
//! and nothing in it grows with them. It opens no socket and reads no clock.

mod address_range;
mod back;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grammar;
mod integrity_words;
mod line;
pub mod mesh;
mod message_budget;
mod peers_words;
mod proxy_header;
mod publication;
mod purge_words;
pub mod registry;
pub mod rescue;
mod rescue_session;

pub use address_range::AddressRange;
pub use back::{
    BACK_BYTES_MAX, BACK_MAC_BYTES, BACK_PARAMETER, BackReason, BackToken, BackWord, CutBack,
    cut_back, push_back,
};
pub use grammar::{ParseError, leading_number};
pub use integrity_words::{Permit, PermitProof, REPORT_TARGET_MAX, Report};
pub use line::{LINE_MAX, LineReader, LineTooLong};
pub use message_budget::MessageBudget;
pub use proxy_header::{
    PROXY_HEADER_BYTES_MAX, ProxiedAddresses, ProxyHeader, ProxyHeaderFault, ProxyVersion,
};
pub use publication::{
    Claim, ClaimFault, DIGEST_FIELD, Digest, INPUT_FIELD, Published, SIGNATURE_FIELD, Validity,
};
pub use rescue_session::{
    CommandName, Ending, Event, Fault, FaultKind, Input, Output, PurgeAnswer, Refusal,
    RescueSession, SessionLimits, SessionPhase, SessionView,
};
