//! Three registries on hosts of their own, under load: one is killed, one is cut off for longer
//! than the others wait for it. No registration of a site that lives is lost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use levee_observe::MeshStatus;

use crate::hosts::{Host, hosts};
use crate::own_world::is_inside;
use crate::registries::{Plan, Registry, Talk, get, status, until};
use crate::sites::{Counts, Offers, look, offers, registration, start};

/// Sites on each host that register all the time.
const BUSY: usize = 13;
/// Sites on each host that say something once, while the cable is out: only repair carries it.
const QUIET: usize = 3;

struct Stage {
    hosts: Vec<Host>,
    registries: Vec<Registry>,
    counts: Arc<Counts>,
    sites: Vec<JoinHandle<(String, u64)>>,
    lookers: Vec<JoinHandle<()>>,
}

#[test]
fn nobody_is_lost_while_one_of_three_is_killed_and_one_is_cut_off() {
    if !is_inside("cut::nobody_is_lost_while_one_of_three_is_killed_and_one_is_cut_off") {
        return;
    }
    let mut stage = Stage::set();
    until("all are linked", || stage.all(is_linked_to_all));
    stage.fill_with_sites();
    until("all know all sites", || {
        stage.everywhere(|offers| offers.len() == 3 * BUSY)
    });
    stage.let_somebody_look();

    stage.registries[1].kill();
    stage.each_site_registers_twice();
    stage.registries[1].restart();
    until("the one that was killed knows all sites again", || {
        stage.offers(1).len() == 3 * BUSY && is_linked_to_all(&stage.status(1))
    });

    stage.says(0, "leaver", 7);
    until("all know who will leave", || {
        stage.everywhere(|offers| offers.contains_key("leaver.example"))
    });
    stage.hosts[2].pull_cable();
    until(
        "the one that is cut off is given up, and gives up all",
        || {
            let (one, other, far) = (stage.status(0), stage.status(1), stage.status(2));
            is_away(&one, 2) && is_away(&other, 2) && is_away(&far, 0) && is_away(&far, 1)
        },
    );
    stage.shows(0, "/", "1 of 2 other registries is away.");
    stage.shows(
        0,
        "/metrics",
        "levee_registry_peer_up{peer=\"10.90.0.3:7070\"} 0\n",
    );
    stage.leaves(0, "leaver");
    let mut quiet = Offers::new();
    for host in 0..3 {
        for number in 0..QUIET {
            quiet.extend(stage.says(host, &format!("quiet{host}-{number}"), 10 + number));
        }
    }
    stage.each_site_registers_twice();
    stage.hosts[2].plug_cable();
    until("all are linked again", || stage.all(is_linked_to_all));
    until("all know all sites again, and who has left", || {
        stage.everywhere(|offers| {
            offers.len() == 3 * (BUSY + QUIET)
                && quiet
                    .iter()
                    .all(|(name, free)| offers.get(name) == Some(free))
        })
    });
    stage.closes_with(quiet);
}

impl Stage {
    fn set() -> Self {
        let hosts = hosts(3);
        let peers: Vec<String> = hosts.iter().map(|host| at(host).to_string()).collect();
        let start = |host: &Host| {
            Registry::start(&Plan {
                runner: host.runner(),
                listen: at(host),
                admin: ADMIN,
                peers: peers.clone(),
            })
        };
        Self {
            registries: hosts.iter().map(start).collect(),
            hosts,
            counts: Arc::default(),
            sites: vec![],
            lookers: vec![],
        }
    }

    fn fill_with_sites(&mut self) {
        for (home, host) in self.hosts.iter().enumerate() {
            let mut registries: Vec<SocketAddr> = self.hosts.iter().map(at).collect();
            registries.rotate_left(home);
            for number in 0..BUSY {
                let name = busy(home, number);
                let site = start(host, &name, registries.clone(), &self.counts);
                self.sites.push(site);
            }
        }
    }

    /// At the first registry for the sites of the first two, which it hears of whatever happens; at
    /// the third for its own.
    fn let_somebody_look(&mut self) {
        for (place, homes) in [(0, 0..2), (2, 2..3)] {
            let names = homes.flat_map(|home| (0..BUSY).map(move |number| busy(home, number)));
            let host = &self.hosts[place];
            let looker = look(host, at(host), names.collect(), &self.counts);
            self.lookers.push(looker);
        }
    }

