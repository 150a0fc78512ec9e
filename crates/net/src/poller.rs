//! epoll: which of many sockets has something to do.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// An epoll instance and the events of its last wait.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(epoll::EventFlags);

/// Most events taken in one wait: enough to spread the cost of the call, few enough that messages
/// and timers are never far away.
const EVENTS_MAX: usize = 512;

impl Poller {
    /// A poller that watches nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(EVENTS_MAX),
        })
    }

    /// Watches a connection, edge-triggered, for everything: one call in its whole life. Who is
    /// told of readiness must read or write until the kernel says that it would block.
    pub fn watch_edge(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, source, data, flags)?)
    }

    /// Watches a listener or mailbox, level-triggered, for something to read.
    pub fn watch_level(&self, source: impl AsFd, token: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(
            &self.epoll,
            source,
            data,
            epoll::EventFlags::IN,
        )?)
    }

    /// Stops watching. Closing a file does so by itself.
    pub fn forget(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits until something happens or `timeout` is over (none: for ever). Afterwards
    /// [`Poller::events`] has what happened. An interrupted wait is an empty one.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        self.events.clear();
        let space = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, space, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Tokens and readiness of the last wait.
    pub fn events(&self) -> impl Iterator<Item = (u64, Readiness)> + '_ {
        self.events
            .iter()
            .map(|event| (event.data.u64(), Readiness(event.flags)))
    }

    /// The event at `index` of the last wait: lets a loop change itself between events.
    pub fn event(&self, index: usize) -> Option<(u64, Readiness)> {
        let event = self.events.get(index)?;
        Some((event.data.u64(), Readiness(event.flags)))
    }
}

impl Readiness {
    /// Bytes, or the end of them, can be read.
    pub fn is_readable(self) -> bool {
        use epoll::EventFlags as Flags;
        self.0
            .intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR)
    }

    /// What can be read now is the last: nothing is told after this event.
    pub fn is_last(self) -> bool {
        use epoll::EventFlags as Flags;
        self.0.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR)
    }

    /// Bytes can be written.
    pub fn is_writable(self) -> bool {
        self.0.contains(epoll::EventFlags::OUT)
    }

    /// The connection is dead in both directions: nothing that is sent will arrive.
    pub fn is_dead(self) -> bool {
        use epoll::EventFlags as Flags;
        self.0.intersects(Flags::HUP | Flags::ERR)
    }
}
