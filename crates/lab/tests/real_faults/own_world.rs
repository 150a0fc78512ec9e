//! Networks and mounts of their own, for faults that would hurt this machine.
//!
//! A test that needs one plays itself again as the first process of new namespaces, among them one
//! of processes: when it ends, whatever the reason, the kernel ends all others and takes networks
//! and mounts away. This needs root; without it the test says on standard error that it was left
//! out.
//!
//! Tests of other packages take this file by its path.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Says to a test that it plays inside.
const INSIDE: &str = "LEVEE_FAULTS_INSIDE";
/// Far more than any of these tests takes.
const PATIENT: Duration = Duration::from_secs(100);

/// Plays `test` again in a network and with mounts of its own. Whether that is here and now.
pub fn is_inside(test: &str) -> bool {
    if std::env::var(INSIDE).is_ok_and(|name| name == test) {
        run(&["ip", "link", "set", "lo", "up"]);
        return true;
    }
    if !may_make_namespaces() {
        // Past libtest, which keeps what a test that passes prints to itself.
        let mut loud = std::io::stderr();
        writeln!(loud, "LEFT OUT, needs root and namespaces: {test}").unwrap();
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare")
        .args(NAMESPACES)
        .arg(own)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, test)
        .spawn()
        .expect("unshare is installed (Debian's package `util-linux`)");
    let deadline = Instant::now() + PATIENT;
    let status = loop {
        if let Some(status) = again.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            again.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{test} failed inside: {status}");
    false
}

/// What `unshare` makes; `--kill-child` so that nothing goes on without it.
const NAMESPACES: [&str; 6] = [
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

fn may_make_namespaces() -> bool {
    let mut trial = Command::new("unshare");
    trial.args(NAMESPACES).arg("true").stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}

/// Runs a program that must succeed.
pub fn run(words: &[&str]) {
    let status = Command::new(words[0]).args(&words[1..]).status();
    let status = status.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(status.success(), "{words:?}: {status}");
}
