//! Aliases in DNS: each is registered before its origin is told of it, and goes when it ends.
//!
//! An alias that nobody can resolve would cost its origin every visitor that is sent there. So an
//! acceptance is held back until the name server has confirmed the alias; where it does not, or not
//! in time, the origin is declined and asks somebody else. Beside that a task makes the domain
//! equal to the aliases of the plan: those from before a restart enter again, and those that are
//! forgotten leave, however often it must try. Where no name server is set a wildcard record stands
//! for all aliases, and nothing is done here.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Input, LinkLoss, Output, Reason, RoutePlan};
use levee_dns::{Change, DomainName, Edit, Kind, Record, RemoteZone, Value, Zone};
use levee_net::Shared;
use levee_observe::AliasNamesStatus;
use levee_vocab::{HostName, LinkId};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::read_key;
use crate::rescue_link::Speaker;
use crate::settings::{AliasZone, Settings};

/// Most aliases of one update: it fits into a message many times over.
const BATCH_MAX: usize = 100;
/// Pauses after failures.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(15);

/// The aliases of this server in DNS. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AliasNames(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: SocketAddr,
    zone: RemoteZone,
    address: IpAddr,
    ttl: Duration,
    /// How long an origin waits for its answer: half of what it gives us.
    wait: Duration,
    state: Shared<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Links whose acceptance is held back.
    held: BTreeSet<LinkId>,
    registered: BTreeSet<DomainName>,
    cause: String,
    declined: u64,
}

impl AliasNames {
    /// What the settings want; none where a wildcard record stands for all. Starts a task that
    /// follows `plans`; needs a tokio runtime.
    ///
    /// # Errors
    /// A sentence: the key cannot be read.
    pub fn start(
        settings: &Settings,
        address: IpAddr,
        plans: watch::Receiver<Arc<RoutePlan>>,
    ) -> Result<Option<Self>, String> {
        let Some(aliases) = &settings.alias_zone else {
            return Ok(None);
        };
        let wait = settings.rescue.interval.min(Duration::from_secs(1));
        let zone = alias_zone(aliases)?;
        let names = Self(Arc::new(Inner {
            server: aliases.server,
            zone,
            address: address.to_canonical(),
            ttl: aliases.ttl,
            wait,
            state: Shared::default(),
        }));
        tokio::spawn(names.clone().follow(plans));
        Ok(Some(names))
    }

    /// How it stands, for people.
    pub fn status(&self) -> AliasNamesStatus {
        self.0.state.with(|state| AliasNamesStatus {
            domain: String::new(),
            server: self.0.server.to_string(),
            registered: state.registered.len() as u64,
            cause: state.cause.clone(),
            declined: state.declined,
        })
    }

    /// Whether `output` is held back: an acceptance, which is said by what `way` gives once its
    /// alias is registered, and what would be said on its link before.
    pub fn hold(
        &self,
        output: &Output,
        way: impl FnOnce() -> (Speaker, mpsc::Sender<Input>),
    ) -> bool {
        if let Output::AcceptSos { link, alias, .. } = output {
            self.0.state.with(|state| state.held.insert(*link));
            let alias = alias.host.clone();
            tokio::spawn(self.clone().accept(output.clone(), *link, alias, way()));
            return true;
        }
        let (link, is_last) = match output {
            Output::TellRate { link, .. } | Output::TellPeers { link, .. } => (link, false),
            Output::ShutDown { link, .. } | Output::DropLink { link } => (link, true),
            Output::RejectSos { .. }
            | Output::AcceptSos { .. }
            | Output::CallForHelp { .. }
            | Output::SearchRegistry { .. }
            | Output::Register { .. }
            | Output::Copy(_)
            | Output::SwapPlan
            | Output::RememberAliases
            | Output::RememberGiven
            | Output::Explain(_) => return false,
        };
        self.0.state.with(|state| match is_last {
            // The rescue is over before it began.
            true => {
                state.held.remove(link);
                false
            }
            // A rate is told again in the next interval.
            false => state.held.contains(link),
        })
    }

