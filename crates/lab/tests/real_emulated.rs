//! `levee lab run` at its edges: who may, what is missing, and what stays when it is killed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use levee_lab::processes::levee_beside;

const LAB: &str = env!("CARGO_BIN_EXE_levee-lab");

fn output(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says past libtest, which keeps what a test that passes prints, that a test was left out.
fn leave_out(test: &str) {
    let mut loud = std::io::stderr();
    writeln!(loud, "LEFT OUT, needs root: {test}").unwrap();
}

#[test]
fn an_unknown_experiment_is_refused_before_anything_is_started() {
    let (output, said) = output(Command::new(LAB).args(["run", "slashdot"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("there is no experiment `slashdot`; there are: dotslash-dsl"),
        "{said}"
    );
}

#[test]
fn whoever_is_not_root_is_told_why_it_must_be() {
    if !is_root() {
        return leave_out("whoever_is_not_root_is_told_why_it_must_be");
    }
    let folder = tempfile::tempdir().unwrap();
    // Somebody else must be able to run it, and to write his report.
    let lab = folder.path().join("levee-lab");
    fs::copy(LAB, &lab).unwrap();
    fs::write(folder.path().join("levee"), "").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), open).unwrap();
    let (output, said) = output(
        Command::new(&lab)
            .args(["run", "dotslash-dsl"])
            .current_dir(folder.path())
            .uid(65534),
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(said.starts_with("levee lab run: this needs root"), "{said}");
}

#[test]
fn a_missing_tool_is_named_with_its_package() {
    if !is_root() {
        return leave_out("a_missing_tool_is_named_with_its_package");
    }
    // Where not even /usr/sbin has tools.
    let folder = tempfile::tempdir().unwrap();
    let (output, said) = output(
        Command::new("unshare")
            .args(["--mount", "sh", "-c"])
            .arg("mount -t tmpfs none /usr/sbin && exec \"$0\" run dotslash-dsl --levee \"$0\"")
            .arg(LAB)
            .env("PATH", "/usr/bin:/bin")
            .current_dir(folder.path()),
    );
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("install Debian's package iproute2"), "{said}");
}

#[test]
fn nothing_is_left_of_a_run_that_was_killed_or_interrupted() {
    if !is_root() {
        return leave_out("nothing_is_left_of_a_run_that_was_killed_or_interrupted");
    }
    let killed = Run::start();
    let folder = killed.folder();
    killed.end_by("KILL");
    // Only its folder stays, until the next run finds that its owner is no more.
    assert!(Path::new(&folder).exists());
    let interrupted = Run::start();
    assert!(!Path::new(&folder).exists());
    let folder = interrupted.folder();
    interrupted.end_by("INT");
    assert!(!Path::new(&folder).exists());
}

/// A run whose servers are up.
struct Run {
    lab: Child,
    report: tempfile::TempDir,
    inside: Vec<u32>,
}

impl Run {
    fn start() -> Self {
        let report = tempfile::tempdir().unwrap();
        let mut lab = Command::new(LAB)
            .args(["run", "dotslash-dsl", "--out"])
            .arg(report.path())
            .arg("--levee")
            .arg(levee_beside().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first figures come when servers and visitors are at work; the line before them is
        // enough to know that networks are about to be made.
        let mut lines = BufReader::new(lab.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains("alone:"));
        let mut run = Self {
            lab,
            report,
            inside: Vec::new(),
        };
        run.inside = run.wait_for_visitors();
        // Whoever writes to a closed pipe must not be what ends the run.
        std::thread::spawn(move || lines.for_each(drop));
        run
    }

    /// Processes that descend from the lab, as soon as the load generator is among them.
    fn wait_for_visitors(&self) -> Vec<u32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let family = family_of(self.lab.id());
            if family
                .iter()
                .any(|process| words_of(*process).contains("generate"))
            {
                return family;
            }
            assert!(Instant::now() < deadline, "no visitors");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its temporary folder.
    fn folder(&self) -> String {
        let prefix = format!("levee-lab-{}-", self.lab.id());
        let all = fs::read_dir(std::env::temp_dir()).unwrap();
        let mut names = all.map(|entry| entry.unwrap().path().display().to_string());
        names.find(|name| name.contains(&prefix)).unwrap()
    }

    /// Sends it a signal, and waits until every process of it is gone.
    fn end_by(mut self, signal: &str) {
        let pid = self.lab.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.unwrap().success());
        self.lab.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while self
            .inside
            .iter()
            .any(|process| !words_of(*process).is_empty())
        {
            assert!(Instant::now() < deadline, "processes are left");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!self.report.path().join("dotslash-dsl.json").exists());
    }
}

/// The words of a process's command line; empty when it is gone.
fn words_of(process: u32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn family_of(process: u32) -> Vec<u32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(children).unwrap_or_default();
    let mut family: Vec<u32> = Vec::new();
    for child in children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
    {
        family.push(child);
        family.extend(family_of(child));
    }
    family
}
