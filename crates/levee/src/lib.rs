//! The parts of the `levee` binary: settings, wiring, the community's sockets, the admin pages.
//!
//! A library only so that the integration tests can reach the parts; the command line is `main.rs`.

pub mod acme;
pub mod admin;
pub mod admin_client;
mod alias_name;
pub mod brain_task;
pub mod check;
pub mod command;
pub mod community;
pub mod community_desk;
pub mod community_socket;
pub mod dns;
pub mod drill;
mod ended_rescues;
pub mod exchange;
pub mod explain;
pub mod figures;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod https;
pub mod integrity;
pub mod lab;
pub mod link_meter;
pub mod local_authority;
pub mod log_hand_over;
pub mod log_take_over;
pub mod manual;
pub mod node;
pub mod purge_report;
pub mod registry_client;
pub mod registry_finder;
pub mod registry_server;
pub mod replay;
pub mod replicator;
pub mod rescue_link;
pub mod sampler;
pub mod serve;
pub mod service_manager;
pub mod settings;
pub mod state;
pub mod trust;
mod way;
