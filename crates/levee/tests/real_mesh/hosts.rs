//! Hosts as network namespaces, each with a cable to one switch that can be pulled out.
//!
//! ```text
//!   host 1 ── 10.90.0.1 ──┐
//!   host 2 ── 10.90.0.2 ──┼── switch
//!   host 3 ── 10.90.0.3 ──┘
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::own_world::run;

/// One host. Dropped, its network is gone.
pub struct Host {
    /// Holds the network open; ends when its standard input is closed, so also when this process
    /// is killed.
    holder: Child,
    number: u8,
}

/// So many hosts on a switch.
pub fn hosts(count: u8) -> Vec<Host> {
    run(&words("ip link add switch type bridge"));
    run(&words("ip link set switch up"));
    (1..=count).map(Host::new).collect()
}

impl Host {
    fn new(number: u8) -> Self {
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sh", "-c", "ip link set lo up && echo up && cat"]);
        holder.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        let mut line = String::new();
        let said = holder.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        let host = Self { holder, number };
        let (id, address) = (host.holder.id(), host.address());
        let add = format!("ip link add r{number} type veth peer name eth0 netns {id}");
        run(&words(&add));
        run(&words(&format!("ip link set r{number} master switch up")));
        host.run(&format!("ip address add {address}/24 dev eth0"));
        host.run("ip link set eth0 up");
        host
    }

    /// Its address for the other hosts.
    pub fn address(&self) -> IpAddr {
        Ipv4Addr::new(10, 90, 0, self.number).into()
    }

    /// The words that run a program there; it becomes that program.
    pub fn runner(&self) -> Vec<String> {
        let network = format!("--net=/proc/{}/ns/net", self.holder.id());
        vec!["nsenter".to_owned(), network]
    }

    /// Does `work` as somebody on that host.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let network = File::open(format!("/proc/{}/ns/net", self.holder.id())).unwrap();
        thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(network.as_fd(), kind).unwrap();
            work()
        })
    }

    /// From now on every packet to and from it is lost, silently: the far end of its cable is out.
    pub fn pull_cable(&self) {
        run(&words(&format!("ip link set r{} down", self.number)));
    }

    /// Plugs the cable in again.
    pub fn plug_cable(&self) {
        run(&words(&format!("ip link set r{} up", self.number)));
    }

    fn run(&self, command: &str) {
        let runner = self.runner();
        let runner = runner.iter().map(String::as_str);
        let all: Vec<&str> = runner.chain(command.split(' ')).collect();
        run(&all);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It ends by itself; nothing more can be done about one that does not.
        let _ = self.holder.wait();
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}
