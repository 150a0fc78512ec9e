//! What a site does on its rescue links.

use levee_control::{Candidate, Input, LinkLoss, Rejection, RescueCall, Visitors};
use levee_vocab::{ByteRate, FetchKey, LinkId, Peers, WebAddress};

use std::time::Duration;

use crate::world::event::{Arrival, Event, Inner};
use crate::world::links::{Connection, ConnectionId, End, EndPhase, Message, Side};
use crate::world::network::Place;
use crate::world::registry::on_the_wire;
use crate::world::site::{Process, Voice, address_of};
use crate::world::{SiteId, World};

/// How long a site waits for the answer to its SHUTDOWN.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Where a site whose own visitors come by HTTPS answers by it under its aliases as well.
const HTTPS_PORT: u16 = 443;

/// What rescue servers show each other: nobody here pretends to be one.
const PEERS_KEY: FetchKey = FetchKey::from_bytes([0; 16]);

impl World {
    pub(crate) fn call_for_help(
        &mut self,
        id: SiteId,
        link: LinkId,
        candidate: &Candidate,
        call: RescueCall,
    ) {
        let interval = self.sites[id.0].settings.parameters.interval;
        self.plan_inside(id, interval * 2, Inner::CallExpired(link));
        let other = self.names.get(&candidate.site.host);
        let &other = other.expect("the registry knows only sites of this world");
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random.next_bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.random.next_bits().to_le_bytes());
        let key = FetchKey::from_bytes(bytes);
        let connection = ConnectionId(self.connections.len());
        let life = self.sites[id.0].life;
        // Which life of the other side takes the call shows when it arrives.
        let unborn = End::new(other, 0, LinkId::Inbound(0), EndPhase::Unborn);
        self.connections.push(Connection {
            opener: End::new(id, life, link, EndPhase::Calling),
            acceptor: unborn,
            key,
            beats: call.beats,
            drill: call.drill.is_some(),
        });
        if let Some(running) = self.sites[id.0].running_mut() {
            running.links.insert(link, (connection, Side::Opener));
        }
        let call = RescueCall {
            key: Some(key),
            ..call
        };
        self.send_to(connection, Side::Acceptor, Message::Sos(call));
    }

    /// The call has had its time: without an answer it is given up.
    pub(crate) fn call_expired(&mut self, id: SiteId, link: LinkId) {
        let is_calling = self.find_link(id, link).is_some_and(|(connection, side)| {
            self.connections[connection.0].end(side).phase == EndPhase::Calling
        });
        if is_calling {
            self.close_link(id, link);
            let rejection = Rejection::Unreachable;
            self.tell(id, Input::RescueRefused { link, rejection });
        }
    }

    pub(crate) fn accept_sos(
        &mut self,
        id: SiteId,
        link: LinkId,
        alias: WebAddress,
        rate: ByteRate,
    ) {
        let Some((connection, side)) = self.find_link(id, link) else {
            return;
        };
        self.connections[connection.0].end_mut(side).phase = EndPhase::Live;
        let records = &self.sites[id.0].records;
        self.watch.check_alias(self.now, id, &alias.host, records);
        self.publish_name(&alias, id);
        let address = address_of(id);
        let message = Message::Accepted {
            alias,
            address,
            rate: on_the_wire(rate),
            tls: match self.sites[id.0].settings.parameters.visitors {
                Visitors::Http => None,
                Visitors::Both | Visitors::Https => Some(HTTPS_PORT),
            },
        };
        self.send_to(connection, side.other(), message);
    }

    pub(crate) fn shut_down(&mut self, id: SiteId, link: LinkId) {
        if let Some((connection, side)) = self.find_link(id, link) {
            self.send(id, link, Message::Shutdown);
            self.connections[connection.0].end_mut(side).phase = EndPhase::Closing;
            self.plan_inside(id, CLOSE_WAIT, Inner::CloseExpired(link));
        }
    }

    /// Closes our end; the other end learns of it.
    pub(crate) fn close_link(&mut self, id: SiteId, link: LinkId) {
        let Some((connection, side)) = self.find_link(id, link) else {
            return;
        };
        if let Some(running) = self.sites[id.0].running_mut() {
            running.links.remove(&link);
        }
        self.close_end(connection, side);
    }

    /// Closes an end, whether a process holds it or not.
    pub(crate) fn close_end(&mut self, connection: ConnectionId, side: Side) {
        let end = self.connections[connection.0].end_mut(side);
        if end.phase != EndPhase::Closed {
            end.phase = EndPhase::Closed;
            self.send_to(connection, side.other(), Message::Closed);
        }
    }

    /// Sends a message of a site on one of its links, if the link still stands.
    pub(crate) fn send(&mut self, id: SiteId, link: LinkId, message: Message) {
        if self.sites[id.0].voice == Voice::Mute {
            return;
        }
        if let Some((connection, side)) = self.find_link(id, link) {
            self.send_to(connection, side.other(), message);
        }
    }

    pub(crate) fn send_to(&mut self, connection: ConnectionId, to: Side, message: Message) {
        let ends = &self.connections[connection.0];
        let (from, site) = (ends.end(to.other()).site, ends.end(to).site);
        let what = Arrival::Message {
            connection,
            to,
            message,
        };
        let event = Event::Arrives { site, what };
        if self.network.is_cut(Place::Site(from), Place::Site(site)) {
            self.stuck
                .push((Place::Site(from), Place::Site(site), event));
            return;
        }
        let at = self.now + self.network.draw_delay();
        let end = self.connections[connection.0].end_mut(to);
        end.last_arrival = end.last_arrival.max(at);
        self.queue.plan(end.last_arrival, event);
    }

    pub(crate) fn message_arrives(&mut self, connection: ConnectionId, to: Side, message: Message) {
        let end = self.connections[connection.0].end(to).clone();
        let site = &self.sites[end.site.0];
        match (&site.process, &message) {
            // No host, no answer.
            (Process::PoweredOff, _) => return,
            (Process::Killed, _) => return self.reset(connection, to, &message),
            (Process::Up(_) | Process::Frozen(..), Message::Sos(call)) => {
                let call = call.clone();
                return self.sos_arrives(connection, call);
            }
            (Process::Up(_) | Process::Frozen(..), _) if end.life != site.life => {
                return self.reset(connection, to, &message);
            }
            (Process::Up(_) | Process::Frozen(..), _) => {}
        }
        match end.phase {
            EndPhase::Unborn | EndPhase::Closed => self.reset(connection, to, &message),
            EndPhase::Calling => self.answer_arrives(connection, to, message),
            EndPhase::Live => self.word_arrives(connection, to, message),
            EndPhase::Closing => match message {
                Message::Answer => {
                    self.close_link(end.site, end.link);
                    self.tell(end.site, Input::AnswerReceived { link: end.link });
                }
                Message::Closed => self.lose(end.site, end.link),
                // Both ends said SHUTDOWN at once: each gets its answer.
                Message::Shutdown => self.send(end.site, end.link, Message::Answer),
                Message::Rate(..)
                | Message::Peers(_)
                | Message::Sos(_)
                | Message::Accepted { .. }
                | Message::Rejected => {}
            },
        }
    }

    /// Nobody holds this end: the other side is told, unless it said itself that it is gone.
    fn reset(&mut self, connection: ConnectionId, to: Side, message: &Message) {
        self.connections[connection.0].end_mut(to).phase = EndPhase::Closed;
        if *message != Message::Closed {
            self.send_to(connection, to.other(), Message::Closed);
        }
    }

    fn sos_arrives(&mut self, connection: ConnectionId, call: RescueCall) {
        let id = self.connections[connection.0].acceptor.site;
        let site = &mut self.sites[id.0];
        site.links_accepted += 1;
        let link = LinkId::Inbound(site.links_accepted);
        let life = site.life;
        if let Some(running) = site.running_mut() {
            running.links.insert(link, (connection, Side::Acceptor));
        }
        let end = End::new(id, life, link, EndPhase::Calling);
        self.connections[connection.0].acceptor = End {
            last_arrival: self.now,
            ..end
        };
        self.tell(id, Input::SosReceived { link, call });
    }

    /// Something comes to an end whose SOS is not answered yet.
    fn answer_arrives(&mut self, connection: ConnectionId, to: Side, message: Message) {
        let ends = &mut self.connections[connection.0];
        let (key, beats, drill) = (ends.key, ends.beats, ends.drill);
        let end = ends.end_mut(to);
        let (id, link) = (end.site, end.link);
        match message {
            Message::Accepted {
                alias,
                address,
                rate,
                tls,
            } => {
                end.phase = EndPhase::Live;
                let input = Input::RescueAccepted {
                    link,
                    alias,
                    address,
                    rate,
                    key,
                    beats,
                    drill,
                    tls,
                };
                self.tell(id, input);
            }
            Message::Rejected => self.refuse(id, link, Rejection::Refused),
            Message::Closed => match to {
                Side::Opener => self.refuse(id, link, Rejection::Unreachable),
                Side::Acceptor => self.lose(id, link),
            },
            Message::Sos(_)
            | Message::Rate(..)
            | Message::Peers(_)
            | Message::Answer
            | Message::Shutdown => {}
        }
    }

    fn word_arrives(&mut self, connection: ConnectionId, to: Side, message: Message) {
        let end = self.connections[connection.0].end(to);
        let (id, link) = (end.site, end.link);
        match message {
            Message::Rate(rate, carried) => {
                self.send(id, link, Message::Answer);
                let told = Input::RateReceived {
                    link,
                    rate,
                    carried,
                };
                self.tell(id, told);
            }
            Message::Peers(members) => {
                self.send(id, link, Message::Answer);
                let key = PEERS_KEY;
                let peers = Peers { key, members };
                self.tell(id, Input::PeersReceived { link, peers });
            }
            Message::Answer => self.tell(id, Input::AnswerReceived { link }),
            Message::Shutdown => {
                self.send(id, link, Message::Answer);
                self.tell(id, Input::ShutdownReceived { link });
            }
            Message::Closed => self.lose(id, link),
            Message::Sos(_) | Message::Accepted { .. } | Message::Rejected => {}
        }
    }

    fn refuse(&mut self, id: SiteId, link: LinkId, rejection: Rejection) {
        self.close_link(id, link);
        self.tell(id, Input::RescueRefused { link, rejection });
    }

    fn lose(&mut self, id: SiteId, link: LinkId) {
        self.close_link(id, link);
        let loss = LinkLoss::Closed;
        self.tell(id, Input::LinkLost { link, loss });
    }

    pub(crate) fn find_link(&self, id: SiteId, link: LinkId) -> Option<(ConnectionId, Side)> {
        let running = self.sites[id.0].running()?;
        running.links.get(&link).copied()
    }
}
