//! Hosts as network namespaces, each with a cable to a switch, and a second one for the watch.
//!
//! ```text
//!   visitors ──┐                  ┌── gtidsl1   (tbf: 56.7 kB/s may leave)
//!              ├── switch ────────┤
//!   registry ──┘   10.80.0.0/16   └── maglev    (tbf: 2105 kB/s may leave)
//!                  10.81.0.0/24: the same hosts for the watch, without limits
//! ```
//!
//! Each host has an address in a /24 of its own, as hosts of different people do: a server that
//! looks at blocks of addresses must not take all of them for one.
//!
//! The limit of a link is a token bucket on the host's own end, so that it holds whatever the
//! server there believes. Status pages are looked at by the second cable: looking costs a link
//! nothing. Everything lives in the namespaces that `enclosure` made, and ends with them.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use levee_vocab::ByteRate;
use serde_json::Value;

use super::LabError;
use super::topology::{HostPlan, Topology};

/// A network that is up. Dropped, its hosts are gone.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
}

/// One host of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// As the topology says.
    pub plan: HostPlan,
    /// Its address for everybody.
    pub address: Ipv4Addr,
    /// Its address for the watch.
    pub watched_at: Ipv4Addr,
}

/// The checksum at the end of an Ethernet frame: on a real cable, not on one of the kernel's. It is
/// charged and counted here, because the papers count it.
const CHECKSUM_BYTES: u64 = 4;

/// What has left a host since it is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes with Ethernet heads and checksums, as the papers count.
    pub bytes: u64,
    /// Frames.
    pub frames: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
}

impl Sent {
    /// What has left since `before`.
    pub const fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            frames: self.frames - before.frames,
            dropped: self.dropped - before.dropped,
        }
    }
}

/// Lays the two switches that all networks of a run are plugged into.
pub fn lay_switches() -> Result<(), LabError> {
    let lines = "link set lo up\n\
                 link add switch type bridge\nlink set switch up\n\
                 link add watch type bridge\nlink set watch up\n\
                 address add 10.81.0.1/24 dev watch\n";
    batch(&["ip", "-batch", "-"], lines)
}

impl Network {
    /// Brings all hosts up.
    pub fn build(topology: &Topology) -> Result<Self, LabError> {
        let network = Self {
            hosts: topology
                .hosts
                .iter()
                .zip(2..)
                .map(|(plan, number)| Host {
                    plan: plan.clone(),
                    address: Ipv4Addr::new(10, 80, number, 2),
                    watched_at: Ipv4Addr::new(10, 81, 0, number),
                })
                .collect(),
        };
        for host in &network.hosts {
            batch(&["ip", "-batch", "-"], &host.cables())?;
            batch(
                &["ip", "-netns", &host.plan.name, "-batch", "-"],
                &host.inside(),
            )?;
            if let Some(link) = host.plan.link {
                host.limit(link)?;
            }
            host.make_ports_plenty()?;
        }
        Ok(network)
    }

    /// The host of this name.
    ///
    /// # Panics
    ///
    /// Where the topology has none: an experiment and its topology belong together.
    pub fn host(&self, name: &str) -> &Host {
        let mut hosts = self.hosts.iter();
        hosts
            .find(|host| host.plan.name == name)
            .expect("an experiment names only hosts of its own topology")
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let mut lines = String::new();
        for host in &self.hosts {
            // The cables first: networks go later, when the kernel finds the time.
            let number = host.number();
            let name = &host.plan.name;
            lines.push_str(&format!(
                "link delete d{number}\nlink delete w{number}\nnetns delete {name}\n"
            ));
        }
        // What stays goes with the namespaces around it.
        let _ = batch(&["ip", "-force", "-batch", "-"], &lines);
    }
}

impl Host {
    /// Words before a program that is to run on this host; it becomes that program.
    pub fn runner(&self) -> [String; 3] {
        [
            "nsenter".to_owned(),
            format!("--net=/run/netns/{}", self.plan.name),
            "--".to_owned(),
        ]
    }

