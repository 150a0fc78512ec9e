//! The front: all cores of this process, as the rest of the server sees them.
//!
//! [`Front::bind`] takes every socket first, so that a taken port stops a start before anything
//! runs; [`Bound::start`] starts the cores; then plans and sites are handed to them, and samples
//! are taken from them, without ever stopping one.

use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use levee_control::RoutePlan;
use levee_net::{
    Accepted, Clock, Inherited, ListenAddress, Listener, ListenerError, Mailbox, PortSharing,
    Sender, Shared, Socket,
};
use levee_observe::AccessRecord;
use levee_vocab::LinkId;
use thiserror::Error;

use crate::connection::Introduction;
use crate::counters::CoreCounters;
use crate::engine::{
    CodingCounters, CoreParts, CoreWaker, Door, Engine, Message, PurgeInlet, Speech,
};
use crate::fetch::Fetcher;
use crate::files::Compressor;
use crate::marks::OwnKey;
use crate::pacer::Link;
use crate::sample::{CoreNotes, Sample};
use crate::settings::{Cleartext, FrontSettings};
use crate::site::SiteTable;
use crate::tls::TlsOffer;

/// Takes access-log lines that a rescue server handed over, by the link to it. Called on a core:
/// must not block.
pub type HandedOverLog = Arc<dyn Fn(LinkId, Bytes) + Send + Sync>;

/// Why the front cannot be bound or started.
#[derive(Debug, Error)]
pub enum BindError {
    /// An address is taken, not ours, or not allowed.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// No address was given.
    #[error("no address to listen on")]
    NoAddress,
    /// The system has no file, memory or thread left.
    #[error("cannot start a core: {0}")]
    Core(#[from] io::Error),
}

/// Sockets that are bound, and nothing that runs.
#[derive(Debug)]
pub struct Bound {
    settings: FrontSettings,
    /// For each core.
    doors: Vec<Vec<Door>>,
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
}

/// What the cores are started with.
pub struct FrontParts {
    /// The first plan.
    pub plan: Arc<RoutePlan>,
    /// Our own sites.
    pub sites: Arc<SiteTable>,
    /// Cache and fetches; none where nothing is ever fetched.
    pub fetcher: Option<Fetcher>,
    /// What visitors who come by HTTPS are offered; needed where addresses for them were bound.
    pub tls: Option<TlsOffer>,
    /// The outbound link, where its rate is enforced.
    pub link: Option<Arc<Link>>,
    /// Where access-log records go, where they are wanted.
    pub log: Option<SyncSender<AccessRecord>>,
    /// Where lines that rescue servers hand over go.
    pub handed_over: Option<HandedOverLog>,
    /// Who carries out the purges that visitors send; none answers 405.
    pub purge: Option<PurgeInlet>,
}

/// The running cores. Dropping it ends them at once.
pub struct Front {
    addresses: Vec<SocketAddr>,
    cores: Vec<RunningCore>,
    link: Option<Arc<Link>>,
    told: Arc<Shared<CoreNotes>>,
    /// Connections opened from inside.
    visits: AtomicUsize,
}

/// Why this process opens a connection to its own cores, and for whom. The application hears that
/// address: it must not take for one of this machine what is read for somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// What is read goes out over the link: it is charged like that of any visitor.
    PassOn(IpAddr),
    /// Nothing leaves, so nothing is charged, counted or logged.
    Look(IpAddr),
}

struct RunningCore {
    sender: Sender<Message>,
    counters: Arc<CoreCounters>,
    thread: Option<JoinHandle<()>>,
}

impl Front {
    /// Binds every socket; those that were `inherited` are bound already, and shared by all cores.
    pub fn bind(mut settings: FrontSettings, inherited: &Inherited) -> Result<Bound, BindError> {
        if settings.listen.is_empty() {
            return Err(BindError::NoAddress);
        }
        let cores = settings.cores.max(1);
        let (mut addresses, mut tls_addresses) = (Vec::new(), Vec::new());
        let mut doors: Vec<Vec<Door>> = (0..cores).map(|_| Vec::new()).collect();
        let open = settings.listen.iter().map(|one| (one, Speech::Http));
        let tls = settings.listen_tls.iter().map(|one| (one, Speech::Https));
        for (address, speech) in open.chain(tls) {
            let introduction = match settings.proxied.contains(address) {
                true => Introduction::Awaited,
                false => Introduction::Done,
            };
            let listeners = listeners(address, cores, settings.unix_mode, inherited)?;
            let bound = listeners.first().and_then(|one| one.address().tcp());
            match speech {
                Speech::Http => addresses.extend(bound),
                Speech::Https => tls_addresses.extend(bound),
            }
            for (core, listener) in doors.iter_mut().zip(listeners) {
                core.push(Door {
                    listener,
                    speech,
                    introduction,
                });
            }
        }
        if let Cleartext::Redirected { port } = &mut settings.cleartext
            && *port == 0
        {
            *port = tls_addresses.first().map_or(443, SocketAddr::port);
        }
        Ok(Bound {
            settings,
            doors,
            addresses,
            tls_addresses,
        })
    }

