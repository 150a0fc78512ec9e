//! Experiments of the papers, played again with real servers on emulated hosts.
//!
//! ```text
//!   command ──▶ enclosure ──▶ bench ──▶ experiments/*       findings ──▶ report
//!               namespaces     │                               ▲
//!                              ├─ topology, network, processor │
//!                              ├─ servers: real levee          │
//!                              └─ generator: visitors ─────────┘
//! ```
//!
//! Nothing is simulated here but distance: servers, connections and bytes are real, links are as
//! thick as the topology says, and what a link carried is read from the link. The simulator
//! (`levee-sim`) is the other half of the lab, with a virtual clock.

pub mod alterer;
pub mod bench;
mod certificate_authority;
pub mod command;
mod enclosure;
pub mod experiments;
pub mod findings;
pub mod generator;
mod name_server;
mod network;
mod processor;
mod program;
mod report;
mod sampler;
mod servers;
pub mod topology;

use std::io;
use std::process::ExitStatus;

use thiserror::Error;

use crate::processes::StartError;

/// Why an experiment could not be played.
#[derive(Debug, Error)]
pub enum LabError {
    /// Namespaces and traffic control belong to root.
    #[error(
        "this needs root: it makes network namespaces, links with limits and control groups, all \
         of its own; run it as root or with sudo"
    )]
    NotRoot,
    /// A program of somebody else's is missing.
    #[error("there is no `{program}`: install Debian's package {package}")]
    MissingTool {
        /// The program.
        program: &'static str,
        /// Debian's package with it.
        package: &'static str,
    },
    /// A name that no experiment has.
    #[error("there is no experiment `{name}`; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// All names, and `all`.
        known: String,
    },
    /// Bad topology.
    #[error(transparent)]
    Topology(#[from] topology::TopologyError),
    /// A server did not come up.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A program refused what it was told.
    #[error("`{command}` failed: {said}")]
    Refused {
        /// What was called.
        command: String,
        /// What it said.
        said: String,
    },
    /// Neighbours did not find each other.
    #[error("the source knows {found} of {wanted} neighbours after 30 s")]
    NoCandidates {
        /// Whom it knows.
        found: usize,
        /// How many there are.
        wanted: usize,
    },
    /// Something that was waited for did not come.
    #[error("{0} did not come about in time")]
    Awaited(&'static str),
    /// The load was too much from its start.
    #[error("more than a tenth of the requests failed at {0} already")]
    NothingHeld(&'static str),
    /// The visitors came to harm.
    #[error("the load generator ended with {0}")]
    Generator(ExitStatus),
    /// Somebody wanted it to stop.
    #[error("stopped")]
    Stopped,
    /// Something of this machine failed.
    #[error("cannot {what}: {error}")]
    Machine {
        /// What was tried.
        what: String,
        /// What went wrong.
        error: io::Error,
    },
}

impl LabError {
    /// Wraps an error of the operating system with what was tried.
    fn machine(what: &str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Machine {
            what: what.to_owned(),
            error,
        }
    }
}
