//! The parts of the `levee` binary: settings, wiring, the community's sockets, the admin pages.
//!
//! A library only so that the integration tests can reach the parts; the command line is `main.rs`.

pub mod admin_client;
pub mod command;
pub mod explain;
pub mod settings;
pub mod state;
