//! What can be looked at just now: who delivers for whom, and what visitors ask for.
//!
//! The Brain task pins it up at the end of each control interval; those who look read it. URLs are
//! a fair sample of what was asked for in the interval, so a page is looked at as often as visitors
//! get it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use levee_control::{Arrivals, BrainView, Input, OriginPhase, RoutePlan, UrlText};
use levee_vocab::{HostName, LinkId, Random, WebAddress};
use tokio::sync::watch;

use crate::way::Scheme;

/// A rescue server of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Its link.
    pub link: LinkId,
    /// Its own name.
    pub site: HostName,
    /// The name and port under which it serves us.
    pub alias: WebAddress,
    /// Where it answers.
    pub address: SocketAddr,
    /// The port at which the alias answers by HTTPS.
    pub tls: Option<u16>,
}

impl Helper {
    /// The name and port that visitors by `scheme` come to, and where that is.
    pub(super) fn door(&self, scheme: Scheme) -> (WebAddress, SocketAddr) {
        door((&self.alias, self.address), self.tls, scheme)
    }
}

/// What of an alias that answers by HTTP here, and by HTTPS at the port `tls`, visitors come to.
fn door(
    (alias, mut address): (&WebAddress, SocketAddr),
    tls: Option<u16>,
    scheme: Scheme,
) -> (WebAddress, SocketAddr) {
    let mut alias = alias.clone();
    match (scheme, tls) {
        (Scheme::Http, _) | (Scheme::Https, None) => {}
        (Scheme::Https, Some(port)) => {
            alias.port = port;
            address.set_port(port);
        }
    }
    (alias, address)
}

/// A rescue server that helps an origin which we help as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Our link to the origin.
    pub link: LinkId,
    /// The origin.
    pub origin: WebAddress,
    /// Our own alias for it: visitors ask for its pages under that name.
    pub own_alias: HostName,
    /// The name and port under which the other serves it.
    pub alias: WebAddress,
    /// Where the other answers.
    pub address: SocketAddr,
    /// The port at which that alias answers by HTTPS, where it does.
    pub tls: Option<u16>,
}

impl Neighbour {
    /// The name and port that visitors by `scheme` come to, and where that is.
    pub(super) fn door(&self, scheme: Scheme) -> (WebAddress, SocketAddr) {
        door((&self.alias, self.address), self.tls, scheme)
    }
}

/// See the file header.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Who helps us.
    pub helpers: Vec<Helper>,
    /// Who helps whom we help.
    pub neighbours: Vec<Neighbour>,
    /// Host and path of some requests of the last interval.
    pub urls: Vec<String>,
}

/// Where the scene is pinned up.
pub struct SceneBoard {
    sender: watch::Sender<Arc<Scene>>,
    doors: BTreeMap<LinkId, Doors>,
    urls: Vec<String>,
    heard: u64,
    random: Random,
}

/// Where a rescue server answers, by HTTP and at which port by HTTPS.
type Doors = (SocketAddr, Option<u16>);

/// URLs kept of an interval.
const URLS_MAX: usize = 32;

impl SceneBoard {
    /// An empty board, and its reader's end. `seed` chooses URLs.
    pub fn new(seed: u64) -> (Self, watch::Receiver<Arc<Scene>>) {
        let (sender, receiver) = watch::channel(Arc::default());
        let board = Self {
            sender,
            doors: BTreeMap::new(),
            urls: Vec::new(),
            heard: 0,
            random: Random::from_seed(seed),
        };
        (board, receiver)
    }

    /// Learns where a rescue server answers.
    pub fn note(&mut self, input: &Input) {
        if let Input::RescueAccepted {
            link,
            alias,
            address,
            tls,
            ..
        } = input
        {
            let address = SocketAddr::new(*address, alias.port);
            self.doors.insert(*link, (address, *tls));
        }
    }

    /// What the cores were asked for: each request has the same chance to be kept (reservoir
    /// sampling).
    pub fn hear(&mut self, arrivals: &[Arrivals]) {
        for arrival in arrivals.iter().filter(|one| one.text == UrlText::Whole) {
            for _ in 0..arrival.count.min(URLS_MAX as u64) {
                self.heard += 1;
                if self.urls.len() < URLS_MAX {
                    self.urls.push(arrival.url.clone());
                    continue;
                }
                let place = self.random.within(0..self.heard) as usize;
                if let Some(kept) = self.urls.get_mut(place) {
                    kept.clone_from(&arrival.url);
                }
            }
        }
    }

    /// Pins up how it stands at the end of an interval.
    pub fn pin_up(&mut self, view: &BrainView, plan: &RoutePlan) {
        let is_known = |link: &LinkId| view.rescue_servers.iter().any(|one| one.link == *link);
        self.doors.retain(|link, _| is_known(link));
        let helpers = view.rescue_servers.iter().filter_map(|server| {
            let (address, tls) = *self.doors.get(&server.link)?;
            Some(Helper {
                link: server.link,
                site: server.peer.host.clone(),
                alias: server.alias.clone(),
                address,
                tls,
            })
        });
        let scene = Scene {
            helpers: helpers.collect(),
            neighbours: neighbours(plan),
            urls: std::mem::take(&mut self.urls),
        };
        self.heard = 0;
        self.sender.send_replace(Arc::new(scene));
    }
}

fn neighbours(plan: &RoutePlan) -> Vec<Neighbour> {
    let live = plan.hosts.origins.iter();
    let live = live.filter(|origin| origin.phase == OriginPhase::Live);
    let of = |origin: &Arc<levee_control::OriginRoute>| {
        let homes = origin.homes.iter().flat_map(|homes| homes.neighbours());
        let neighbour = |home: &levee_control::Home| Neighbour {
            link: origin.link,
            origin: origin.origin.clone(),
            own_alias: origin.alias.clone(),
            alias: home.alias.clone(),
            address: home.address,
            tls: home.tls,
        };
        homes.map(neighbour).collect::<Vec<_>>()
    };
    live.flat_map(of).collect()
}
