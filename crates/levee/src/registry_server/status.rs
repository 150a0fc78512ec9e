//! How it stands with a registry: for its operator, as JSON.

use std::collections::BTreeMap;

use levee_net::Clock;
use levee_registry::{LinkView, Side};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::linking::add;
use super::peers::Peer;
use super::{Event, Server};

/// A registry and its mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshStatus {
    /// Number that this registry made up when it started.
    pub registry: String,
    /// Where members reach it.
    pub address: String,
    /// Since it started.
    pub uptime_seconds: f64,
    /// Sites that are registered.
    pub entries: usize,
    /// Most that there may be.
    pub entries_max: usize,
    /// Open connections of members, and links that others opened.
    pub connections: usize,
    /// Requests since the start.
    pub requests: u64,
    /// Requests that were refused, by the code of the answer.
    pub refused: BTreeMap<String, u64>,
    /// Entries that had been missed and came by comparing, since the start, from all peers.
    pub repaired: u64,
    /// The other registries.
    pub peers: Vec<PeerStatus>,
}

/// How it stands with another registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// As it was given, `host:port`; the address of one that was not named and has linked itself.
    pub peer: String,
    /// `linked`, `away` or `self`.
    pub state: String,
    /// Why it is away, in a sentence.
    pub cause: String,
    /// Its number, once it has said so.
    pub registry: String,
    /// `us` or `them`: who opened the link.
    pub opened_by: String,
    /// Since it said anything.
    pub silent_seconds: Option<f64>,
    /// Since it knew the same as we.
    pub agreed_seconds_ago: Option<f64>,
    /// Changes that it has not been told of yet.
    pub owed: usize,
    /// Names told on this link.
    pub told: u64,
    /// Of these, told because it seemed not to know them.
    pub told_repairs: u64,
    /// Names heard on this link that were news.
    pub news: u64,
    /// Of these, ones that had been missed.
    pub repaired: u64,
    /// Names heard that were refused: an address or a stamp that is not permitted here, or no room.
    pub refused: u64,
}

/// Where one can ask a registry how it stands.
#[derive(Clone)]
pub struct StatusDesk(mpsc::Sender<Event>);

impl StatusDesk {
    pub(super) const fn new(events: mpsc::Sender<Event>) -> Self {
        Self(events)
    }

    pub(super) fn events(self) -> mpsc::Sender<Event> {
        self.0
    }

    /// How it stands now; none when the registry has stopped. Dropped half-way, nothing is lost.
    pub async fn status(&self) -> Option<MeshStatus> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Event::StatusAsked(answer)).await.ok()?;
        answered.await.ok()
    }
}

impl Server {
    pub(super) fn status(&self) -> MeshStatus {
        let now = Clock.now();
        let view = self.mesh.view(now);
        let mut sum = self.counts.links;
        view.links
            .values()
            .for_each(|link| add(&mut sum, link.counts));
        let refused = self.counts.refused.iter();
        let refused = refused.map(|(refusal, count)| (refusal.code(), *count));
        let mut by_code: BTreeMap<String, u64> = BTreeMap::new();
        for (code, count) in refused {
            *by_code.entry(code.to_string()).or_default() += count;
        }
        let peers = self.peers.all().iter();
        MeshStatus {
            registry: self.own.to_string(),
            address: self.address.clone(),
            uptime_seconds: now.since(self.begun).as_secs_f64(),
            entries: view.registry.entries,
            entries_max: view.registry.entries_max,
            connections: self.askers.len(),
            requests: self.counts.requests,
            refused: by_code,
            repaired: sum.repaired,
            peers: peers
                .map(|peer| self.peer_status(peer, &view.links))
                .collect(),
        }
    }

    fn peer_status(
        &self,
        peer: &Peer,
        views: &BTreeMap<levee_registry::LinkId, LinkView>,
    ) -> PeerStatus {
        let link = self
            .links
            .iter()
            .find(|(_, open)| Some(open.registry) == peer.registry);
        let mut status = PeerStatus {
            peer: peer.name.clone(),
            registry: peer.registry.map_or_else(String::new, |id| id.to_string()),
            ..PeerStatus::default()
        };
        let Some((id, open)) = link else {
            let is_self = peer.registry == Some(self.own);
            let state = if is_self { "self" } else { "away" };
            status.state = state.to_owned();
            status.cause.clone_from(&peer.trouble);
            return status;
        };
        status.state = "linked".to_owned();
        status.opened_by = match open.side {
            Side::Opener => "us".to_owned(),
            Side::Acceptor => "them".to_owned(),
        };
        if let Some(view) = views.get(id) {
            status.silent_seconds = Some(view.silent.as_secs_f64());
            status.agreed_seconds_ago = view.agreed.map(|ago| ago.as_secs_f64());
            status.owed = view.owed;
            status.told = view.counts.told;
            status.told_repairs = view.counts.told_repairs;
            status.news = view.counts.news;
            status.repaired = view.counts.repaired;
            status.refused = view.counts.refused;
        }
        status
    }
}
