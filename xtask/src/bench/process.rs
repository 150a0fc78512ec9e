//! Programs under measurement: pinned, in a session of their own, never left behind.
//!
//! Each is started through four small programs of util-linux that become one another, so that the
//! id that we know is the server's own:
//!
//! - `setsid`: a session of its own. The scheduler shares the processor between sessions before
//!   it shares it between processes, so a build beside the bench takes no more than its part.
//! - `setpriv --pdeathsig`: it is told to end when this process ends, however that happens.
//! - `taskset`: one core, with every thread and process that it starts.
//!
//! Dropping a [`Running`] ends the process and all that descends from it, each by its id.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::processor::family;
use crate::command::Failure;
use crate::install::is_root;
use crate::workspace::failed;

/// What is to be run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The program: a path, or a name on the search path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The cores that it may use, as `taskset` spells them.
    pub cores: String,
    /// As whom it runs.
    pub user: User,
    /// Weight of its session (`/proc/PID/autogroup`); below zero is heavier, and needs root.
    pub weight: i32,
}

/// As whom a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum User {
    /// As we do.
    #[default]
    Ourselves,
    /// As nobody, where we are root: some servers refuse to serve as root.
    Nobody,
}

/// Debian's user and group of those who own nothing.
const NOBODY: &str = "65534";

/// A running program. Dropped, it is ended.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

/// How long a program may take to end before it is killed.
const END_WITHIN: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(5);

impl Program {
    /// The call, wrapped as the module says.
    fn command(&self) -> Command {
        let mut command = Command::new("setsid");
        command.args(["setpriv", "--pdeathsig", "TERM"]);
        if self.user == User::Nobody && is_root() {
            command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        }
        command
            .args(["taskset", "--cpu-list", &self.cores])
            .arg(&self.program)
            .args(&self.arguments)
            // Held open while we live: what waits for the end of its input ends with us.
            .stdin(Stdio::piped());
        command
    }

    /// Starts it in `folder`; all that it says goes to the file `log`.
    pub fn start(&self, folder: &Path, log: &Path) -> Result<Running, Failure> {
        let said = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(failed("create", log))?;
        let also = said.try_clone().map_err(failed("create", log))?;
        let mut command = self.command();
        command.current_dir(folder).stdout(said).stderr(also);
        self.spawn(&mut command)
    }

    fn spawn(&self, command: &mut Command) -> Result<Running, Failure> {
        let child = command.spawn().map_err(|cause| Failure::Io {
            what: format!("run {}", self.program),
            cause,
        })?;
        let running = Running { child };
        running.weigh(self.weight);
        Ok(running)
    }
}

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn weigh(&self, weight: i32) {
        let path = format!("/proc/{}/autogroup", self.id());
        // The session must be its own first, or the weight would be ours. Where the kernel groups
        // nothing, or refuses us, every process keeps the same weight; that is fair too.
        let deadline = Instant::now() + Duration::from_millis(500);
        let own = fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
        let group = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        while Instant::now() < deadline {
            let theirs = fs::read_to_string(&path).unwrap_or_default();
            if theirs.is_empty() {
                return;
            }
            if group(&theirs) != group(&own) {
                let _ = fs::write(&path, weight.to_string());
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let all: Vec<(u32, Option<String>)> = family(self.id())
            .into_iter()
            .map(|process| (process, birth(process)))
            .collect();
        signal("TERM", &[self.id()]);
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline && (!self.has_ended() || all.iter().any(is_there)) {
            thread::sleep(LOOK);
        }
        let left: Vec<u32> = all
            .iter()
            .filter(|one| is_there(one))
            .map(|(process, _)| *process)
            .collect();
        signal("KILL", &left);
        let _ = self.child.wait();
        // Nothing outlives a kill, but the kernel needs a moment for it.
        let deadline = Instant::now() + END_WITHIN;
        while Instant::now() < deadline && all.iter().any(is_there) {
            thread::sleep(LOOK);
        }
    }
}

/// Whether this very process is still there, and not another one with its old id.
fn is_there((process, born): &(u32, Option<String>)) -> bool {
    born.is_some() && birth(*process) == *born
}

/// When a process was started, in ticks since boot; none when it is gone or only waited for.
fn birth(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    match fields.next() {
        Some("Z" | "X") | None => None,
        Some(_) => fields.nth(18).map(str::to_owned),
    }
}

fn signal(name: &str, processes: &[u32]) {
    for process in processes {
        // It may have ended meanwhile; then there is nothing to end.
        let _ = Command::new("kill")
            .args(["-s", name, &process.to_string()])
            .stderr(Stdio::null())
            .status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Running {
        let program = Program {
            program: "sh".to_owned(),
            arguments: vec!["-c".to_owned(), "sleep 1000 & sleep 1000; true".to_owned()],
            cores: "0".to_owned(),
            ..Program::default()
        };
        program
            .start(Path::new("/"), Path::new("/dev/null"))
            .unwrap()
    }

    #[test]
    fn a_dropped_program_is_gone_with_its_children() {
        let running = sleeper();
        let root = running.id();
        let deadline = Instant::now() + Duration::from_secs(10);
        while family(root).len() < 3 && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        let all: Vec<_> = family(root)
            .into_iter()
            .map(|one| (one, birth(one)))
            .collect();
        assert!(all.len() >= 3, "{all:?}");
        drop(running);
        assert!(!all.iter().any(is_there));
    }
}
