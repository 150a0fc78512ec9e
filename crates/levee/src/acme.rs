//! Certificates that are ordered and renewed by themselves (ACME, RFC 8555).
//!
//! ```text
//!   none ──▶ account ──▶ order ──▶ check ──▶ finalize ──▶ certificate ──▶ in force
//!    ▲                     │ written down before it is finalized            │
//!    └── expires soon ─────┴── a restart goes on from there ◀───────────────┘
//! ```
//!
//! One task does it, beside everything that visitors need ([`Keeper`]). What it decides, when to
//! renew and how long to rest after a failure, stands in `schedule.rs` without a clock; what it
//! keeps, in `store.rs`, each file replaced as a whole. The cores answer the authority themselves
//! (`levee_proxy::Challenges`), or find a record in DNS ([`Records`]), and a new certificate is
//! swapped in without closing a connection.
//!
//! Each name has a certificate of its own: one that does not lead here yet takes no other with it.
//! The protocol is instant-acme's (record 0034); what it deliberately does not do: revoke, and
//! change the account's key.

mod advice;
mod authority;
mod challenge;
mod delegation;
mod error;
mod keeper;
mod name;
mod nonce;
mod order;
mod records;
mod schedule;
mod store;

pub use challenge::{Boards, Way};
pub use error::AcmeError;
pub use keeper::{Keeper, KeeperParts, Swap};
pub use name::{CertificateName, CertificateNameError};
pub use records::{KnownZones, Records};
pub use schedule::Lifetime;
pub use store::{CertificateStore, StoreError};