    /// Where visitors are answered by TCP, with the real ports.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Hands `plan` to every core, each with its share of the budgets. `shares` are by core; a core
    /// without one gets an equal part.
    pub fn publish(&self, plan: &Arc<RoutePlan>, shares: &[f64]) {
        let equal = 1.0 / self.cores.len() as f64;
        for (number, core) in self.cores.iter().enumerate() {
            core.sender.send(Message::Adopt {
                plan: Arc::clone(plan),
                share: shares.get(number).copied().unwrap_or(equal),
            });
        }
    }

    /// Serves `sites` from now on; no connection is dropped.
    pub fn set_sites(&self, sites: &Arc<SiteTable>) {
        for core in &self.cores {
            core.sender.send(Message::AdoptSites(Arc::clone(sites)));
        }
    }

    /// Has every core look at its files anew, because somebody says that they have changed.
    pub fn recheck_files(&self) {
        for core in &self.cores {
            core.sender.send(Message::RecheckFiles);
        }
    }

    /// Offers `offer` to visitors who come by HTTPS from now on; connections that are open keep
    /// what they agreed on.
    pub fn set_tls(&self, offer: &TlsOffer) {
        for core in &self.cores {
            core.sender.send(Message::AdoptTls(offer.clone()));
        }
    }

    /// Reads all counters.
    pub fn sample(&self) -> Sample {
        let mut sample = Sample::default();
        for core in &self.cores {
            core.counters.add_to(&mut sample);
        }
        sample.link = self.link.as_ref().map(|link| link.sample(Clock.now()));
        sample
    }

    /// What the cores noted, core after core, between the last two calls of this; and has them put
    /// together what came since.
    pub fn take_notes(&self) -> CoreNotes {
        let notes = self.told.replace(CoreNotes::default());
        for core in &self.cores {
            let place = Arc::clone(&self.told);
            core.sender.send(Message::TellArrivals(place));
        }
        notes
    }

    /// Requests that each core has had, for sharing budgets out by demand.
    pub fn requests_by_core(&self) -> Vec<u64> {
        let cores = self.cores.iter();
        cores.map(|core| core.counters.requests.read()).collect()
    }

    /// Stops accepting, closes idle connections, lets what runs finish within `time`.
    pub fn drain(&self, time: Duration) {
        let until = Clock.now() + time;
        for core in &self.cores {
            core.sender.send(Message::Drain(until));
        }
    }

    /// The codings that most visitors take of late, as they stand in an Accept-Encoding field; none
    /// where nobody was looked at.
    pub fn usual_codings(&self) -> Option<String> {
        CodingCounters::usual(self.cores.iter().map(|core| &core.counters.codings))
    }

    /// A connection to one of the cores, for HTTP/1.1, which is answered like that of a visitor.
    /// It does not block.
    ///
    /// # Errors
    /// Where the system has no descriptor left.
    pub fn visit(&self, errand: Errand) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let (introduction, reader) = match errand {
            Errand::PassOn(reader) => (Introduction::Errand, reader),
            Errand::Look(reader) => (Introduction::Ourselves, reader),
        };
        let accepted = Accepted {
            socket: Socket::new(far.into()),
            peer: SocketAddr::from((reader, 0)),
        };
        let number = self.visits.fetch_add(1, Ordering::Relaxed) % self.cores.len();
        self.cores[number]
            .sender
            .send(Message::Visit(accepted, introduction));
        Ok(near)
    }

    /// Whether all cores have ended after [`Front::drain`].
    pub fn is_drained(&self) -> bool {
        let mut threads = self.cores.iter().filter_map(|core| core.thread.as_ref());
        threads.all(JoinHandle::is_finished)
    }
}

