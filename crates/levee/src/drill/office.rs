//! The running server's side of a drill: takes the order, gives the key, tells how it goes.
//!
//! The key is made for each drill and told to nobody but who asked at the admin address; a visitor
//! without it never meets a drill.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use levee_control::{BrainView, DRILL_RATE_MAX, DrillOrder, DrillRefusal, DrillStop, Reason};
use levee_net::{Clock, Shared};
use levee_trust::Role;
use levee_vocab::{FetchKey, WebAddress};
use tokio::sync::{mpsc, oneshot};

use super::account::{Account, Invitation};
use super::ledger::Ledger;
use crate::brain_task::Order;
use crate::https::HttpsPorts;
use crate::trust::Trust;
use crate::way::Scheme;

/// What an order that could not be carried out leads to: a sentence for people.
pub type Begun = Pin<Box<dyn Future<Output = Result<Invitation, String>> + Send>>;

/// What the admin address needs of drills.
pub trait DrillDesk: Send + Sync {
    /// Begins one of `rate` visits a second.
    fn begin(&self, length: Duration, rate: u32) -> Begun;

    /// How the last one goes or went. Whoever asks is there: without anybody it ends.
    fn account(&self) -> Account;

    /// Ends our own, or our part in another's; says so in a sentence.
    fn stop(&self, stop: DrillStop) -> Result<String, String>;
}

/// Where the visitors of a site come, on this machine.
#[derive(Clone, Debug)]
pub struct Doors {
    /// Its name, and the port by HTTP.
    pub site: WebAddress,
    /// By HTTP.
    pub address: SocketAddr,
    /// By HTTPS, where those who come by HTTP are sent on.
    pub secure: Option<SocketAddr>,
    /// The port by HTTPS, as seen from outside.
    pub https: HttpsPorts,
}

impl Doors {
    /// How they come now, and where: without a certificate for its name a site sends nobody on.
    fn open(&self) -> (Scheme, WebAddress, SocketAddr) {
        match (self.secure, self.https.now().site) {
            (Some(address), Some(port)) => {
                let host = self.site.host.clone();
                (Scheme::Https, WebAddress { host, port }, address)
            }
            (Some(_) | None, _) => (Scheme::Http, self.site.clone(), self.address),
        }
    }
}

/// See the file header.
pub struct DrillOffice {
    orders: mpsc::Sender<Order>,
    doors: Doors,
    trust: Arc<Trust>,
    ledger: Arc<Shared<Ledger>>,
}

impl DrillOffice {
    /// For the site behind `doors`; `orders` reach the Brain.
    pub fn new(orders: mpsc::Sender<Order>, doors: Doors, trust: Arc<Trust>) -> Self {
        Self {
            orders,
            doors,
            trust,
            ledger: Arc::default(),
        }
    }

    /// The Brain has decided something.
    pub fn note(&self, reason: &Reason) {
        let now = Clock.now();
        self.ledger.with(|ledger| ledger.note(now, reason));
    }

    /// The Brain stands as `view` says; asked for only while a drill is under way.
    pub fn learn(&self, view: impl FnOnce() -> BrainView) {
        if self.ledger.with(|ledger| ledger.account().running) {
            let view = view();
            self.ledger.with(|ledger| ledger.learn(&view));
        }
    }

    /// Why the last order led to nothing, if so.
    pub fn take_refusal(&self) -> Option<DrillRefusal> {
        self.ledger.with(Ledger::take_refusal)
    }

    /// Whether a drill is under way whose command is gone.
    pub fn is_abandoned(&self) -> bool {
        let now = Clock.now();
        self.ledger.with(|ledger| ledger.is_abandoned(now))
    }
}

impl DrillDesk for DrillOffice {
    fn begin(&self, length: Duration, rate: u32) -> Begun {
        let orders = self.orders.clone();
        let (scheme, site, address) = self.doors.open();
        // Nobody would come, and each would seem to be away.
        let excluded = self.trust.exclusion(Role::Site);
        Box::pin(async move {
            if rate == 0 || rate > DRILL_RATE_MAX {
                return Err(format!("a drill has 1 to {DRILL_RATE_MAX} visits a second"));
            }
            if let Some(why) = excluded {
                return Err(format!("no drill: {why}"));
            }
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes)
                .map_err(|error| format!("no randomness for the key of a drill: {error}"))?;
            let key = FetchKey::from_bytes(bytes);
            let (done, answer) = oneshot::channel();
            let order = Order::Drill(DrillOrder { length, key }, done);
            let is_sent = orders.send(order).await.is_ok();
            match answer.await {
                Ok(Ok(())) if is_sent => {}
                Ok(Err(why)) => return Err(format!("no drill: {why}")),
                Ok(Ok(())) | Err(_) => return Err("the server is stopping".to_owned()),
            }
            tracing::info!("drill: {rate} visits a second for {} s", length.as_secs());
            Ok(Invitation {
                key: key.to_string(),
                site: scheme.authority(&site),
                address,
                scheme,
            })
        })
    }

    fn account(&self) -> Account {
        let now = Clock.now();
        self.ledger.with(|ledger| {
            ledger.hear(now);
            ledger.account().clone()
        })
    }

    fn stop(&self, stop: DrillStop) -> Result<String, String> {
        match self.orders.try_send(Order::StopDrill(stop)) {
            Ok(()) => Ok("no drill is held or taken part in any more".to_owned()),
            Err(_) => Err("the server is busy or stopping; try again".to_owned()),
        }
    }
}
