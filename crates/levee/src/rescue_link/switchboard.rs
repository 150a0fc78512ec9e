//! The one task that knows all links: accepts, spawns, forwards orders, counts and logs endings.
//!
//! When there are too many inbound links, the oldest that has not yet sent its SOS makes room: who
//! opens connections and says nothing cannot keep out who has something to say.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use levee_control::{Candidate, RescueCall};
use levee_net::Clock;
use levee_vocab::LinkId;
use levee_wire::{Ending, MessageBudget};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tracing::{debug, error, info, warn};

use super::link_task::{self, Context, LinkEnd, Report};
use super::{Order, Peer, Refusals, Saying, lost, not_rescued};
use crate::community_socket;

pub(super) struct Switchboard {
    context: Context,
    orders: mpsc::Receiver<Order>,
    refusals: Refusals,
    links: BTreeMap<LinkId, Line>,
    tasks: JoinSet<Report>,
    inbound: u64,
    /// Limits the log: a flood of bad links must not become a flood of lines.
    warnings: MessageBudget,
    warnings_left_out: u64,
}

/// One link as the switchboard sees it.
struct Line {
    address: IpAddr,
    sayings: mpsc::Sender<Saying>,
    is_greeted: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Switchboard {
    pub(super) fn new(context: Context, orders: mpsc::Receiver<Order>, refusals: Refusals) -> Self {
        Self {
            context,
            orders,
            refusals,
            links: BTreeMap::new(),
            tasks: JoinSet::new(),
            inbound: 0,
            warnings: MessageBudget::new(WARNINGS_BURST, WARNINGS_PER_SECOND),
            warnings_left_out: 0,
        }
    }

    /// Runs until all orders are carried out and nobody can give more, and all links are closed.
    pub(super) async fn run(mut self, mut listener: Option<TcpListener>) {
        let mut is_ordered = true;
        while is_ordered || !self.tasks.is_empty() {
            tokio::select! {
                accepted = accept(listener.as_ref()) => match accepted {
                    Ok((stream, address)) => self.admit(stream, address),
                    Err(failure) => {
                        self.warn(&format!("cannot accept a rescue link: {failure}"));
                        // Out of files or memory: trying again at once would only burn time.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                order = self.orders.recv(), if is_ordered => match order {
                    Some(order) => self.obey(order).await,
                    None => {
                        is_ordered = false;
                        listener = None;
                        self.drop_ungreeted();
                    }
                },
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    match ended {
                        Ok((_, report)) => {
                            self.context.purge_line.lost(report.peer.link).await;
                            self.note_end(report);
                        }
                        Err(failure) => self.note_panic(failure).await,
                    }
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, address: SocketAddr) {
        let ip = address.ip().to_canonical();
        if !self.make_room(ip) {
            self.refusals.note("too_many_links");
            self.warn(&format!(
                "rescue link from {address} refused: too many links"
            ));
            return;
        }
        // An option that the kernel does not know costs speed, not safety.
        if let Err(failure) = community_socket::prepare(&stream) {
            debug!(%address, %failure, "cannot set the options of a rescue link");
        }
        self.inbound += 1;
        let link = LinkId::Inbound(self.inbound);
        let (sayings, inbox) = mpsc::channel(SAYINGS_MAX);
        let is_greeted = Arc::new(AtomicBool::new(false));
        let peer = Peer { link, address };
        let context = self.context.clone();
        let greeted = Arc::clone(&is_greeted);
        let task = self
            .tasks
            .spawn(link_task::answer(context, stream, peer, inbox, greeted));
        debug!(%link, %address, "rescue link opened by the other side");
        self.links.insert(
            link,
            Line {
                address: ip,
                sayings,
                is_greeted,
                task,
            },
        );
    }

    /// Whether one more inbound link from `address` fits, perhaps because another was thrown out.
    fn make_room(&mut self, address: IpAddr) -> bool {
        let settings = &self.context.settings;
        let is_inbound = |link: &LinkId| matches!(link, LinkId::Inbound(_));
        let inbound = self.links.iter().filter(|(link, _)| is_inbound(link));
        let (mut all, mut of_address) = (0, 0);
        let (mut oldest, mut oldest_of_address) = (None, None);
        for (&link, line) in inbound {
            let is_waiting = !line.is_greeted.load(Ordering::Acquire);
            all += 1;
            oldest = oldest.or(is_waiting.then_some(link));
            if line.address == address {
                of_address += 1;
                oldest_of_address = oldest_of_address.or(is_waiting.then_some(link));
            }
        }
        let victim = match (
            of_address >= settings.inbound_per_address_max,
            all >= settings.inbound_max,
        ) {
            (true, _) => oldest_of_address,
            (false, true) => oldest,
            (false, false) => return true,
        };
        let line = victim.and_then(|link| self.links.remove(&link));
        if let Some(line) = &line {
            line.task.abort();
            self.refusals.note("made_room");
        }
        line.is_some()
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Call {
                link,
                candidate,
                call,
            } => self.call(link, candidate, call),
            Order::Say { link, saying } => self.say(link, saying).await,
            Order::Drop { link } => {
                if let Some(line) = self.links.remove(&link) {
                    line.task.abort();
                    info!(%link, "rescue link dropped");
                    self.context.purge_line.lost(link).await;
                }
            }
        }
    }

    fn call(&mut self, link: LinkId, candidate: Candidate, call: RescueCall) {
        let (sayings, inbox) = mpsc::channel(SAYINGS_MAX);
        let address = candidate.rescue.ip();
        let context = self.context.clone();
        let task = self
            .tasks
            .spawn(link_task::call(context, link, candidate, call, inbox));
        let line = Line {
            address,
            sayings,
            is_greeted: Arc::default(),
            task,
        };
        self.links.insert(link, line);
    }

    /// A link that is gone, or does not keep up with what it is told, is lost to the Brain. It may
    /// hear so twice, which changes nothing.
    async fn say(&mut self, link: LinkId, saying: Saying) {
        let is_said = match self.links.get(&link) {
            Some(line) => line.sayings.try_send(saying).is_ok(),
            None => false,
        };
        if is_said {
            return;
        }
        if let Some(line) = self.links.remove(&link) {
            line.task.abort();
            self.refusals.note("stuck");
            self.warn(&format!("rescue link {link} dropped: it does not keep up"));
        }
        self.context.purge_line.lost(link).await;
        // The Brain is gone only when the server stops: then nobody wants to know.
        let _ = self.context.events.send(lost(link)).await;
    }

    fn drop_ungreeted(&mut self) {
        for (link, line) in &self.links {
            let is_waiting = !line.is_greeted.load(Ordering::Acquire);
            if matches!(link, LinkId::Inbound(_)) && is_waiting {
                line.task.abort();
            }
        }
    }

    fn note_end(&mut self, report: Report) {
        let Peer { link, address } = report.peer;
        self.links.remove(&link);
        let (cause, why) = match report.end {
            LinkEnd::Session(Ending::Finished) => {
                return self.inform(&format!("rescue link {link} with {address} closed"));
            }
            LinkEnd::Session(Ending::Rejected) => {
                let text =
                    format!("rescue link {link} with {address} closed: the call was rejected");
                return self.inform(&text);
            }
            LinkEnd::Session(Ending::Failed(fault)) => (fault.cause(), fault.to_string()),
            LinkEnd::AddressRefused(refusal) => ("address_refused", refusal.to_string()),
            LinkEnd::Denied(why) => (why.cause(), why.to_string()),
            LinkEnd::NotConnected(failure) => {
                ("not_connected", format!("cannot connect: {failure}"))
            }
            LinkEnd::NoKey(failure) => {
                error!(%failure, "no randomness for a fetch key");
                ("no_key", "no randomness for a fetch key".to_owned())
            }
        };
        self.refusals.note(cause);
        self.warn(&format!("rescue link {link} with {address} dropped: {why}"));
    }

    /// A link that panicked is a bug of ours; it must not cost more than that link.
    async fn note_panic(&mut self, failure: JoinError) {
        if failure.is_cancelled() {
            return;
        }
        error!(%failure, "a rescue link failed by a fault of ours");
        let is_it = |line: &Line| line.task.id() == failure.id();
        let found = self.links.iter().find(|(_, line)| is_it(line));
        if let Some(link) = found.map(|(&link, _)| link) {
            self.links.remove(&link);
            self.refusals.note("panic");
            self.context.purge_line.lost(link).await;
            // Whether it was still calling is not known any more; the Brain ignores what does not
            // fit.
            let _ = self.context.events.send(not_rescued(link)).await;
            let _ = self.context.events.send(lost(link)).await;
        }
    }

    /// Ordinary ends are limited as well: whoever calls as fast as he can is rejected as often.
    fn inform(&mut self, text: &str) {
        match self.warnings.take(Clock.now()) {
            true => info!("{text}"),
            false => self.warnings_left_out += 1,
        }
    }

    fn warn(&mut self, text: &str) {
        if !self.warnings.take(Clock.now()) {
            self.warnings_left_out += 1;
            return;
        }
        let left_out = std::mem::take(&mut self.warnings_left_out);
        match left_out {
            0 => warn!("{text}"),
            left_out => warn!(left_out, "{text}"),
        }
    }
}

/// The next connection; waits for ever where there is no listener.
async fn accept(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// A link is told one rate an interval; this many only pile up when it cannot write.
const SAYINGS_MAX: usize = 16;
/// Enough to see what is going on, too little to fill a disk.
const WARNINGS_BURST: u32 = 50;
const WARNINGS_PER_SECOND: u32 = 5;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
