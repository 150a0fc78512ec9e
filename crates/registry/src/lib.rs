//! The service registry of a community (R11): who is there, and what they offer.
//!
//! [`Catalog`] holds the entries, each with its lifetime, sorted by what they offer. [`Registry`]
//! is what answers requests from it: who may register what, how much, and how long. Neither opens a
//! socket or reads a clock; the shell carries lines, and another registry of a mesh, an SLP agent
//! or an external store would hand in the same [`Input`]s and be told the same [`Change`]s.

mod catalog;
mod registry;

pub use catalog::{Catalog, Change, Held};
pub use registry::{
    AddressRule, Asker, Input, Output, PrivateAddresses, Registry, RegistryLimits, RegistryView,
};
