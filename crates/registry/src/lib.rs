//! The service registry of a community (R11): who is there, and what they offer.
//!
//! [`Catalog`] holds the entries, each with its lifetime, sorted by what they offer. [`Registry`]
//! is what answers requests from it: who may register what, how much, and how long. [`Mesh`] keeps
//! several registries alike. [`Accusations`] is what members say of those who lie. [`newest`] and
//! [`missing`] are for who has asked several registries. [`Budgets`] is how much each may send.
//! None opens a socket or reads a clock; the shell carries lines, and an SLP agent or an external
//! store would hand in the same [`Input`]s and be told the same [`Change`]s.

mod accusations;
mod answers;
mod budgets;
mod catalog;
mod departed;
mod limits;
mod link;
mod merge;
mod mesh;
mod registry;
mod sums;

pub use accusations::{ACCUSATION_LIFETIME, Accusations, Heard};
pub use answers::{best, filled, known_first, missing, newest};
pub use budgets::{BudgetLimits, Budgets};
pub use catalog::{Catalog, Change, Held, Known};
pub use departed::{Departed, Parting};
pub use limits::{AddressRule, PrivateAddresses, RegistryLimits};
pub use link::{LinkCounts, LinkId, LinkView, Side};
pub use merge::Merged;
pub use mesh::{Mesh, MeshInput, MeshOutput, MeshRules, MeshView};
pub use registry::{Asker, Input, Output, Registry, RegistryView};
pub use sums::{Bucket, Sums, Version};
