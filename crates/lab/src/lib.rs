//! Plays with Levee: stories under a virtual clock, and crowds against the real binary.
//!
//! A tool, not a part of the server: nothing that ships depends on it.

pub mod bare;
pub mod crowd;
pub mod demo;
pub mod emulated;
pub mod experiment;
pub mod load;
pub mod popularity;
pub mod processes;
pub mod report;
pub mod simulate;
pub mod site;
pub mod soak;
pub mod storm;
pub mod story;
