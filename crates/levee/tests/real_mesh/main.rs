//! Registries as real processes, in networks that can be cut, and under a name server of BIND.
//!
//! Each test plays in namespaces of its own, which takes root; without it each says that it was
//! left out.
#![allow(clippy::unwrap_used)]

mod cut;
mod hosts;
// Other tests need more of it.
#[allow(dead_code)]
#[path = "../../../dns/tests/real_bind/named.rs"]
mod named;
#[path = "../../../lab/tests/real_faults/own_world.rs"]
mod own_world;
#[path = "../support/program.rs"]
mod program;
mod records;
mod registries;
mod silence;
mod sites;
mod town;
