//! The registry of a community on a socket (R11): `levee registry`.
//!
//! One task owns the pure `levee_registry::Registry`; each connection is a task that cuts lines,
//! asks the owner through a bounded channel, and writes the answer. A connection is limited in
//! rate, in line length and in idle time, and their number is limited, so that a bad one costs only
//! itself.

mod connection;
mod gate;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_net::Clock;
use levee_registry::{Asker, Change, Input, Output, Registry, RegistryLimits};
use levee_wire::MessageBudget;
use levee_wire::registry::{Refusal, Reply, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::community_socket;
use crate::trust::Trust;
use connection::{Connection, End};

/// What a registry on a socket needs to know.
#[derive(Clone, Debug)]
pub struct RegistryServerSettings {
    /// How much the registry takes.
    pub limits: RegistryLimits,
    /// Most connections at once.
    pub connections_max: usize,
    /// Most connections of one address at once.
    pub connections_per_address_max: usize,
    /// Longest time without a whole line.
    pub idle_max: Duration,
    /// Longest time to write one answer.
    pub write_wait: Duration,
    /// Most requests at once.
    pub requests_burst: u32,
    /// Most requests a second on average.
    pub requests_per_second: u32,
}

impl Default for RegistryServerSettings {
    fn default() -> Self {
        Self {
            limits: RegistryLimits::default(),
            connections_max: 4096,
            // Sites of one household or one small provider share an address.
            connections_per_address_max: 128,
            // Twelve registration periods: a site that is alive has long said so.
            idle_max: Duration::from_secs(120),
            write_wait: Duration::from_secs(5),
            // A site asks twice in ten seconds; a rescue server asks once for each caller.
            requests_burst: 100,
            requests_per_second: 20,
        }
    }
}

/// Answers sites on `listener` until `stop` is ready; open connections are then closed.
///
/// Dropped half-way, all its connections are closed and what it knew is forgotten.
pub async fn run(
    listener: TcpListener,
    settings: RegistryServerSettings,
    trust: Arc<Trust>,
    stop: impl Future<Output = ()>,
) {
    let (questions, inbox) = mpsc::channel(QUESTIONS_MAX);
    let server = Server {
        registry: Registry::new(settings.limits.clone()),
        settings,
        trust,
        questions,
        tasks: JoinSet::new(),
        askers: BTreeMap::new(),
        waiting: BTreeMap::new(),
        asked: 0,
        warnings: MessageBudget::new(WARNINGS_BURST, WARNINGS_PER_SECOND),
    };
    tokio::select! {
        () = server.serve(listener, inbox) => {}
        () = stop => {}
    }
}

/// A request on its way from a connection to the registry.
struct Question {
    address: IpAddr,
    request: Request,
    answer: oneshot::Sender<Reply>,
}

struct Server {
    registry: Registry,
    settings: RegistryServerSettings,
    trust: Arc<Trust>,
    questions: mpsc::Sender<Question>,
    tasks: JoinSet<End>,
    /// Who is connected, by task.
    askers: BTreeMap<Id, SocketAddr>,
    /// Who waits for an answer, by number of the request.
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    asked: u64,
    warnings: MessageBudget,
}

impl Server {
    async fn serve(mut self, listener: TcpListener, mut inbox: mpsc::Receiver<Question>) {
        loop {
            let deadline = self.registry.next_deadline();
            let wait = deadline.map(|deadline| deadline.since(Clock.now()));
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => self.admit(stream, address),
                    Err(failure) => {
                        warn!(%failure, "cannot accept a connection to the registry");
                        // Out of files or memory: trying again at once would only burn time.
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(question) = inbox.recv() => self.ask(question),
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    match ended {
                        Ok((task, end)) => self.note_end(task, &end),
                        Err(failure) => self.note_end(failure.id(), &End::Panicked),
                    }
                },
                () = sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {
                    self.happens(Input::TimerFired);
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        let ip = address.ip().to_canonical();
        let same = self
            .askers
            .values()
            .filter(|asker| asker.ip().to_canonical() == ip);
        let is_full = same.count() >= self.settings.connections_per_address_max
            || self.askers.len() >= self.settings.connections_max;
        if is_full {
            return self.warn(address, "too many connections");
        }
        // An option that the kernel does not know costs speed, not safety.
        if let Err(failure) = community_socket::prepare(&stream) {
            debug!(%address, %failure, "cannot set the options of a connection");
        }
        let parts = (self.questions.clone(), self.settings.clone());
        let trust = Arc::clone(&self.trust);
        let task = self
            .tasks
            .spawn(Connection::hold(stream, address, trust, parts));
        self.askers.insert(task.id(), address);
    }

    fn ask(&mut self, question: Question) {
        self.asked += 1;
        let connection = self.asked;
        self.waiting.insert(connection, question.answer);
        let address = question.address;
        let asker = Asker {
            connection,
            address,
        };
        let request = question.request;
        self.happens(Input::RequestReceived { asker, request });
    }

    fn happens(&mut self, input: Input) {
        for output in self.registry.handle(Clock.now(), input) {
            match output {
                Output::Answer { connection, reply } => {
                    if let Some(answer) = self.waiting.remove(&connection) {
                        // Who has hung up does not want to know.
                        let _ = answer.send(reply);
                    }
                }
                Output::Announce(change) => log(&change),
            }
        }
    }

    fn note_end(&mut self, task: Id, end: &End) {
        let Some(address) = self.askers.remove(&task) else {
            return;
        };
        match end {
            End::Closed => debug!(%address, "connection to the registry closed"),
            End::Idle => debug!(%address, "connection to the registry closed: idle"),
            End::Dropped(why) => self.warn(address, why),
            End::Panicked => self.warn(address, "a fault of ours"),
        }
    }

    fn warn(&mut self, address: SocketAddr, why: &str) {
        if self.warnings.take(Clock.now()) {
            warn!(%address, "connection to the registry dropped: {why}");
        }
    }
}

fn log(change: &Change) {
    match change {
        Change::Added(held) => {
            info!(site = %held.site, rescue = %held.rescue, free = %held.free, "site registered");
        }
        Change::Renewed(held) => debug!(site = %held.site, free = %held.free, "site renewed"),
        Change::Removed(site) => info!(%site, "site deregistered"),
        Change::Expired(site) => info!(%site, "site has gone quiet"),
    }
}

/// Said to who asks too fast, before the connection is closed.
const TOO_MANY: Reply = Reply::Refused(Refusal::TooMany);
/// Each connection has at most one question under way.
const QUESTIONS_MAX: usize = 1024;
/// Enough to see what is going on, too little to fill a disk.
const WARNINGS_BURST: u32 = 50;
const WARNINGS_PER_SECOND: u32 = 5;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
