//! A second network, joined to that of the test by one cable that can be cut.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::own_world::run;

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
