//! Registries, the sites that register at them, and the network between them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use levee_registry::{
    Asker, Known, LinkId, Mesh, MeshInput, MeshOutput, MeshRules, RegistryLimits, Side, Version,
};
use levee_vocab::{AliasHttps, ByteRate, HostName, Random, Timestamp, WebAddress};
use levee_wire::mesh::{Message, parse};
use levee_wire::registry::{Entry, Farewell, Reply, Request};

pub const SITES: usize = 24;
const REGISTRIES: usize = 4;
pub const DELAY_MAX: Duration = Duration::from_millis(300);
/// A period, a fifth more, and the messages of one comparison.
pub const PERIOD_MAX: Duration = Duration::from_millis(2400 + 4 * 300);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    Fine,
    Storm,
}

enum Event {
    /// Registry to registry; lost where the link is gone meanwhile.
    Delivered {
        from: usize,
        to: usize,
        line: Vec<u8>,
    },
    SiteActs(usize),
    Fault,
    Woken(usize),
}

/// What a registry has accepted of a site.
#[derive(Clone, Copy)]
struct Said {
    version: Version,
    registry: usize,
    life: u32,
    over: Timestamp,
}

pub struct Town {
    pub now: Timestamp,
    pub registries: Vec<Mesh>,
    pub weather: Weather,
    pub restarts: u32,
    pub cuts: u32,
    lives: Vec<u32>,
    links: BTreeMap<(usize, usize), LinkId>,
    said: Vec<Vec<Said>>,
    /// The time for which each site goes on.
    silent_from: Vec<Timestamp>,
    /// When each registry is woken next.
    wakes: Vec<Timestamp>,
    queue: BTreeMap<(Timestamp, u64), Event>,
    planned: u64,
    repaired_before: u64,
    random: Random,
}

pub fn name(site: usize) -> HostName {
    format!("www.site{site}.example").parse().unwrap()
}

fn address(site: usize) -> IpAddr {
    Ipv4Addr::new(8, 0, 0, u8::try_from(site).unwrap()).into()
}

