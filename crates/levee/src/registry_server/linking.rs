//! What the owner of a registry does about its links to others.

use std::collections::BTreeSet;
use std::sync::Arc;

use levee_net::Clock;
use levee_registry::{LinkCounts, LinkId, MeshInput};
use levee_vocab::Random;
use tracing::{debug, info, warn};

use super::dialer::Dialer;
use super::peers::{Admission, OpenLink, admit};
use super::{Greeting, Server};

impl Server {
    /// Starts a task for each peer.
    pub(super) fn dial(&mut self, random: &mut Random) {
        for (peer, known) in self.peers.all().iter().enumerate() {
            let dialer = Dialer {
                peer,
                name: known.name.clone(),
                own: self.own,
                trust: Arc::clone(&self.trust),
                tally: Arc::clone(&self.tally),
                messages: Arc::clone(&self.messages),
                events: self.events.clone(),
                linked: self.linked.subscribe(),
                random: random.fork(),
            };
            self.dialers.spawn(dialer.run());
        }
    }

    /// A link could be opened: it is, unless there is one that stays.
    pub(super) fn greeted(&mut self, greeting: Greeting, peer: Option<usize>) {
        let Greeting {
            registry,
            holder,
            side,
            ..
        } = greeting;
        if let Some(peer) = peer {
            self.peers.linked(peer, (registry, holder));
        }
        match admit(self.own, (registry, holder), side, &self.links) {
            Admission::Already => {
                // Who has hung up does not want to know.
                let _ = greeting.answer.send(None);
                return;
            }
            Admission::Open(Some(old)) => self.link_closed(old),
            Admission::Open(None) => {}
        }
        self.opened += 1;
        let link = LinkId(self.opened);
        self.links.insert(
            link,
            OpenLink {
                holder,
                registry,
                side,
                outbox: greeting.outbox,
                number: 1,
                place: greeting.place,
            },
        );
        if greeting.answer.send(Some(link)).is_err() {
            return self.link_closed(link);
        }
        debug!(%registry, "link opened");
        self.tell_linked();
        self.happens(MeshInput::LinkOpened { link, side });
    }

    /// The other side says nothing more.
    pub(super) fn link_silent(&mut self, link: LinkId) {
        if let Some(open) = self.links.get(&link) {
            warn!(peer = open.place, "another registry has gone quiet");
        }
        self.link_closed(link);
    }

    /// Forgets a link; its task ends when its outbox is gone.
    pub(super) fn link_closed(&mut self, link: LinkId) {
        let Some(open) = self.links.remove(&link) else {
            return;
        };
        info!(peer = open.place, registry = %open.registry, "link to another registry ended");
        let view = self.mesh.view(Clock.now()).links.remove(&link);
        if let Some(view) = view {
            add(&mut self.counts.links, view.counts);
        }
        self.tell_linked();
        self.happens(MeshInput::LinkClosed(link));
    }

    /// Gives a link what is to be said, if it takes more.
    pub(super) fn say(&mut self, link: LinkId) {
        let Some(open) = self.links.get_mut(&link) else {
            return;
        };
        let Ok(place) = open.outbox.try_reserve() else {
            // It is busy with the last batch, and will say when it is ready.
            return;
        };
        let now = Clock.now();
        let mut batch = Vec::new();
        while batch.len() < BATCH_BYTES
            && let Some(message) = self.mesh.next_message(now, link)
        {
            open.number = open.number.wrapping_add(1).max(1);
            message.encode(open.number, &mut batch);
        }
        if !batch.is_empty() {
            place.send(batch);
        }
    }

    fn tell_linked(&self) {
        let linked: BTreeSet<_> = self.links.values().map(|open| open.holder).collect();
        self.linked.send_replace(linked);
    }
}

pub(super) const fn add(sum: &mut LinkCounts, more: LinkCounts) {
    sum.told += more.told;
    sum.told_repairs += more.told_repairs;
    sum.news += more.news;
    sum.repaired += more.repaired;
    sum.refused += more.refused;
}

/// Some hundred messages: enough for one write, little enough that a new registration does not wait
/// behind many old ones.
const BATCH_BYTES: usize = 16 * 1024;