    async fn accept(
        self,
        output: Output,
        link: LinkId,
        alias: HostName,
        (speaker, events): (Speaker, mpsc::Sender<Input>),
    ) {
        let name = DomainName::from(&alias);
        let entered = timeout(
            self.0.wait,
            self.0.zone.change(self.enter(std::slice::from_ref(&name))),
        );
        let entered = match entered.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "no answer within {:.1} s",
                self.0.wait.as_secs_f64()
            )),
        };
        let is_wanted = self.0.state.with(|state| {
            match &entered {
                Ok(()) => {
                    state.registered.insert(name.clone());
                    state.cause.clear();
                }
                Err(cause) => {
                    state.cause.clone_from(cause);
                    state.declined += 1;
                }
            }
            state.held.remove(&link)
        });
        if !is_wanted {
            return;
        }
        // A link that cannot be spoken to any more is told as lost by itself.
        if entered.is_ok() {
            let _ = speaker.obey(&output);
            return;
        }
        tracing::warn!(alias = %name, cause = ?entered, "an alias cannot be registered in DNS");
        let why = "its alias cannot be registered in DNS";
        let reason = Reason::SosRejected { origin: alias, why };
        let _ = speaker.obey(&Output::RejectSos { link, reason });
        let loss = LinkLoss::Closed;
        // The Brain task is gone only when the server stops.
        let _ = events.send(Input::LinkLost { link, loss }).await;
    }

    /// Makes the domain equal to the aliases of each plan.
    async fn follow(self, mut plans: watch::Receiver<Arc<RoutePlan>>) {
        let mut pause = RETRY_MIN;
        loop {
            let wanted = aliases(&plans.borrow_and_update());
            let done = self.reconcile(&wanted).await;
            self.0.state.with(|state| match &done {
                Ok(()) => state.cause.clear(),
                Err(cause) => state.cause.clone_from(cause),
            });
            let changed = async {
                match done {
                    Ok(()) => plans.changed().await.is_ok(),
                    Err(_) => {
                        sleep(pause).await;
                        true
                    }
                }
            };
            if !changed.await {
                return;
            }
            pause = match self.0.state.with(|state| state.cause.is_empty()) {
                true => RETRY_MIN,
                false => (pause * 2).min(RETRY_MAX),
            };
        }
    }

    async fn reconcile(&self, wanted: &BTreeSet<DomainName>) -> Result<(), String> {
        let registered = self.0.state.with(|state| state.registered.clone());
        let come: Vec<DomainName> = wanted.difference(&registered).cloned().collect();
        let go: Vec<DomainName> = registered.difference(wanted).cloned().collect();
        for names in come.chunks(BATCH_MAX) {
            let entered = self.0.zone.change(self.enter(names)).await;
            entered.map_err(|error| error.to_string())?;
            let names = names.iter().cloned();
            self.0.state.with(|state| state.registered.extend(names));
        }
        for names in go.chunks(BATCH_MAX) {
            let clear = names.iter().flat_map(clear).collect();
            let left = self.0.zone.change(Change::of(clear)).await;
            left.map_err(|error| error.to_string())?;
            self.0.state.with(|state| {
                state.registered.retain(|name| !names.contains(name));
            });
        }
        Ok(())
    }

    /// Names that are ours alone get our address and no other.
    fn enter(&self, names: &[DomainName]) -> Change {
        let edits = names.iter().flat_map(|name| {
            let add = Edit::Add(Record {
                name: name.clone(),
                value: Value::Address(self.0.address),
                ttl: self.0.ttl,
            });
            clear(name).into_iter().chain([add])
        });
        Change::of(edits.collect())
    }
}

/// The zone in which aliases lie.
///
/// # Errors
/// A sentence: the key cannot be read.
pub fn alias_zone(aliases: &AliasZone) -> Result<RemoteZone, String> {
    let zone = DomainName::from(&aliases.zone);
    let key = read_key(&aliases.key)?;
    Ok(RemoteZone::new(aliases.server, zone, key))
}

fn clear(name: &DomainName) -> [Edit; 2] {
    [Kind::A, Kind::Aaaa].map(|kind| Edit::Clear(name.clone(), kind))
}

/// The aliases of a plan, those that lead back included: their visitors must still find us.
fn aliases(plan: &RoutePlan) -> BTreeSet<DomainName> {
    let origins = plan.hosts.origins.iter();
    origins
        .map(|origin| DomainName::from(&origin.alias))
        .collect()
}
