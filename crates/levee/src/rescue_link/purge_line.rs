//! Purges to our rescue servers: the task that runs the pure `levee_control::Purges`.
//!
//! ```text
//!   who purges ──ask──▶ ┌──────────┐ ──Say──▶ switchboard ──▶ link ──PURGE──▶ rescue server
//!   links ──came, answered, lost──▶│  Purges  │ ──report──▶ who purges
//!                       └──────────┘
//! ```
//!
//! One channel brings everything, so a rescue server that was there before a purge was wanted is
//! known before it. The task never waits for the switchboard: an order that finds no room is a lost
//! link.

use std::collections::BTreeMap;
use std::time::Duration;

use levee_control::{Confirmation, PurgeInput, PurgeOutcome, PurgeOutput, Purges};
use levee_net::Clock;
use levee_vocab::{LinkId, Purge, WebAddress};
use levee_wire::PurgeAnswer;
use tokio::sync::{mpsc, oneshot};

use super::{Order, Saying};

/// What a busy site purges at once, with room for what links tell.
const INBOX_MAX: usize = 1024;

/// A way to the task. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PurgeLine {
    inbox: mpsc::Sender<Told>,
}

/// What the task is told.
#[derive(Debug)]
enum Told {
    Asked(Purge, oneshot::Sender<Vec<Confirmation>>),
    Link(PurgeInput),
}

impl PurgeLine {
    /// Starts the task; it ends when nobody can tell it anything any more. `orders` is held weakly,
    /// so that the switchboard can end before it.
    pub(super) fn start(orders: mpsc::WeakSender<Order>) -> Self {
        let (inbox, told) = mpsc::channel(INBOX_MAX);
        tokio::spawn(run(told, orders));
        Self { inbox }
    }

    /// Has every rescue server of ours purge, and waits for their words, at most two seconds.
    ///
    /// Cancel safety: dropped half-way, the purge goes on.
    pub async fn purge(&self, purge: Purge) -> Vec<Confirmation> {
        let (answer, report) = oneshot::channel();
        // The task is gone only when the server stops: then nobody rescues us any more.
        if self.inbox.send(Told::Asked(purge, answer)).await.is_err() {
            return Vec::new();
        }
        report.await.unwrap_or_default()
    }

    /// The rescue server `site` helps us by this link. To be told before the Brain knows.
    pub(super) async fn came(&self, link: LinkId, site: WebAddress) {
        self.tell(PurgeInput::ServerCame { link, site }).await;
    }

    /// The rescue server answered a purge.
    pub(super) async fn answered(&self, link: LinkId, answer: PurgeAnswer) {
        let outcome = match answer {
            PurgeAnswer::Done { objects } => PurgeOutcome::Confirmed { objects },
            PurgeAnswer::Refused => PurgeOutcome::Refused,
        };
        self.tell(PurgeInput::Answered { link, outcome }).await;
    }

    /// The link is gone, whoever it was with.
    pub(super) async fn lost(&self, link: LinkId) {
        self.tell(PurgeInput::ServerLost { link }).await;
    }

    async fn tell(&self, input: PurgeInput) {
        // As above.
        let _ = self.inbox.send(Told::Link(input)).await;
    }
}

async fn run(mut told: mpsc::Receiver<Told>, orders: mpsc::WeakSender<Order>) {
    let mut desk = Desk {
        purges: Purges::default(),
        orders,
        answers: BTreeMap::new(),
        asked: 0,
    };
    loop {
        let deadline = desk.purges.next_deadline();
        let wait = deadline.map(|deadline| deadline.since(Clock.now()));
        let input = tokio::select! {
            told = told.recv() => match told {
                Some(Told::Asked(purge, answer)) => desk.take(purge, answer),
                Some(Told::Link(input)) => input,
                None => return,
            },
            () = tokio::time::sleep(wait.unwrap_or(Duration::MAX)), if wait.is_some() => {
                PurgeInput::TimerFired
            }
        };
        desk.handle(input);
    }
}

struct Desk {
    purges: Purges,
    orders: mpsc::WeakSender<Order>,
    answers: BTreeMap<u64, oneshot::Sender<Vec<Confirmation>>>,
    asked: u64,
}

impl Desk {
    fn take(&mut self, purge: Purge, answer: oneshot::Sender<Vec<Confirmation>>) -> PurgeInput {
        self.asked += 1;
        let number = self.asked;
        self.answers.insert(number, answer);
        PurgeInput::Asked { number, purge }
    }

    fn handle(&mut self, input: PurgeInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for output in self.purges.handle(Clock.now(), input) {
                match output {
                    PurgeOutput::Send { link, purge } => {
                        let saying = Saying::Purge(purge);
                        let orders = self.orders.upgrade();
                        let said = orders
                            .and_then(|orders| orders.try_send(Order::Say { link, saying }).ok());
                        if said.is_none() {
                            inputs.push(PurgeInput::ServerLost { link });
                        }
                    }
                    PurgeOutput::Report { number, servers } => {
                        if let Some(answer) = self.answers.remove(&number) {
                            // Who asked may have left.
                            let _ = answer.send(servers);
                        }
                    }
                }
            }
        }
    }
}
