//! Load on a server, by programs that others trust, and what they report.

mod h2load;
mod lab;
mod wrk;

use std::path::PathBuf;
use std::process::Command;

use super::workloads::{Load, Workload};
use crate::command::Failure;

pub use lab::{Handshakes, Held};
pub use wrk::Connections;

/// What lies between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing.
    Clear,
    /// TLS.
    Tls,
}

/// What a load generator saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Answers that came whole and right.
    pub requests: u64,
    /// Answers of a wrong status, connections that broke, answers that never came.
    pub errors: u64,
    /// Requests in a second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// The latency that one in a hundred exceeds, in microseconds.
    pub p99_us: f64,
}

/// Where and how long a load is made.
#[derive(Clone, Debug)]
pub struct Target {
    /// Port of the server on the loopback address.
    pub port: u16,
    /// The Host that is asked for.
    pub host: String,
    /// Length of the load.
    pub seconds: u32,
    /// The cores of the generator.
    pub cores: String,
    /// What OpenSSL may offer: the same to all servers.
    pub openssl_conf: PathBuf,
    /// The program of the lab that makes loads of our own.
    pub lab: String,
}

/// Beside slow readers the load is longer by this: at first the server is busy filling what the
/// kernel holds for each of them, and that is not what ordinary visitors get from then on.
const SLOW_TIMES: u32 = 4;
/// Connections at a time: enough that a server always has work, few enough that none waits long.
const CONNECTIONS: u32 = 64;

/// Makes the load of `workload` and waits for its end.
pub fn run(workload: &Workload, target: &Target) -> Result<Seen, Failure> {
    let path = workload.path;
    match workload.load {
        Load::Http(connections, transport) => wrk::run(target, path, connections, transport),
        Load::Http2(at_a_time) => h2load::run(target, path, at_a_time),
        Load::Handshakes(kind) => lab::handshakes(target, path, kind),
        // The ordinary visitors beside the slow ones ask for something else.
        Load::SlowReaders => {
            let mut target = target.clone();
            target.seconds *= SLOW_TIMES;
            wrk::run(&target, "/10k", Connections::Kept, Transport::Clear)
        }
        Load::Idle => Ok(Seen::default()),
    }
}

/// A generator's call: in a session of its own, on its cores, and never for ever.
fn bounded(target: &Target) -> Command {
    let mut command = Command::new("setsid");
    command
        .args([
            "--wait",
            "timeout",
            &(target.seconds + GRACE_SECONDS).to_string(),
        ])
        .args(["taskset", "--cpu-list", &target.cores]);
    command
}

/// What connecting and reporting may take beside the load itself.
const GRACE_SECONDS: u32 = 20;