    /// What has left it by its own link.
    pub fn sent(&self) -> Result<Sent, LabError> {
        let name = &self.plan.name;
        let words = match self.plan.link {
            Some(_) => vec![
                "tc", "-netns", name, "-s", "-j", "qdisc", "show", "dev", "eth0",
            ],
            None => vec![
                "ip", "-netns", name, "-s", "-j", "link", "show", "dev", "eth0",
            ],
        };
        let told: Value = serde_json::from_slice(&capture(&words)?).unwrap_or_default();
        let (counters, names) = match self.plan.link {
            Some(_) => (&told[0], ["bytes", "packets", "drops"]),
            None => (&told[0]["stats64"]["tx"], ["bytes", "packets", "dropped"]),
        };
        let count = |name: &str| counters[name].as_u64().unwrap_or_default();
        let frames = count(names[1]);
        Ok(Sent {
            bytes: count(names[0]) + frames * CHECKSUM_BYTES,
            frames,
            dropped: count(names[2]),
        })
    }

    /// Cuts its link to everybody: what is sent to it or by it is lost, and nobody is told.
    pub fn cut(&self) -> Result<(), LabError> {
        self.switch_link("down")
    }

    /// Mends its link.
    pub fn mend(&self) -> Result<(), LabError> {
        self.switch_link("up")
    }

    fn switch_link(&self, state: &str) -> Result<(), LabError> {
        let name = &self.plan.name;
        run(&["ip", "-netns", name, "link", "set", "eth0", state])
    }

    /// Its own number among the hosts, which is in the names of its cables.
    const fn number(&self) -> u8 {
        self.watched_at.octets()[3]
    }

    fn cables(&self) -> String {
        let name = &self.plan.name;
        let number = self.number();
        format!(
            "netns add {name}\n\
             link add d{number} type veth peer name eth0 netns {name}\n\
             link set d{number} master switch up\n\
             link add w{number} type veth peer name watch netns {name}\n\
             link set w{number} master watch up\n"
        )
    }

    fn inside(&self) -> String {
        format!(
            "link set lo up\n\
             address add {}/16 dev eth0\nlink set eth0 up\n\
             address add {}/24 dev watch\nlink set watch up\n",
            self.address, self.watched_at
        )
    }

    fn limit(&self, link: ByteRate) -> Result<(), LabError> {
        let rate = format!("{}bps", link.as_bytes());
        // The bucket holds what a hundredth of a second brings, and two frames at least: smaller
        // ones leave no room for the clock of the kernel, larger ones let more out in a moment.
        let burst = (link.as_bytes() / 100).max(3100).to_string();
        // A queue of a quarter of a second, as access routers have; 32 kB on the thinnest lines.
        let limit = (link.as_bytes() / 4).max(32_000).to_string();
        let checksum = CHECKSUM_BYTES.to_string();
        let name = &self.plan.name;
        let mut words = vec![
            "tc", "-netns", name, "qdisc", "add", "dev", "eth0", "root", "tbf",
        ];
        words.extend(["rate", &rate, "burst", &burst, "limit", &limit]);
        words.extend(["overhead", &checksum]);
        run(&words)
    }

    /// Thousands of connections a second from one address need all ports there are, and soon again.
    fn make_ports_plenty(&self) -> Result<(), LabError> {
        let script = "echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range; \
                      echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse; \
                      echo 4096 > /proc/sys/net/core/somaxconn";
        let runner = self.runner();
        let mut words: Vec<&str> = runner.iter().map(String::as_str).collect();
        words.extend(["sh", "-c", script]);
        run(&words)
    }
}

/// Runs a program to its good end.
pub fn run(words: &[&str]) -> Result<(), LabError> {
    capture(words).map(drop)
}

fn capture(words: &[&str]) -> Result<Vec<u8>, LabError> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(LabError::machine(words[0]))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(refused(words, &output.stderr)),
    }
}

/// Runs a program that reads its commands line by line.
fn batch(words: &[&str], lines: &str) -> Result<(), LabError> {
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(LabError::machine(words[0]))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ended early says why on its standard error.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output();
    let output = output.map_err(LabError::machine(words[0]))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(refused(words, &output.stderr)),
    }
}

fn refused(words: &[&str], said: &[u8]) -> LabError {
    LabError::Refused {
        command: words.join(" "),
        said: String::from_utf8_lossy(said).trim().to_owned(),
    }
}
