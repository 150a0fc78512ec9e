//! What other threads tell a core.

use std::sync::Arc;

use levee_control::RoutePlan;
use levee_net::{Accepted, Shared};
use levee_vocab::Timestamp;

use super::accept::Speech;
use super::drive::Fate;
use super::{Ending, Engine};
use crate::connection::Introduction;
use crate::files::Compressed;
use crate::sample::CoreNotes;
use crate::site::SiteTable;
use crate::tls::TlsOffer;

/// A message to a core.
#[derive(Debug)]
pub(crate) enum Message {
    /// Decide by this plan, with this share of its budgets.
    Adopt { plan: Arc<RoutePlan>, share: f64 },
    /// Serve these sites.
    AdoptSites(Arc<SiteTable>),
    /// Offer this to visitors who come by HTTPS from now on.
    AdoptTls(TlsOffer),
    /// A file was compressed.
    Compressed(Arc<Compressed>),
    /// Look at each file anew before it is served.
    RecheckFiles,
    /// A connection can go on.
    Wake(u64),
    /// Put there what was asked for since the last time, and what visitors brought back.
    TellArrivals(Arc<Shared<CoreNotes>>),
    /// Somebody in this process has opened a connection to this core.
    Visit(Accepted, Introduction),
    /// Accept nothing new, finish what runs until then.
    Drain(Timestamp),
    /// End at once.
    Stop,
}

impl Engine {
    pub(super) fn read_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.mailbox.take(&mut messages);
        for message in messages.drain(..) {
            self.on_message(message);
        }
        self.messages = messages;
    }

    fn on_message(&mut self, message: Message) {
        match message {
            Message::Adopt { plan, share } => self.core.adopt(plan, share),
            Message::AdoptSites(sites) => self.core.adopt_sites(sites),
            Message::AdoptTls(offer) => self.core.tls = Some(offer),
            Message::Compressed(compressed) => self.core.attach(&compressed),
            Message::RecheckFiles => {
                let now = self.core.now;
                let tables = self.core.files.iter_mut().flatten();
                tables.for_each(|table| table.recheck(now));
            }
            Message::Wake(token) => self.drive(token),
            Message::TellArrivals(place) => {
                let arrivals = self.core.arrivals.take();
                let (missing, came_back) = self.core.missing.take();
                let fetched = self.core.missing.take_fetched();
                let marked = self.core.missing.take_marked();
                place.with(|told| {
                    told.arrivals.extend(arrivals);
                    told.missing.extend(missing);
                    told.fetched.extend(fetched);
                    told.marked.add(&marked);
                    told.came_back.extend(came_back);
                });
                let blocks = self.core.crawlers.blocks(self.core.now) as u64;
                self.core.counters.crawler_blocks.set(blocks);
                self.count_held_up();
            }
            Message::Visit(accepted, introduction) => {
                self.admit(accepted, Speech::Http, introduction);
            }
            Message::Drain(until) => self.drain(until),
            Message::Stop => self.ending = Ending::Now,
        }
    }

    fn drain(&mut self, until: Timestamp) {
        self.stop_accepting();
        self.ending = Ending::Draining(until);
        for token in self.connections.tokens() {
            if self
                .connections
                .find(token)
                .is_some_and(|one| one.is_idle())
            {
                self.close(token, Fate::Close);
            }
            self.leave_session(token);
        }
    }
}
