//! Networks and mounts of their own, for faults that would hurt this machine.
//!
//! A test that needs one plays itself again as the first process of new namespaces, among them one
//! of processes: when it ends, whatever the reason, the kernel ends all others and takes networks
//! and mounts away. This needs root; without it the test says on standard error that it was left
//! out.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
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

/// A second network, joined to this one by a cable that can be cut.
pub struct FarNetwork {
    /// Holds the network open; ends when its standard input is closed, so also when this process
    /// is killed.
    holder: Child,
}

/// This end of the cable, and the other.
pub const HERE: [u8; 4] = [10, 77, 0, 1];
pub const THERE: [u8; 4] = [10, 77, 0, 2];

impl FarNetwork {
    pub fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo up && exec cat",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let said = holder.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        let far = Self { holder };
        let pid = far.holder.id().to_string();
        run(&[
            "ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &pid,
        ]);
        run(&["ip", "address", "add", "10.77.0.1/24", "dev", "near"]);
        run(&["ip", "link", "set", "near", "up"]);
        far.ip(&["address", "add", "10.77.0.2/24", "dev", "far"]);
        far.ip(&["link", "set", "far", "up"]);
        far
    }

    /// The words that run a program over there.
    pub fn runner(&self) -> Vec<String> {
        let network = format!("--net=/proc/{}/ns/net", self.holder.id());
        vec!["/usr/bin/nsenter".to_owned(), network]
    }

    /// From now on every packet is lost, silently. The far end is taken down, so that this side
    /// still believes in its route.
    pub fn cut(&self) {
        self.ip(&["link", "set", "far", "down"]);
    }

    pub fn mend(&self) {
        self.ip(&["link", "set", "far", "up"]);
    }

    fn ip(&self, words: &[&str]) {
        let mut all = self.runner();
        all.push("ip".to_owned());
        all.extend(words.iter().map(|&word| word.to_owned()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        run(&all);
    }
}

impl Drop for FarNetwork {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It ends by itself; nothing more can be done about one that does not.
        let _ = self.holder.wait();
    }
}
