//! The task that keeps one name: brings its keeper what happened, carries out what it wants.

use std::sync::Arc;

use levee_control::RoutePlan;
use levee_dns::{
    Addresses, Cause, DomainName, Failure, Input, Keeper, KeeperState, KeeperView, KeptName, Kind,
    Output, OwnZone, Value, Weights, Zone,
};
use levee_net::Clock;
use levee_observe::DnsStatus;
use tokio::sync::watch;
use tokio::time::sleep;

use super::records::{Records, blocking};

/// What a name is kept with.
pub(super) struct NameTask {
    pub kept: KeptName,
    /// What is ours from an earlier time.
    pub ours: Addresses,
    pub zone: Arc<dyn Zone>,
    pub records: Arc<Records>,
    /// Who helps; none where nobody shall be put in.
    pub plans: Option<watch::Receiver<Arc<RoutePlan>>>,
    /// Our own name server, where it shall name those more often who have more room.
    pub weighted: Option<OwnZone>,
    /// The port that visitors use.
    pub port: u16,
    pub seed: u64,
}

/// How it stands with a name.
#[derive(Clone, Debug)]
pub(super) struct NameState {
    view: KeeperView,
    changes: u64,
    failures: u64,
}

impl NameTask {
    /// Starts it; it runs until the server ends.
    pub(super) fn start(self) -> watch::Receiver<NameState> {
        let (keeper, first) = Keeper::new(self.kept.clone(), self.ours.clone(), self.seed);
        let state = NameState {
            view: keeper.view(Clock.now()),
            changes: 0,
            failures: 0,
        };
        let (told, seen) = watch::channel(state);
        tokio::spawn(self.run(keeper, first, told));
        seen
    }

    async fn run(mut self, mut keeper: Keeper, first: Output, told: watch::Sender<NameState>) {
        let mut todo = Some(first);
        loop {
            let input = match todo.take() {
                Some(output) => self.carry_out(output).await,
                None => match self.wait(&keeper).await {
                    Some(input) => input,
                    None => return,
                },
            };
            note(&self.kept.name, &input, &told);
            todo = keeper.handle(Clock.now(), input);
            told.send_modify(|state| state.view = keeper.view(Clock.now()));
        }
    }

    /// None when nothing can happen any more.
    async fn wait(&mut self, keeper: &Keeper) -> Option<Input> {
        let deadline = keeper.next_deadline();
        if deadline.is_none() && self.plans.is_none() {
            return None;
        }
        let pause = deadline.map(|deadline| deadline.since(Clock.now()));
        let plans = self.plans.as_mut();
        tokio::select! {
            changed = async {
                match plans {
                    Some(plans) => plans.changed().await,
                    None => std::future::pending().await,
                }
            } => {
                changed.ok()?;
                let plan = self.plans.as_mut()?.borrow_and_update().clone();
                self.weigh(&plan);
                Some(Input::Wanted(self.wanted(&plan)))
            }
            () = sleep(pause.unwrap_or_default()), if pause.is_some() => Some(Input::TimerFired),
        }
    }

    /// The rescue servers whom visitors can come to by our name: those that serve on our port.
    fn wanted(&self, plan: &RoutePlan) -> Addresses {
        let targets = plan.redirect.iter().flat_map(|redirect| &redirect.targets);
        let same_port = targets.filter(|target| target.alias.port == self.port);
        let addresses = same_port.map(|target| target.address.to_canonical());
        addresses
            .filter(|address| !self.kept.own.contains(address))
            .collect()
    }

    /// Tells our own name server how much each address can take: the site what it may serve itself,
    /// a rescue server what may be redirected to it.
    fn weigh(&self, plan: &RoutePlan) {
        let (Some(zone), redirect) = (&self.weighted, &plan.redirect) else {
            return;
        };
        let weights = redirect.as_ref().map(|redirect| {
            let direct = redirect.direct.as_bytes();
            let targets = redirect.targets.iter();
            let rescue = targets.map(|to| (to.address.to_canonical(), to.rate.as_bytes()));
            let own = self.kept.own.iter().map(|own| (*own, direct));
            Weights {
                known: own.chain(rescue).collect(),
                // Whatever else the operator has there is the site's too.
                others: direct,
            }
        });
        zone.set_weights(&self.kept.name, weights);
    }

    async fn carry_out(&self, output: Output) -> Input {
        match output {
            Output::Read => Input::NameRead(self.read().await),
            Output::Remember(addresses) => {
                let (records, name) = (Arc::clone(&self.records), self.kept.name.clone());
                Input::Remembered(blocking(move || records.remember(&name, &addresses)).await)
            }
            Output::Change(change) => {
                let changed = self.zone.change(change).await;
                Input::Changed(changed.map_err(|error| error.cause))
            }
        }
    }

    async fn read(&self) -> Result<Addresses, Cause> {
        let mut addresses = Addresses::new();
        for kind in [Kind::A, Kind::Aaaa] {
            let values = self.zone.read(&self.kept.name, kind).await;
            for value in values.map_err(|error| error.cause)? {
                if let Value::Address(address) = value {
                    addresses.insert(address);
                }
            }
        }
        Ok(addresses)
    }
}

/// Counts, and tells the log.
fn note(name: &DomainName, input: &Input, told: &watch::Sender<NameState>) {
    match input {
        Input::Changed(Ok(())) => {
            tracing::info!(%name, "the site's name in DNS was changed");
            told.send_modify(|state| state.changes += 1);
        }
        Input::NameRead(Err(cause)) | Input::Changed(Err(cause)) => {
            tracing::warn!(%name, %cause, "the site's name in DNS could not be read or changed");
            told.send_modify(|state| state.failures += 1);
        }
        Input::Remembered(Err(error)) => {
            tracing::error!(%error, "what is put into DNS cannot be written down");
            told.send_modify(|state| state.failures += 1);
        }
        Input::NameRead(Ok(_))
        | Input::Remembered(Ok(()))
        | Input::Wanted(_)
        | Input::TimerFired => {}
    }
}

impl NameState {
    /// Whether no rescue server is in the name, or to be in it.
    pub(super) fn is_empty(&self) -> bool {
        self.view.ours.is_empty() && self.view.wanted.is_empty()
    }

    /// Fills in what people are told; a name that is not used stays so unless it fails.
    pub(super) fn fill(&self, status: &mut DnsStatus) {
        let is_unused = !status.cause.is_empty();
        let (state, cause) = match &self.view.state {
            KeeperState::Failing { failure, .. } => ("failing", told(failure, &status.server)),
            KeeperState::Settled | KeeperState::Working if is_unused => {
                ("unused", std::mem::take(&mut status.cause))
            }
            KeeperState::Settled => ("settled", String::new()),
            KeeperState::Working => ("working", String::new()),
        };
        let texts = |addresses: &Addresses| addresses.iter().map(ToString::to_string).collect();
        let present = self.view.present.clone().unwrap_or_default();
        let entered: Addresses = present.intersection(&self.view.ours).copied().collect();
        status.state = state.to_owned();
        status.cause = cause;
        status.addresses = texts(&present);
        status.entered = texts(&entered);
        status.changes = self.changes;
        status.failures = self.failures;
    }
}

fn told(failure: &Failure, server: &str) -> String {
    match failure {
        Failure::Zone(cause) => format!("DNS server {server} {cause}"),
        Failure::NotRemembered(why) => {
            format!("what of DNS is ours cannot be written down, so nothing is put in: {why}")
        }
    }
}
