//! Real processes: started, waited for, and never left behind.
//!
//! A process is up when it has printed its ready line. However the demo ends (done, Ctrl-C, an
//! error, a panic), dropping a [`Process`] asks it to stop, waits a little, and then kills it; it
//! is always addressed by the id of the child that was started here.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use thiserror::Error;

/// A running process. Dropped, it is stopped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ready: Ready,
}

/// What a ready line tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Web address of the site, `http://news.localhost:8080`.
    pub site: Option<String>,
    /// Where the admin pages are.
    pub admin: Option<SocketAddr>,
    /// Where the registry listens.
    pub registry: Option<SocketAddr>,
}

/// A process that did not come up.
#[derive(Debug, Error)]
pub enum StartError {
    /// It could not be run at all.
    #[error("cannot run {program} as {name}: {error}")]
    Run {
        /// Name in the demo.
        name: String,
        /// What was to be run.
        program: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It ended, or said nothing, before it was ready.
    #[error("{name} was not ready ({cause}); it last said:\n{said}")]
    NotReady {
        /// Name in the demo.
        name: String,
        /// It ended, or took too long.
        cause: &'static str,
        /// The end of what it wrote.
        said: String,
    },
}

/// The `levee` binary beside this program. Cargo puts tests one folder below it.
pub fn levee_beside() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.ancestors().skip(1).take(2);
    let mut found = beside
        .map(|folder| folder.join("levee"))
        .filter(|levee| levee.is_file());
    found.next().ok_or_else(|| {
        let way_out = "there is no levee beside this program; run `cargo build --package levee`";
        io::Error::new(io::ErrorKind::NotFound, way_out)
    })
}

/// What a program of the lab's own prints when it is ready.
pub const LAB_READY: &str = "levee-lab: ready";
/// Far longer than a start takes, even on a machine that is busy compiling.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// What a drain may take before the process is killed.
const STOP_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

impl Process {
    /// Runs `program` and waits for its ready line. What it prints goes to files in `logs`.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        arguments: &[A],
        logs: &Path,
    ) -> Result<Self, StartError> {
        let run = |error| StartError::Run {
            name: name.to_owned(),
            program: program.to_owned(),
            error,
        };
        let said = logs.join(format!("{name}.log"));
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&said).map_err(run)?)
            .spawn()
            .map_err(run)?;
        let stdout = child.stdout.take();
        // From here on an early return stops the child.
        let mut process = Self {
            name: name.to_owned(),
            child,
            ready: Ready::default(),
        };
        let (sender, lines) = mpsc::channel();
        let copy = File::create(logs.join(format!("{name}.out"))).map_err(run)?;
        thread::Builder::new()
            .name(format!("output of {name}"))
            .spawn(move || follow(stdout, copy, &sender))
            .map_err(run)?;
        let cause = match lines.recv_timeout(READY_WITHIN) {
            Ok(ready) => {
                process.ready = ready;
                return Ok(process);
            }
            Err(RecvTimeoutError::Disconnected) => "it ended",
            Err(RecvTimeoutError::Timeout) => "it took too long",
        };
        Err(StartError::NotReady {
            name: name.to_owned(),
            cause,
            said: last_words(&said),
        })
    }

    /// Its name in the demo.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its ready line told.
    pub const fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal: what becomes of it then is the caller's business.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// How it ended; none where it still runs after `within`.
    pub fn wait_for_end(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(LOOK);
        }
    }

    /// Asks it to stop, without waiting.
    pub fn ask_to_stop(&mut self) {
        if self.is_running() {
            // It may end between the question and the signal; then there is nothing to stop. One
            // that was frozen hears nothing before it goes on.
            let _ = self.signal(Signal::TERM);
            let _ = self.signal(Signal::CONT);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.ask_to_stop();
        if self.wait_for_end(STOP_WITHIN).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Ready {
    /// Reads a ready line; none where the line is another one.
    pub fn read(line: &str) -> Option<Self> {
        if line == LAB_READY {
            return Some(Self::default());
        }
        if let Some(address) = line.strip_prefix("levee registry: ready on ") {
            return Some(Self {
                registry: Some(address.trim().parse().ok()?),
                ..Self::default()
            });
        }
        let mut ready = Self::default();
        for part in line.strip_prefix("levee: ready, ")?.split(", ") {
            match part.trim().split_once(' ') {
                Some(("site", address)) => ready.site = Some(address.to_owned()),
                Some(("admin", address)) => {
                    ready.admin = Some(address.trim_start_matches("http://").parse().ok()?);
                }
                Some(_) | None => {}
            }
        }
        Some(ready)
    }
}

/// Copies all that a process prints, and hands over its ready line.
fn follow(stdout: Option<ChildStdout>, mut copy: File, ready: &Sender<Ready>) {
    let Some(stdout) = stdout else { return };
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { return };
        if let Some(found) = Ready::read(&line) {
            // Only the first one is waited for.
            let _ = ready.send(found);
        }
        // A full disk must not stop the reading: the process would block on a full pipe.
        let _ = writeln!(copy, "{line}");
    }
}

fn last_words(log: &Path) -> String {
    const LINES: usize = 12;
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (tempfile::TempDir, Result<Process, StartError>) {
        let logs = tempfile::tempdir().unwrap();
        let started = Process::start("test", Path::new("/bin/sh"), &["-c", script], logs.path());
        (logs, started)
    }

    #[test]
    fn ready_lines_are_read() {
        let line = "levee: ready, site http://news.localhost:8080, admin http://127.0.0.1:9100";
        let ready = Ready::read(line).unwrap();
        assert_eq!(ready.site.unwrap(), "http://news.localhost:8080");
        assert_eq!(ready.admin.unwrap().port(), 9100);
        let ready = Ready::read("levee registry: ready on 127.0.0.1:7070").unwrap();
        assert_eq!(ready.registry.unwrap().port(), 7070);
        assert_eq!(Ready::read("levee: draining"), None);
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let script = "echo 'levee registry: ready on 127.0.0.1:7'; exec sleep 1000";
        let (_logs, started) = shell(script);
        let mut process = started.unwrap();
        assert!(process.is_running());
        let folder = PathBuf::from(format!("/proc/{}", process.child.id()));
        assert!(folder.exists());
        drop(process);
        assert!(!folder.exists());
    }

    #[test]
    fn a_process_that_ends_early_is_quoted() {
        let (_logs, started) = shell("echo 'site.folder is missing' >&2; exit 2");
        let error = started.unwrap_err().to_string();
        assert!(error.contains("it ended"), "{error}");
        assert!(error.contains("site.folder is missing"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let logs = tempfile::tempdir().unwrap();
        let missing = Path::new("/nonexistent/levee");
        let error = Process::start::<&str>("news", missing, &[], logs.path()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/levee"));
    }
}