impl Town {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let mut town = Self {
            now: Timestamp::from_seconds(1),
            registries: (0..REGISTRIES).map(|_| mesh(&mut random)).collect(),
            weather: Weather::Fine,
            restarts: 0,
            cuts: 0,
            lives: vec![0; REGISTRIES],
            links: BTreeMap::new(),
            said: vec![Vec::new(); SITES],
            silent_from: vec![NEVER; SITES],
            wakes: vec![NEVER; REGISTRIES],
            queue: BTreeMap::new(),
            planned: 0,
            repaired_before: 0,
            random,
        };
        for site in 0..SITES {
            let after = Duration::from_millis(town.random.within(0..3000));
            town.plan(after, Event::SiteActs(site));
        }
        town.plan(Duration::from_secs(1), Event::Fault);
        town.heal();
        town
    }

    pub fn run_until(&mut self, end: Timestamp) {
        while let Some((&(at, number), _)) = self.queue.first_key_value() {
            if at > end {
                break;
            }
            let event = self.queue.remove(&(at, number)).unwrap();
            self.now = at;
            match event {
                Event::Delivered { from, to, line } => self.deliver(from, to, &line),
                Event::SiteActs(site) => {
                    self.site_acts(site);
                    self.check_that_nothing_comes_back();
                }
                Event::Fault => self.fault(),
                Event::Woken(registry) => {
                    self.wakes[registry] = NEVER;
                    self.tell(registry, MeshInput::TimerFired);
                }
            }
        }
        self.now = end;
    }

    /// All links are there again, and no site says anything more.
    pub fn heal(&mut self) {
        if self.restarts > 0 || self.cuts > 0 {
            self.sites_fall_silent();
        }
        for one in 0..REGISTRIES {
            for other in one + 1..REGISTRIES {
                self.open(one, other);
            }
        }
    }

    pub fn sites_fall_silent(&mut self) {
        self.silent_from.fill(self.now);
    }

    /// The newest that any registry knows of each site.
    pub fn newest(&self) -> Vec<Option<Version>> {
        let newest_of = |site| {
            let known = self
                .registries
                .iter()
                .map(|registry| registry.known(&name(site)));
            known
                .map(|known| known.map(|known| known.version()))
                .max()
                .flatten()
        };
        (0..SITES).map(newest_of).collect()
    }

    /// The newest that a registry has accepted of a site, if it has not restarted since and its
    /// time is not over.
    pub fn surest(&self, site: usize) -> Option<Version> {
        let lasting = self.said[site]
            .iter()
            .filter(|said| said.life == self.lives[said.registry] && said.over > self.now);
        lasting.map(|said| said.version).max()
    }

    /// Whether the time of this version has come since.
    pub fn is_over(&self, site: usize, version: Option<Version>) -> bool {
        let Some(version) = version else {
            return true;
        };
        let said = self.said[site].iter().find(|said| said.version == version);
        said.is_none_or(|said| said.over <= self.now)
    }

    /// What came by repair at all registries.
    pub fn repaired(&self) -> u64 {
        let now = self
            .registries
            .iter()
            .map(|registry| repaired(registry, self.now));
        self.repaired_before + now.sum::<u64>()
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.planned += 1;
        self.queue.insert((self.now + after, self.planned), event);
    }

    fn tell(&mut self, registry: usize, input: MeshInput) {
        for output in self.registries[registry].handle(self.now, input) {
            match output {
                MeshOutput::Answer { .. } | MeshOutput::Announce(_) => {}
                MeshOutput::CloseLink(link) => {
                    let other = (0..REGISTRIES).find(|&other| {
                        other != registry && self.links.get(&pair(registry, other)) == Some(&link)
                    });
                    let other = other.unwrap();
                    self.close(registry, other);
                    self.open(registry, other);
                }
            }
        }
        self.send_mail(registry);
        if let Some(deadline) = self.registries[registry].next_deadline()
            && deadline < self.wakes[registry]
        {
            self.wakes[registry] = deadline;
            self.plan(deadline.since(self.now), Event::Woken(registry));
        }
    }

    fn send_mail(&mut self, from: usize) {
        for link in self.registries[from].links_with_mail().collect::<Vec<_>>() {
            let to = (0..REGISTRIES)
                .find(|&to| to != from && self.links.get(&pair(from, to)) == Some(&link))
                .unwrap();
            while let Some(message) = self.registries[from].next_message(self.now, link) {
                let mut line = Vec::new();
                message.encode(1, &mut line);
                line.pop();
                let copies = match self.weather {
                    Weather::Fine => 1,
                    Weather::Storm => [0, 0, 1, 1, 1, 1, 1, 2][self.random.within(0..8) as usize],
                };
                for _ in 0..copies {
                    let after = self.random.within(1..DELAY_MAX.as_millis() as u64);
                    let line = line.clone();
                    let event = Event::Delivered { from, to, line };
                    self.plan(Duration::from_millis(after), event);
                }
            }
        }
    }

    fn deliver(&mut self, from: usize, to: usize, line: &[u8]) {
        let message = parse(line).unwrap();
        assert!(!matches!(message, Message::Unknown(_)));
        let clock = self.clock();
        if let Some(&link) = self.links.get(&pair(from, to)) {
            self.tell(
                to,
                MeshInput::MessageReceived {
                    link,
                    message,
                    clock,
                },
            );
        }
    }

    fn clock(&self) -> u64 {
        self.now.as_nanoseconds() / 1_000_000
    }

    fn site_acts(&mut self, site: usize) {
        if self.now >= self.silent_from[site] {
            return;
        }
        let registry = self.random.within(0..REGISTRIES as u64) as usize;
        let (clock, stamp) = (self.clock(), self.clock());
        let lifetime = Duration::from_secs([6, 20, 100][site % 3]);
        let farewell = Farewell {
            stamp,
            ..Farewell::new(name(site))
        };
        let web = WebAddress {
            host: name(site),
            port: 80,
        };
        let free = ByteRate::from_kilobytes(self.random.within(0..5));
        let rescue = (address(site), 7401).into();
        let entry = Entry {
            stamp,
            https: [AliasHttps::Unknown, AliasHttps::No, AliasHttps::Yes][stamp as usize % 3],
            ..Entry::new(web, rescue, free, lifetime)
        };
        let request = match self.random.chance(0.1) {
            true => Request::Deregister(farewell),
            false => Request::Register(entry),
        };
        let asker = Asker {
            connection: 1,
            address: address(site),
            clock,
        };
        let input = MeshInput::RequestReceived { asker, request };
        let answers = self.registries[registry].handle(self.now, input);
        let is_done = answers.iter().any(|output| match output {
            MeshOutput::Answer {
                reply: Reply::Registered(_) | Reply::Removed(1),
                ..
            } => true,
            MeshOutput::Answer { .. } | MeshOutput::Announce(_) | MeshOutput::CloseLink(_) => false,
        });
        if let (true, Some(known)) = (is_done, self.registries[registry].known(&name(site))) {
            let version = known.version();
            let over = match known {
                Known::Here(held) => held.expires,
                Known::Gone(departed) => departed.until,
            };
            let life = self.lives[registry];
            self.said[site].push(Said {
                version,
                registry,
                life,
                over,
            });
        }
        self.tell(registry, MeshInput::TimerFired);
        // Most renew in time, some do not.
        let after = Duration::from_millis(self.random.within(1000..9000));
        self.plan(after, Event::SiteActs(site));
    }

    fn fault(&mut self) {
        let after = Duration::from_millis(self.random.within(500..4000));
        self.plan(after, Event::Fault);
        if self.weather == Weather::Fine {
            return;
        }
        let one = self.random.within(0..REGISTRIES as u64) as usize;
        let other = (one + self.random.within(1..REGISTRIES as u64) as usize) % REGISTRIES;
        match self.random.within(0..6) {
            0 => self.restart(one),
            1..=3 if self.links.contains_key(&pair(one, other)) => {
                self.cuts += 1;
                self.close(one, other);
            }
            _ => self.open(one, other),
        }
    }

    fn restart(&mut self, registry: usize) {
        self.restarts += 1;
        for other in (0..REGISTRIES).filter(|&other| other != registry) {
            self.close(registry, other);
        }
        self.repaired_before += repaired(&self.registries[registry], self.now);
        self.lives[registry] += 1;
        self.registries[registry] = mesh(&mut self.random);
        for other in (0..REGISTRIES).filter(|&other| other != registry) {
            self.open(registry, other);
        }
    }

    fn open(&mut self, one: usize, other: usize) {
        let (low, high) = pair(one, other);
        if self.links.contains_key(&(low, high)) {
            return;
        }
        self.planned += 1;
        let link = LinkId(self.planned);
        self.links.insert((low, high), link);
        for (registry, side) in [(low, Side::Opener), (high, Side::Acceptor)] {
            self.tell(registry, MeshInput::LinkOpened { link, side });
        }
    }

    fn close(&mut self, one: usize, other: usize) {
        let Some(link) = self.links.remove(&pair(one, other)) else {
            return;
        };
        for registry in [one, other] {
            self.repaired_before += self.registries[registry]
                .view(self.now)
                .links
                .get(&link)
                .map_or(0, |link| link.counts.repaired);
            self.tell(registry, MeshInput::LinkClosed(link));
        }
    }

    /// No entry outlives what its site asked for by more than the way of a message, through as many
    /// registries as forgot it, and none is there that no site has registered.
    fn check_that_nothing_comes_back(&self) {
        let slack = DELAY_MAX * (REGISTRIES as u32 + self.restarts);
        for site in 0..SITES {
            for registry in &self.registries {
                if let Some(Known::Here(held)) = registry.known(&name(site)) {
                    let mut said = self.said[site].iter();
                    let said = said.rfind(|said| said.version == held.version()).unwrap();
                    let is_late = held.expires > said.over + slack;
                    assert!(!is_late, "{} came back at {}", name(site), self.now);
                }
            }
        }
    }
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

fn repaired(registry: &Mesh, now: Timestamp) -> u64 {
    let links = registry.view(now).links;
    links.values().map(|link| link.counts.repaired).sum()
}

const NEVER: Timestamp = Timestamp::from_nanoseconds(u64::MAX);

fn mesh(random: &mut Random) -> Mesh {
    Mesh::new(
        RegistryLimits::default(),
        MeshRules::default(),
        random.fork(),
    )
}