    fn each_site_registers_twice(&self) {
        let registered = || self.counts.registered.load(Ordering::Relaxed);
        let enough = registered() + 2 * self.sites.len() as u64;
        until("each site has registered twice more", || {
            registered() > enough
        });
    }

    /// What the sites said last is what all three tell; and the figures.
    fn closes_with(mut self, mut expected: Offers) {
        self.counts.stop();
        for site in self.sites.drain(..) {
            let (name, free) = site.join().unwrap();
            expected.insert(name, free);
        }
        self.lookers.drain(..).for_each(|one| one.join().unwrap());
        until("all three tell the last word of each site", || {
            self.everywhere(|offers| *offers == expected)
        });
        self.shows(0, "/", "all 2 other registries are linked.");
        self.shows(
            0,
            "/metrics",
            "levee_registry_peer_up{peer=\"10.90.0.3:7070\"} 1\n",
        );
        self.shows(0, "/metrics", "levee_registry_entries 48\n");
        let repaired: u64 = (0..3).map(|one| self.status(one).repaired).sum();
        let [registered, elsewhere, looks, missed] = [
            &self.counts.registered,
            &self.counts.elsewhere,
            &self.counts.looks,
            &self.counts.missed,
        ]
        .map(|count| count.load(Ordering::Relaxed));
        println!(
            "{registered} registrations, {elsewhere} of them elsewhere than at home; \
             {looks} looks missed {missed} sites; {repaired} repaired"
        );
        assert_eq!(missed, 0);
        assert!(
            elsewhere >= BUSY as u64 && looks > 40,
            "{elsewhere} {looks}"
        );
        assert!(repaired >= 3 * QUIET as u64, "{repaired}");
    }

    /// A site on that host registers once, there.
    fn says(&self, host: usize, name: &str, free: usize) -> Offers {
        let (name, free) = (format!("{name}.example"), free as u64);
        let address = self.hosts[host].address().to_string();
        let line = registration(&name, &address, free);
        assert_eq!(self.asks(host, line), ["200 OK 20"]);
        Offers::from([(name, free)])
    }

    fn leaves(&self, host: usize, name: &str) {
        let line = format!("DEREGISTER {name}.example");
        assert_eq!(self.asks(host, line), ["200 OK 1"]);
    }

    fn asks(&self, host: usize, line: String) -> Vec<String> {
        let registry = at(&self.hosts[host]);
        let asking = move || Talk::with(registry).unwrap().ask(&line).unwrap();
        self.hosts[host].spawn(asking).join().unwrap()
    }

    /// What the admin address of that registry says, to people and to Prometheus.
    fn shows(&self, host: usize, path: &'static str, words: &str) {
        let asking = self.hosts[host].spawn(|| get(ADMIN, path));
        let page = asking.join().unwrap();
        assert!(page.contains(words), "{words} is not in\n{page}");
    }

    fn offers(&self, host: usize) -> Offers {
        let registry = at(&self.hosts[host]);
        let looking = self.hosts[host].spawn(move || offers(registry));
        looking.join().unwrap().unwrap_or_default()
    }

    fn everywhere(&self, holds: impl Fn(&Offers) -> bool) -> bool {
        (0..3).all(|host| holds(&self.offers(host)))
    }

    fn status(&self, host: usize) -> MeshStatus {
        let asking = self.hosts[host].spawn(|| status(ADMIN));
        asking.join().unwrap()
    }

    fn all(&self, holds: impl Fn(&MeshStatus) -> bool) -> bool {
        (0..3).all(|host| holds(&self.status(host)))
    }
}

fn busy(home: usize, number: usize) -> String {
    format!("site{home}-{number}.example")
}

fn at(host: &Host) -> SocketAddr {
    (host.address(), 7070).into()
}

fn is_linked_to_all(status: &MeshStatus) -> bool {
    let is_known = |state: &str| state == "linked" || state == "self";
    status.peers.iter().all(|peer| is_known(&peer.state))
}

fn is_away(status: &MeshStatus, peer: usize) -> bool {
    status.peers[peer].state == "away"
}

/// Each host has a loopback of its own.
const ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7080);
