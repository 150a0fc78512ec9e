//! Three registries as processes, forty sites that register all the time: one registry is killed
//! and started again, one is stopped for so long that the others give it up. Nobody is lost.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, park_timeout};
use std::time::{Duration, Instant};

use levee::registry_server::MeshStatus;

const SITES: usize = 40;
/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(60);

struct Registry {
    child: Child,
    listen: SocketAddr,
    admin: SocketAddr,
    peers: Vec<SocketAddr>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that nobody has; peers must know each other's before they start.
fn free_ports(count: usize) -> Vec<SocketAddr> {
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter().map(|one| one.local_addr().unwrap()).collect()
}

fn start(listen: SocketAddr, admin: SocketAddr, peers: &[SocketAddr]) -> Registry {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    command.args(["registry", "--allow-private"]);
    command.arg("--listen").arg(listen.to_string());
    command.arg("--admin").arg(admin.to_string());
    for peer in peers {
        command.arg("--peer").arg(peer.to_string());
    }
    command.env("LEVEE_LOG", "error").stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = |line: String| line.starts_with("levee registry: ready");
    assert!(lines.map(Result::unwrap).any(is_ready));
    let peers = peers.to_vec();
    Registry {
        child,
        listen,
        admin,
        peers,
    }
}

impl Registry {
    fn status(&self) -> MeshStatus {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        let request = "GET /status.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap()
    }

    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.args([signal, &self.child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }

    fn is_linked_to_all(&self) -> bool {
        let status = self.status();
        let known = |state: &str| state == "linked" || state == "self";
        status.peers.iter().all(|peer| known(&peer.state))
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        park_timeout(Duration::from_millis(20));
    }
    println!("{what}: {:.2} s", begun.elapsed().as_secs_f64());
    begun.elapsed()
}

/// A site: registers twice a second wherever somebody answers, until it is told to stop.
fn live(number: usize, registries: &[SocketAddr], stop: &AtomicBool, done: &AtomicU64) {
    let mut turn = number;
    while !stop.load(Ordering::Relaxed) {
        let line = format!(
            "1 REGISTER www.site{number}.example 80 127.0.0.1 7401 {} 60\n",
            100 + turn % 50
        );
        let registry = registries[turn % registries.len()];
        if exchange(registry, &line).is_some_and(|answer| answer.starts_with("1 200")) {
            done.fetch_add(1, Ordering::Relaxed);
        }
        turn += 1;
        park_timeout(Duration::from_millis(500));
    }
}

fn exchange(registry: SocketAddr, line: &str) -> Option<String> {
    let wait = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&registry, wait).ok()?;
    stream.set_read_timeout(Some(wait)).ok()?;
    stream.write_all(line.as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn three_registries_lose_no_site_while_one_is_killed_and_one_is_cut_off() {
    let (ports, admins) = (free_ports(3), free_ports(3));
    let mut registries: Vec<Registry> = (0..3)
        .map(|one| start(ports[one], admins[one], &ports))
        .collect();
    until("all are linked", || {
        registries.iter().all(Registry::is_linked_to_all)
    });
    let (stop, done) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let sites: Vec<_> = (0..SITES)
        .map(|number| {
            let (ports, stop, done) = (ports.clone(), Arc::clone(&stop), Arc::clone(&done));
            thread::spawn(move || live(number, &ports, &stop, &done))
        })
        .collect();
    let knows_all = |registry: &Registry| registry.status().entries == SITES;
    until("all know forty sites", || registries.iter().all(knows_all));

    registries[1].signal("-KILL");
    registries[1].child.wait().unwrap();
    assert!(knows_all(&registries[0]) && knows_all(&registries[2]));
    let Registry { listen, admin, .. } = registries[1];
    let peers = registries[1].peers.clone();
    registries[1] = start(listen, admin, &peers);
    until("the one that was killed knows all again", || {
        knows_all(&registries[1])
    });

    let linked = || registries[1].is_linked_to_all();
    until("it is linked to all again", linked);
    let before = done.load(Ordering::Relaxed);
    until("each site has registered twice more", || {
        done.load(Ordering::Relaxed) > before + 2 * SITES as u64
    });
    registries[2].signal("-STOP");
    until("the one that is stopped is given up", || {
        let given_up = |registry: &Registry| registry.status().peers[2].state == "away";
        given_up(&registries[0]) && given_up(&registries[1])
    });
    assert!(knows_all(&registries[0]) && knows_all(&registries[1]));
    stop.store(true, Ordering::Relaxed);
    sites.into_iter().for_each(|site| site.join().unwrap());
    // What was said last was said to the other two only.
    registries[2].signal("-CONT");
    until("the one that was stopped agrees with all", || {
        let agrees = |registry: &Registry| {
            let status = registry.status();
            let peers = status.peers.iter().filter(|peer| peer.state != "self");
            let mut agreed = peers.map(|peer| peer.agreed_seconds_ago.is_some());
            status.entries == SITES && agreed.all(|agreed| agreed)
        };
        registries.iter().all(agrees)
    });
    let repaired: u64 = registries.iter().map(|one| one.status().repaired).sum();
    println!(
        "{} registrations, {repaired} repaired",
        done.load(Ordering::Relaxed)
    );
    assert!(repaired >= SITES as u64, "{repaired}");
}