impl Bound {
    /// Where visitors will be answered by TCP, with the real ports.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The same for HTTPS.
    pub fn local_tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Starts the cores.
    pub fn start(self, parts: FrontParts) -> Result<Front, BindError> {
        let count = self.doors.len();
        let settings = Arc::new(self.settings.share_of(count));
        let mut front = Front {
            addresses: self.addresses,
            cores: Vec::with_capacity(count),
            link: parts.link.clone(),
            told: Arc::default(),
            visits: AtomicUsize::new(0),
        };
        let (compressor, compressor_thread) = Compressor::new();
        let hasher = seeded_hasher();
        let own_key = OwnKey::generate(Clock.now()).map_err(io::Error::other)?;
        for (number, doors) in self.doors.into_iter().enumerate() {
            let mailbox = Mailbox::new()?;
            let sender = mailbox.sender();
            let counters = Arc::new(CoreCounters::default());
            let core = CoreParts {
                number,
                settings: Arc::clone(&settings),
                plan: Arc::clone(&parts.plan),
                share: 1.0 / count as f64,
                sites: Arc::clone(&parts.sites),
                compressor: compressor.clone(),
                fetcher: parts.fetcher.clone(),
                waker: CoreWaker::shared(sender.clone()),
                counters: Arc::clone(&counters),
                hasher: hasher.clone(),
                own_key: own_key.clone(),
                tls: parts.tls.clone(),
                link: parts.link.clone(),
                log: parts.log.clone(),
                handed_over: parts.handed_over.clone(),
                purge: parts.purge.clone(),
            };
            let thread = start_core(core, doors, mailbox)?;
            front.cores.push(RunningCore {
                sender,
                counters,
                thread: Some(thread),
            });
        }
        let cores: Vec<_> = front.cores.iter().map(|core| core.sender.clone()).collect();
        compressor_thread.start(move |compressed| {
            for core in &cores {
                core.send(Message::Compressed(Arc::clone(&compressed)));
            }
        })?;
        Ok(front)
    }
}

/// How resources are told apart, with a seed from the operating system: who knew it could have two
/// of them taken for one.
fn seeded_hasher() -> SeedableRandomState {
    let seed = std::hash::RandomState::new().hash_one(0);
    SeedableRandomState::with_seed(seed, SharedSeed::global_random())
}

/// A listener for each of `cores`, where `address` says. Where a port can be shared each has a
/// queue of its own; a socket that was inherited, or is in the file system, has one for all.
fn listeners(
    address: &ListenAddress,
    cores: usize,
    unix_mode: u32,
    inherited: &Inherited,
) -> Result<Vec<Listener>, BindError> {
    let first = match (inherited.on(address), address) {
        (Some(listener), _) => listener?,
        (None, ListenAddress::Unix(path)) => Listener::bind_unix(path, unix_mode)?,
        (None, ListenAddress::Tcp(address)) => return Ok(sharing_port(*address, cores)?),
    };
    let mut listeners = vec![first];
    while listeners.len() < cores {
        listeners.push(listeners[0].try_clone()?);
    }
    Ok(listeners)
}

fn sharing_port(mut address: SocketAddr, cores: usize) -> Result<Vec<Listener>, ListenerError> {
    let mut listeners = Vec::with_capacity(cores);
    for number in 0..cores {
        let sharing = match number {
            0 if cores == 1 => PortSharing::Alone,
            0 => PortSharing::First,
            _ => PortSharing::Next,
        };
        let listener = Listener::bind(address, sharing)?;
        address = listener.address().tcp().unwrap_or(address);
        listeners.push(listener);
    }
    Ok(listeners)
}

/// An engine is made on its own thread, because what it holds belongs to that thread alone.
fn start_core(
    core: CoreParts,
    doors: Vec<Door>,
    mailbox: Mailbox<Message>,
) -> io::Result<JoinHandle<()>> {
    let name = format!("core-{}", core.number);
    let counters = Arc::clone(&core.counters);
    std::thread::Builder::new().name(name).spawn(move || {
        note_end(&counters, || Engine::new(core, doors, mailbox)?.run());
    })
}

/// Runs a core, and notes it where it ends before it was told to: by an error, or by a panic beside
/// the work for one connection.
fn note_end(counters: &CoreCounters, run: impl FnOnce() -> io::Result<()>) {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => tracing::error!(%error, "a core has ended; restart the server"),
        Err(_) => tracing::error!("a core has ended by a panic; restart the server"),
    }
    counters.lost.set(1);
}

impl Drop for Front {
    fn drop(&mut self) {
        for core in &self.cores {
            core.sender.send(Message::Stop);
        }
        for core in &mut self.cores {
            if let Some(thread) = core.thread.take() {
                // A core that panicked has told so itself.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_ends_untold_is_counted() {
        let lost = |run: fn() -> io::Result<()>| {
            let counters = CoreCounters::default();
            note_end(&counters, run);
            let mut sample = Sample::default();
            counters.add_to(&mut sample);
            sample.lost_cores
        };
        assert_eq!(lost(|| Ok(())), 0);
        assert_eq!(lost(|| Err(io::ErrorKind::OutOfMemory.into())), 1);
        assert_eq!(lost(|| panic!("a bug")), 1);
    }
}
