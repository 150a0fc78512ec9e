//! Namespaces around a whole run, so that the kernel cleans up whatever happens.
//!
//! ```text
//!   levee-lab run     the owner: makes the folder, waits, cleans up, writes the report
//!     └─ setsid, setpriv   a session of its own, told to die when the owner does
//!          └─ unshare       kills its child when it dies
//!               └─ levee-lab run   first process of namespaces for processes, networks and mounts
//!                    ├─ levee …    servers, each in the network of its host
//!                    └─ levee-lab generate
//! ```
//!
//! When the first process of a process namespace dies, the kernel ends all others; when they are
//! gone, so are their networks and mounts. Ctrl-C, an error, a panic and `kill -9` of the owner all
//! come to this. Only a temporary folder and control groups can outlive a killed owner: both bear
//! its id, and the next run removes those whose owner is no more.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::LabError;
use super::{network, processor};

/// A program of somebody else's that a run cannot do without.
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 7] = [
    Tool {
        program: "ip",
        package: "iproute2",
    },
    Tool {
        program: "tc",
        package: "iproute2",
    },
    Tool {
        program: "mount",
        package: "mount",
    },
    Tool {
        program: "nsenter",
        package: "util-linux",
    },
    Tool {
        program: "setpriv",
        package: "util-linux",
    },
    Tool {
        program: "setsid",
        package: "util-linux",
    },
    Tool {
        program: "unshare",
        package: "util-linux",
    },
];

/// Tells the process inside which folder is its own, and by that that it is inside.
const FOLDER: &str = "LEVEE_LAB_FOLDER";
/// Tells it who owns the run: process ids inside are others.
const OWNER: &str = "LEVEE_LAB_OWNER";
/// First part of the folders' names; the owner's id and a hyphen follow.
const PREFIX: &str = "levee-lab-";

/// What a run stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Its temporary folder.
    pub folder: PathBuf,
    /// Process id of the owner, as the rest of the machine sees it.
    pub owner: u32,
}

/// The ground of this process, when it is the one inside.
pub fn ground() -> Option<Ground> {
    Some(Ground {
        folder: env::var_os(FOLDER)?.into(),
        owner: env::var(OWNER).ok()?.parse().ok()?,
    })
}

/// Inside: names of networks that do not show outside, and the switches.
pub fn settle_in() -> Result<(), LabError> {
    const NAMES: &str = "/run/netns";
    fs::create_dir_all(NAMES).map_err(LabError::machine("make /run/netns"))?;
    network::run(&["mount", "-t", "tmpfs", "levee-lab", NAMES])?;
    // Other work on the machine should not show in the figures. Where the kernel groups nothing, or
    // refuses us, it does.
    let _ = fs::write("/proc/self/autogroup", WEIGHT);
    network::lay_switches()
}

/// How the session of a run is weighed against others on the processor, as `nice` counts.
const WEIGHT: &str = "-15";

/// How it ended inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit status.
    Status(ExitStatus),
    /// It was stopped from outside.
    Stopped,
}

/// Runs this program again inside, with `arguments`, and cleans up after it.
pub fn run_inside(arguments: &[OsString]) -> Result<Ended, LabError> {
    if !geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    let missing: Vec<&Tool> = TOOLS
        .iter()
        .filter(|tool| !is_there(tool.program))
        .collect();
    if let Some(first) = missing.first() {
        return Err(LabError::MissingTool {
            program: first.program,
            package: first.package,
        });
    }
    sweep();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(LabError::machine("start"))?;
    let owner = std::process::id();
    let folder = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{owner}-"))
        .tempdir()
        .map_err(LabError::machine("make a temporary folder"))?;
    let ended = runtime.block_on(async {
        // Signals are listened to before there is anything to clean up.
        let mut stop = Stop::listen().map_err(LabError::machine("listen for Ctrl-C"))?;
        let ground = Ground {
            folder: folder.path().to_owned(),
            owner,
        };
        let child = start(arguments, &ground).map_err(LabError::machine("make namespaces"))?;
        stop.or_end_of(child).await
    });
    remove_groups(owner);
    ended
}

fn start(arguments: &[OsString], ground: &Ground) -> io::Result<Child> {
    Command::new("setsid")
        .args([
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
        ])
        .args(["--kill-child", "--mount-proc"])
        .arg(env::current_exe()?)
        .args(arguments)
        .env(FOLDER, &ground.folder)
        .env(OWNER, ground.owner.to_string())
        .spawn()
}

/// Ctrl-C, and other requests to end.
struct Stop {
    signals: [Signal; 3],
    child_changed: Signal,
}

impl Stop {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            signals: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            child_changed: signal(SignalKind::child())?,
        })
    }

    async fn or_end_of(&mut self, mut child: Child) -> Result<Ended, LabError> {
        let lost = LabError::machine("wait for the run");
        let [interrupt, terminate, hangup] = &mut self.signals;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(Ended::Status(status)),
                Ok(None) => {}
                Err(error) => return Err(lost(error)),
            }
            tokio::select! {
                _ = self.child_changed.recv() => continue,
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            end(&mut child);
            return Ok(Ended::Stopped);
        }
    }
}

/// Kills `unshare`, and with it everything inside.
fn end(child: &mut Child) {
    // One that is gone already needs no killing.
    let _ = child.kill();
    let _ = child.wait();
}

/// Whether a program is on this machine.
pub fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where Debian has ip and tc, which is not on the path of everybody.
    let also = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut folders = env::split_paths(&path).chain(also);
    folders.any(|folder| folder.join(program).is_file())
}

/// Removes what owners left behind who were killed. What belongs to a living process is left alone,
/// even where that process is another one by now.
fn sweep() {
    for owner in processor::owners() {
        if !is_alive(owner) {
            processor::remove_groups_of(owner);
        }
    }
    for folder in fs::read_dir(env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = folder.file_name();
        let owner = name.to_str().and_then(owner_of);
        if owner.is_some_and(|owner| !is_alive(owner)) {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

/// Whose folder it is, by its name.
fn owner_of(name: &str) -> Option<u32> {
    let (owner, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    owner.parse().ok()
}

fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Removes control groups as soon as the processes in them are gone, which nobody here can wait
/// for: they are not children of the owner.
fn remove_groups(owner: u32) {
    const GONE_WITHIN: Duration = Duration::from_secs(2);
    let deadline = Instant::now() + GONE_WITHIN;
    while processor::owners().contains(&owner) && Instant::now() < deadline {
        processor::remove_groups_of(owner);
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_lab_have_an_owner() {
        assert_eq!(owner_of("levee-lab-4711-x1y2z3"), Some(4711));
        assert_eq!(owner_of("levee-lab-4711"), None);
        assert_eq!(owner_of("levee-demo-4711-x1y2z3"), None);
        assert_eq!(owner_of("levee-lab-report-1"), None);
    }

    #[test]
    fn a_tool_is_looked_for_where_debian_puts_it() {
        assert!(is_there("sh"));
        assert!(!is_there("no-such-program-anywhere"));
    }
}
