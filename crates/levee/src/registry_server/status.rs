//! How it stands with a registry: the figures for its operator.

use std::collections::BTreeMap;

use levee_net::Clock;
use levee_observe::{MeshStatus, PeerStatus, RegisteredSite, TrustStatus};
use levee_registry::{Held, LinkView, Side};
use levee_trust::Role;
use levee_vocab::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::linking::add;
use super::peers::Peer;
use super::{Event, Server};
use crate::trust::{accusations, unix_now};

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
        let mut refused = self.counts.refused.clone();
        self.tally.add_refused(&mut refused);
        let peers = self.peers.all().iter();
        let trust = self.trust.status(Role::Registry);
        MeshStatus {
            registry: self.own.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            address: self.address.clone(),
            now: unix_now().0 as f64 / 1000.0,
            uptime_seconds: now.since(self.begun).as_secs_f64(),
            entries: view.registry.entries,
            entries_max: view.registry.entries_max,
            sites: view
                .registry
                .held
                .iter()
                .map(|held| site(held, now))
                .collect(),
            connections: self.askers.len(),
            connections_max: self.settings.connections_max,
            connections_dropped: self.counts.dropped,
            requests: self.counts.requests,
            refused: by_text(refused),
            told: sum.told,
            told_repairs: sum.told_repairs,
            news: sum.news,
            repaired: sum.repaired,
            refused_from_peers: by_text(view.refused),
            bytes: self.tally.bytes(),
            peers: peers
                .map(|peer| self.peer_status(peer, &view.links))
                .collect(),
            trust: trust.map(|trust| TrustStatus {
                accusations: accusations(self.mesh.accusations()),
                ..trust
            }),
        }
    }

    fn peer_status(
        &self,
        peer: &Peer,
        views: &BTreeMap<levee_registry::LinkId, LinkView>,
    ) -> PeerStatus {
        let link = self.links.iter().find(|(_, open)| {
            peer.registry
                .is_some_and(|(_, holder)| open.holder == holder)
        });
        let mut status = PeerStatus {
            peer: peer.name.clone(),
            registry: peer
                .registry
                .map_or_else(String::new, |(number, _)| number.to_string()),
            ..PeerStatus::default()
        };
        let Some((id, open)) = link else {
            let is_self = peer.registry.is_some_and(|(number, _)| number == self.own);
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

fn site(held: &Held, now: Timestamp) -> RegisteredSite {
    RegisteredSite {
        site: held.site.host.to_string(),
        free: held.free.as_bytes(),
        seconds_left: held.expires.since(now).as_secs_f64(),
    }
}

fn by_text(counts: BTreeMap<u16, u64>) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts
        .map(|(code, count)| (code.to_string(), count))
        .collect()
}
