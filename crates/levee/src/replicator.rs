//! Has copies of hot resources made at our rescue servers (H3).
//!
//! ```text
//!   Brain ──CopyOrder──▶ queue ─▶ a few at a time ─▶ push or pull ──▶ the rescue server
//!     ▲                                │ a page: what is embedded in it?
//!     └── CopyEnded, EmbeddedFound ◀───┘
//! ```
//!
//! Nothing is decided here: what is worth a copy, and where, the Brain knows. And nothing here is
//! in a visitor's way: what is sent is read from our own cores as a rescue server would read it,
//! so it passes the pacer as a fetch; the queue is bounded, few copies run at a time, and each has
//! a deadline. What does not find room is told as failed, and ordered again if it is still hot.

mod look;
mod page;
mod places;
mod push;
mod renewals;
mod rewritten;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use levee_control::{CopyMeans, CopyOrder, CopyOutcome, Embedded, Input, RoutePlan};
use levee_proxy::{Front, Publisher};
use levee_vocab::{ByteRate, FetchKey, HostName, LinkId, WebAddress};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::rescue_link::LinkCharge;
use crate::settings::CopiedLinks;
use push::{Errands, Trouble};
use renewals::Renewals;

/// Orders that wait. The Brain gives a few at a time for each of at most 128 rescue servers.
const QUEUE_MAX: usize = 256;
/// Time for one copy: 1.6 MB over a link of 54 kB/s. What takes longer the Brain has given up.
const COPY_TIME_MAX: Duration = Duration::from_secs(30);

/// What became of copies, for the figures.
#[derive(Debug, Default)]
pub struct CopyCounts {
    held: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFigures {
    /// Copies that rescue servers hold because of us.
    pub held: u64,
    /// Those that they would not keep.
    pub refused: u64,
    /// Those that came to nothing.
    pub failed: u64,
    /// Bytes of pushed responses.
    pub bytes: u64,
}

impl CopyFigures {
    /// What became of copies, by name.
    pub fn by_end(&self) -> BTreeMap<&'static str, u64> {
        BTreeMap::from([
            ("held", self.held),
            ("refused", self.refused),
            ("failed", self.failed),
        ])
    }
}

