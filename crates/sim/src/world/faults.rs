//! What can go wrong in a world, on purpose.

use std::time::Duration;

use crate::world::event::{Arrival, Event};
use crate::world::links::{ConnectionId, EndPhase, Side};
use crate::world::network::Place;
use crate::world::registry::Directory;
use crate::world::request::RequestId;
use crate::world::site::{Job, Process, Running, Voice};
use crate::world::{RegistryState, SiteId, World};

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// SIGKILL: its host closes its connections.
    Killed,
    /// The whole host is gone: nobody is told.
    PoweredOff,
}

impl World {
    /// Ends the process of a site. Only its state folder survives.
    pub fn kill(&mut self, id: SiteId, death: Death) {
        let process = match death {
            Death::Killed => Process::Killed,
            Death::PoweredOff => Process::PoweredOff,
        };
        let before = std::mem::replace(&mut self.sites[id.0].process, process);
        let (running, held) = match before {
            Process::Killed | Process::PoweredOff => return,
            Process::Up(running) => (running, Vec::new()),
            Process::Frozen(running, held) => (running, held),
        };
        for request in requests_of(*running) {
            self.fail(request);
        }
        for event in held {
            self.happen(event);
        }
        let life = self.sites[id.0].life;
        // Whatever the dead process planned is void, also before another one starts.
        self.sites[id.0].life += 1;
        if death == Death::Killed {
            self.close_links_of(id, life);
        }
    }

    /// Starts a site again that was killed or powered off.
    pub fn restart(&mut self, id: SiteId) {
        match self.sites[id.0].process {
            Process::Killed | Process::PoweredOff => self.start(id),
            Process::Up(_) | Process::Frozen(..) => {}
        }
    }

    /// Freezes a site: its host takes connections, nobody answers.
    pub fn freeze(&mut self, id: SiteId) {
        let process = &mut self.sites[id.0].process;
        *process = match std::mem::replace(process, Process::Killed) {
            Process::Up(running) => Process::Frozen(running, Vec::new()),
            other @ (Process::Killed | Process::PoweredOff | Process::Frozen(..)) => other,
        };
    }

    /// A frozen site goes on: everything that came in the meantime is there at once.
    pub fn thaw(&mut self, id: SiteId) {
        let process = &mut self.sites[id.0].process;
        let before = std::mem::replace(process, Process::Killed);
        match before {
            Process::Frozen(running, held) => {
                *process = Process::Up(running);
                for event in held {
                    self.queue.plan(self.now, event);
                }
            }
            Process::Up(_) | Process::Killed | Process::PoweredOff => *process = before,
        }
    }

    /// The clock of a site jumps ahead.
    pub fn jump_clock(&mut self, id: SiteId, ahead: Duration) {
        self.sites[id.0].clock_ahead += ahead;
        if let Some(running) = self.sites[id.0].running_mut() {
            running.armed = None;
        }
        self.arm_deadline(id);
    }

    /// A site accepts calls for help and then says nothing, or speaks again.
    pub fn set_voice(&mut self, id: SiteId, voice: Voice) {
        self.sites[id.0].voice = voice;
    }

    /// Cuts groups of places off from each other.
    pub fn partition(&mut self, groups: &[Vec<Place>]) {
        self.network.partition(groups);
    }

    /// Ends every partition; what was sent into it arrives.
    pub fn heal(&mut self) {
        self.network.heal();
        for (from, to, event) in std::mem::take(&mut self.stuck) {
            if !self.is_given_up(&event) {
                self.carry_stuck(from, to, event);
            }
        }
    }

    /// The registry dies; what it knew is lost.
    pub fn kill_registry(&mut self) {
        self.registry_state = RegistryState::Down;
        self.registry = Directory::default();
    }

    /// The registry starts again, empty.
    pub fn restart_registry(&mut self) {
        self.registry_state = RegistryState::Up;
    }

    /// Whether nobody waits any more for a connection that could not even be opened.
    fn is_given_up(&self, event: &Event) -> bool {
        match event {
            Event::Arrives {
                what: Arrival::Message { connection, to, .. },
                ..
            } => {
                let ends = &self.connections[connection.0];
                *to == Side::Acceptor
                    && ends.acceptor.phase == EndPhase::Unborn
                    && ends.opener.phase == EndPhase::Closed
            }
            Event::Arrives {
                what:
                    Arrival::Request(_)
                    | Arrival::Ask { .. }
                    | Arrival::Order { .. }
                    | Arrival::Fetch { .. },
                ..
            }
            | Event::Inside { .. }
            | Event::Registry(_)
            | Event::VisitorComes(_)
            | Event::Answered { .. } => false,
        }
    }

    fn carry_stuck(&mut self, from: Place, to: Place, event: Event) {
        match event {
            Event::Arrives {
                what:
                    Arrival::Message {
                        connection,
                        to,
                        message,
                    },
                ..
            } => self.send_to(connection, to, message),
            Event::Arrives { .. }
            | Event::Inside { .. }
            | Event::Registry(_)
            | Event::VisitorComes(_)
            | Event::Answered { .. } => self.carry(from, to, event),
        }
    }

    fn close_links_of(&mut self, id: SiteId, life: u32) {
        for number in 0..self.connections.len() {
            let connection = ConnectionId(number);
            for side in [Side::Opener, Side::Acceptor] {
                let end = self.connections[number].end(side);
                let is_ours = end.site == id && end.life == life && end.phase != EndPhase::Unborn;
                if is_ours {
                    self.close_end(connection, side);
                }
            }
        }
    }
}

/// The requests that were inside a process.
fn requests_of(mut running: Running) -> Vec<RequestId> {
    let mut requests: Vec<RequestId> = running.parked.drain(..).collect();
    requests.extend(running.cache.take_waiting());
    let jobs = running.pacer.take_all().into_iter();
    requests.extend(jobs.filter_map(|job| match job {
        Job::Response { request, .. } => Some(request),
        // Whoever fetches gives up by itself, or sees the connection close.
        Job::Fetched { .. } => None,
    }));
    requests
}