impl CopyCounts {
    fn note(&self, outcome: CopyOutcome) {
        let counter = match outcome {
            CopyOutcome::Held => &self.held,
            CopyOutcome::Refused => &self.refused,
            CopyOutcome::Failed | CopyOutcome::Late => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn note_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Reads them.
    pub fn read(&self) -> CopyFigures {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CopyFigures {
            held: value(&self.held),
            refused: value(&self.refused),
            failed: value(&self.failed),
            bytes: value(&self.bytes),
        }
    }
}

/// A rescue server, as a place to send copies to.
#[derive(Clone, Debug)]
struct Member {
    link: LinkId,
    alias: WebAddress,
    address: SocketAddr,
    key: FetchKey,
}

/// What is to be done.
struct Job {
    errand: What,
    member: Member,
}

/// What is to be done for one rescue server.
enum What {
    /// What the Brain has ordered.
    Order(CopyOrder),
    /// It has fetched the page at this URL that it was sent rewritten.
    SendAgain(String),
}

/// Takes orders. See the file header.
#[derive(Debug)]
pub struct Replicator {
    jobs: mpsc::Sender<(LinkId, Job)>,
    members: BTreeMap<LinkId, Member>,
    link: Arc<LinkRate>,
    renewals: Arc<Renewals>,
    counts: Arc<CopyCounts>,
}

/// Whose resources are copied.
#[derive(Clone, Debug)]
pub struct CopiedSite {
    /// The name and port by which its rescue servers fetch.
    pub web: WebAddress,
    /// The port at which visitors come by HTTPS, where they do.
    pub https: Option<u16>,
    /// Its other names.
    pub names: Vec<HostName>,
    /// What becomes of the links of a page that is pushed.
    pub links: CopiedLinks,
    /// Who signs what is pushed; none where nothing is signed.
    pub publisher: Option<Arc<Publisher>>,
}

/// What copies are made of, and what it may cost.
pub struct Copying {
    site: watch::Receiver<CopiedSite>,
    link: ByteRate,
    charge: LinkCharge,
}

impl Copying {
    /// Of the resources of `site`, as it is now; `link` is B until the Brain is told another, and
    /// `charge` is told of bytes that the cores do not see.
    pub const fn new(
        site: watch::Receiver<CopiedSite>,
        link: ByteRate,
        charge: LinkCharge,
    ) -> Self {
        Self { site, link, charge }
    }
}

/// B as the Brain knows it, configured or measured.
#[derive(Debug)]
struct LinkRate(AtomicU64);

/// Time for which the longest copy may fill the link: so eight of them, and what else the link
/// carries, are done before the first is given up and its rescue server taken for slow.
const FILLING_MAX: Duration = Duration::from_secs(3);

impl LinkRate {
    fn set(&self, rate: ByteRate) {
        self.0.store(rate.as_bytes(), Ordering::Relaxed);
    }

    /// The longest body that is pushed: what fills the link for long is no help.
    fn body_bytes_max(&self) -> u64 {
        let rate = self.0.load(Ordering::Relaxed);
        rate.saturating_mul(FILLING_MAX.as_secs())
    }
}

impl Replicator {
    /// Begins to work for a site whose cores are `front`. What becomes of orders goes to
    /// `events`. It ends when it is dropped.
    pub fn start(front: &Arc<Front>, copying: Copying, events: mpsc::Sender<Input>) -> Self {
        let (jobs, inbox) = mpsc::channel(QUEUE_MAX);
        let counts = Arc::<CopyCounts>::default();
        let renewals = Arc::<Renewals>::default();
        let link = Arc::new(LinkRate(AtomicU64::new(copying.link.as_bytes())));
        let errands = Errands {
            front: Arc::downgrade(front),
            site: copying.site,
            link: Arc::clone(&link),
            charge: copying.charge,
            renewals: Arc::clone(&renewals),
            counts: Arc::clone(&counts),
        };
        let errands = Arc::new(errands);
        tokio::spawn(places::work(inbox, QUEUE_MAX, move |job| {
            carry_out(job, Arc::clone(&errands), events.clone())
        }));
        Self {
            jobs,
            members: BTreeMap::new(),
            link,
            renewals,
            counts,
        }
    }

    /// What became of copies.
    pub fn counts(&self) -> Arc<CopyCounts> {
        Arc::clone(&self.counts)
    }

    /// Learns from what the Brain is told who rescues us, and what our link carries; and from its
    /// plan who does not rescue us any more.
    pub fn note(&mut self, input: &Input, plan: &RoutePlan) {
        if let Input::ParametersChanged(parameters) = input {
            self.link.set(parameters.link);
        }
        if let Input::IntervalEnded(_) = input {
            let is_known = |link: &LinkId| plan.fetch_keys.iter().any(|(one, _)| one == link);
            self.members.retain(|link, _| is_known(link));
            self.renewals.retain(|link| is_known(&link));
        }
        if let Input::RescueAccepted {
            link,
            alias,
            address,
            key,
            ..
        } = input
        {
            let member = Member {
                link: *link,
                alias: alias.clone(),
                address: (*address, alias.port).into(),
                key: *key,
            };
            self.members.insert(*link, member);
        }
    }

    /// A rescue server has fetched the page at `url`. If it was sent that page rewritten, it is
    /// sent so again. The Brain need not know: a copy is held all the while. What finds no room
    /// stays as it is until it is fetched again.
    pub fn renew(&self, link: LinkId, url: &str) {
        let target = url.find('/').map_or("", |at| &url[at..]);
        let Some(member) = self.members.get(&link).cloned() else {
            return;
        };
        if self.renewals.note_fetched(link, target) {
            let errand = What::SendAgain(url.to_owned());
            if self.jobs.try_send((link, Job { errand, member })).is_err() {
                self.renewals.note_ended(link, target);
                self.counts.note(CopyOutcome::Failed);
            }
        }
    }

    /// Has the copy made. Gives what is to be told at once where it will not be.
    pub fn order(&self, order: CopyOrder) -> Option<Input> {
        let failed = |order: CopyOrder| {
            self.counts.note(CopyOutcome::Failed);
            Some(ended(&order, CopyOutcome::Failed))
        };
        let Some(member) = self.members.get(&order.link).cloned() else {
            return failed(order);
        };
        let link = order.link;
        let errand = What::Order(order.clone());
        match self.jobs.try_send((link, Job { errand, member })) {
            Ok(()) => None,
            Err(_) => failed(order),
        }
    }
}

fn ended(order: &CopyOrder, outcome: CopyOutcome) -> Input {
    Input::CopyEnded {
        link: order.link,
        url: order.url.clone(),
        outcome,
    }
}

async fn carry_out(job: Job, errands: Arc<Errands>, events: mpsc::Sender<Input>) {
    let Job { errand, member } = job;
    let order = match errand {
        What::SendAgain(url) => {
            let sending = errands.send_again(&url, &member);
            let outcome = ended_within_time(sending, &url, &member).await;
            return errands.counts.note(outcome);
        }
        What::Order(order) => order,
    };
    let making = async {
        match order.means {
            CopyMeans::Push => errands.push(&order.url, &member).await,
            CopyMeans::Pull => errands.pull(&order.url, &member).await,
        }
    };
    let outcome = ended_within_time(making, &order.url, &member).await;
    errands.counts.note(outcome);
    // The Brain is gone only when the server stops.
    let _ = events.send(ended(&order, outcome)).await;
    match order.embedded {
        Embedded::Without => {}
        Embedded::With => {
            let found = timeout(COPY_TIME_MAX, errands.embedded_in(&order.url, &member)).await;
            let resources = found.unwrap_or_default();
            let page = order.url;
            let _ = events.send(Input::EmbeddedFound { page, resources }).await;
        }
    }
}

/// What came of `making` a copy, which has so long.
async fn ended_within_time(
    making: impl Future<Output = Result<(), Trouble>>,
    url: &str,
    member: &Member,
) -> CopyOutcome {
    let (outcome, why) = match timeout(COPY_TIME_MAX, making).await {
        Ok(Ok(())) => (CopyOutcome::Held, "held".to_owned()),
        Ok(Err(trouble)) => (trouble.outcome, trouble.why),
        Err(_) => (CopyOutcome::Late, "it took too long".to_owned()),
    };
    tracing::debug!(url, to = %member.alias.host, why, "a copy");
    outcome
}
