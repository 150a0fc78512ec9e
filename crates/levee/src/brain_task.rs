//! The one task that owns the Brain: brings it what happened, carries out what it wants.
//!
//! ```text
//!   interval over · links · registry · deadline · operator  ──Input──▶  Brain
//!   plan to the cores · links · registry · state folder · log  ◀──Output──
//! ```
//!
//! Nothing is decided here. One rule only is added, because only the shell can know it: an alias
//! that could not be written to the state folder is not given out, since a crash would forget it
//! and give its number to somebody else. From then on the Brain offers no help (`RecordsChanged`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use levee_control::{
    Brain, CallRefusal, DrillOrder, DrillRefusal, DrillStop, Input, LinkLoss, Output, Parameters,
    Reason, RoutePlan,
};
use levee_net::Clock;
use levee_observe::StatusBoard;
use levee_proxy::{Front, MissingCopy};
use levee_vocab::{LinkId, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::community::Community;
use crate::drill::DrillOffice;
use crate::ended_rescues::forget_ended;
use crate::figures::{Figures, Surroundings};
use crate::https::VisitorSchemes;
use crate::integrity::SceneBoard;
use crate::link_meter::LinkMeter;
use crate::replicator::Replicator;
use crate::sampler::Sampler;
use crate::state::{StateFolder, StateWatch};

/// What the operator wants of a running Brain.
#[derive(Debug)]
pub enum Order {
    /// New settings are in force.
    Change(Box<Parameters>),
    /// Rehearse a rescue; answered when that has begun, or why it has not.
    Drill(DrillOrder, oneshot::Sender<Result<(), DrillRefusal>>),
    /// End the drill that we hold or take part in.
    StopDrill(DrillStop),
    /// End every rescue; answered when the other sides have been told.
    Drain(oneshot::Sender<()>),
}

/// Everything that the Brain task works with.
pub struct BrainTask {
    /// The Brain.
    pub brain: Brain,
    /// The cores.
    pub front: Arc<Front>,
    /// Links and registry; none where the site stands alone.
    pub community: Option<Community>,
    /// Where aliases are remembered.
    pub state: Option<StateFolder>,
    /// B as measured; none where it is configured.
    pub link_meter: Option<LinkMeter>,
    /// By which schemes visitors come.
    pub schemes: VisitorSchemes,
    /// Where the figures are pinned up.
    pub board: Arc<StatusBoard>,
    /// What the figures need to know beside.
    pub figures: Figures,
    /// Who else wants to know each new plan.
    pub plans: watch::Sender<Arc<RoutePlan>>,
    /// Threads of the front.
    pub cores: usize,
    /// Most open connections.
    pub connections_max: usize,
    /// Has copies made; answers among the events.
    pub replicator: Replicator,
    /// Who keeps the account of drills.
    pub drills: Arc<DrillOffice>,
    /// Where those who look at what others deliver see whom to look at.
    pub scene: SceneBoard,
    /// What links and registry tell.
    pub events: mpsc::Receiver<Input>,
    /// What the operator wants.
    pub orders: mpsc::Receiver<Order>,
}

/// Looks at the cores' arrivals in a control interval. What a core noted is told at the next look
/// and added up at the one after it, so a step is known half an interval late at most.
const LOOKS: u32 = 4;

/// A drained Brain has told everybody by then, or they are not listening.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

impl BrainTask {
    /// Shows the first status, and goes on beside until the operator drains it. Whoever reads the
    /// line that the server is ready finds it ready.
    ///
    /// Cancel safety: aborted half-way, links close and the cores keep the last plan.
    pub fn start(self) -> JoinHandle<()> {
        let (cores, connections_max) = (self.cores, self.connections_max);
        let mut sampler = Sampler::start(&self.front, Clock.now(), cores, connections_max);
        sampler.watch_by(&self.brain.parameters().hot_spots.rules);
        self.publish();
        self.show(&sampler);
        tokio::spawn(self.run(sampler))
    }

    async fn run(mut self, mut sampler: Sampler) {
        let clock = Clock;
        let (mut ticks, mut looks) = (self.ticks(), self.looks());
        let mut state = StateWatch::start(self.state.clone());
        loop {
            let deadline = self
                .brain
                .next_deadline()
                .map(|deadline| deadline.since(clock.now()));
            // Without a deadline the next tick comes first anyway.
            let deadline = deadline.unwrap_or(Duration::from_secs(3600));
            let input = tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Change(parameters)) => {
                        self.handle(Input::DrillStopped(DrillStop::Reload), &mut sampler);
                        Input::ParametersChanged(self.as_it_is(parameters))
                    }
                    Some(Order::Drill(order, begun)) => {
                        self.begin_drill(order, begun, &mut sampler);
                        continue;
                    }
                    Some(Order::StopDrill(stop)) => Input::DrillStopped(stop),
                    Some(Order::Drain(done)) => return self.drain(done, &mut sampler).await,
                    None => return,
                },
                _ = ticks.tick() => {
                    let (view, plan) = (self.brain.view(), self.brain.plan());
                    let sample = sampler.take(&self.front, clock.now(), &view, plan);
                    self.measure_link(&mut sampler);
                    self.follow_certificates(&mut sampler);
                    if self.drills.is_abandoned() {
                        let gone = Input::DrillStopped(DrillStop::ClientLost);
                        self.handle(gone, &mut sampler);
                    }
                    Input::IntervalEnded(sample)
                }
                _ = looks.tick() => {
                    self.look(&mut sampler, clock.now());
                    continue;
                }
                Some(input) = self.events.recv() => input,
                () = tokio::time::sleep(deadline) => Input::TimerFired,
            };
            let ended = matches!(input, Input::IntervalEnded(_));
            let changed = matches!(input, Input::ParametersChanged(_));
            self.handle(input, &mut sampler);
            if changed {
                let inputs = sampler.watch_by(&self.brain.parameters().hot_spots.rules);
                self.handle_all(inputs, &mut sampler);
                (ticks, looks) = (self.ticks(), self.looks());
            }
            if ended {
                self.after_interval(&mut state, &mut sampler);
            }
        }
    }

    fn after_interval(&mut self, state: &mut StateWatch, sampler: &mut Sampler) {
        if let Some(records) = state.change(|| self.brain.aliases()) {
            self.handle(Input::RecordsChanged(records), sampler);
        }
        self.scene.pin_up(&self.brain.view(), &self.brain.plan());
        self.show(sampler);
    }

    /// What was measured is known better than what the interface promises, and visitors come as
    /// there are certificates.
    fn as_it_is(&mut self, mut parameters: Box<Parameters>) -> Box<Parameters> {
        if let Some(meter) = &self.link_meter {
            parameters.link = meter.rate();
        }
        self.schemes.want(parameters.visitors);
        parameters.visitors = self.schemes.now();
        parameters
    }

    /// The first certificate comes while the server runs.
    fn follow_certificates(&mut self, sampler: &mut Sampler) {
        let (before, now) = (self.brain.parameters().visitors, self.schemes.now());
        if before != now {
            let mut parameters = self.brain.parameters().clone();
            parameters.visitors = now;
            self.handle(Input::ParametersChanged(Box::new(parameters)), sampler);
        }
    }

    fn ticks(&self) -> tokio::time::Interval {
        let interval = self.brain.parameters().interval;
        let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
        // A late tick is not made up for: the interval was longer, and the sample says so.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }

    /// When to look at what cores are asked for: what becomes hot is known well within an interval.
    fn looks(&self) -> tokio::time::Interval {
        let period = self.brain.parameters().interval / LOOKS;
        let mut looks = tokio::time::interval_at(Instant::now() + period, period);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks
    }

    fn handle_all(&mut self, inputs: Vec<Input>, sampler: &mut Sampler) {
        for input in inputs {
            self.handle(input, sampler);
        }
    }

    fn handle(&mut self, input: Input, sampler: &mut Sampler) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let plan = self.brain.plan();
            if let Input::LinkLost { link, .. } = input {
                sampler.note_dead(&plan, link);
            }
            self.replicator.note(&input, &plan);
            self.scene.note(&input);
            let outputs = self.brain.handle(Clock.now(), input);
            let mut forgotten = false;
            for output in outputs {
                let output = if let Output::AcceptSos { link, .. } = output
                    && forgotten
                {
                    let loss = LinkLoss::Closed;
                    inputs.push_back(Input::LinkLost { link, loss });
                    self.reject(link)
                } else {
                    output
                };
                if let Output::DropLink { link } = output {
                    sampler.note_dead(&plan, link);
                }
                forgotten |= self.carry_out(&output, &mut inputs) == Remembered::No;
            }
        }
        self.drills.learn(|| self.brain.view());
    }

    fn begin_drill(
        &mut self,
        order: DrillOrder,
        begun: oneshot::Sender<Result<(), DrillRefusal>>,
        sampler: &mut Sampler,
    ) {
        self.handle(Input::DrillOrdered(order), sampler);
        let answer = match self.drills.take_refusal() {
            None => Ok(()),
            Some(why) => Err(why),
        };
        // Only a drill that was begun: another may be under way.
        if let Err(Ok(())) = begun.send(answer) {
            // Whoever asked has left meanwhile.
            self.handle(Input::DrillStopped(DrillStop::ClientLost), sampler);
        }
    }

    /// Says no to an origin whose alias could not be remembered.
    fn reject(&self, link: LinkId) -> Output {
        let view = self.brain.view();
        let origin = view.origins.iter().find(|origin| origin.link == link);
        match origin {
            Some(origin) => Output::RejectSos {
                link,
                reason: Reason::SosRejected {
                    origin: origin.peer.host.clone(),
                    why: CallRefusal::AliasForgotten.why(),
                },
            },
            None => Output::DropLink { link },
        }
    }

    /// Takes the cores' notes.
    fn look(&mut self, sampler: &mut Sampler, now: Timestamp) {
        let inputs = sampler.look(&self.front, now, &mut self.scene);
        self.handle_all(inputs, sampler);
        for MissingCopy { link, url } in sampler.take_fetched() {
            self.replicator.renew(link, &url);
        }
    }

    fn carry_out(&self, output: &Output, inputs: &mut VecDeque<Input>) -> Remembered {
        match output {
            Output::SwapPlan => self.publish(),
            Output::RememberAliases => return self.remember(),
            Output::RememberGiven => self.remember_given(),
            Output::Explain(reason) => {
                self.drills.note(reason);
                tell(reason);
            }
            Output::Copy(order) => inputs.extend(self.replicator.order(order.clone())),
            Output::CallForHelp { .. }
            | Output::AcceptSos { .. }
            | Output::RejectSos { .. }
            | Output::TellRate { .. }
            | Output::TellPeers { .. }
            | Output::ShutDown { .. }
            | Output::DropLink { .. }
            | Output::SearchRegistry { .. }
            | Output::Register { .. } => {
                inputs.extend(
                    self.community
                        .as_ref()
                        .and_then(|community| community.obey(output)),
                );
            }
        }
        Remembered::Yes
    }

    /// Each core gets its part of the budgets by the requests that it has had.
    fn publish(&self) {
        let requests = self.front.requests_by_core();
        let all = requests.iter().sum::<u64>() as f64;
        // Before there is any demand to go by, and for a core that has had none, a part is kept.
        let least = 0.1 / requests.len() as f64;
        let mut shares: Vec<f64> = requests
            .iter()
            .map(|&count| (count as f64 / all.max(1.0)).max(least))
            .collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        let plan = self.brain.plan();
        self.front.publish(&plan, &shares);
        let before = self.plans.send_replace(Arc::clone(&plan));
        forget_ended(&self.figures.fetcher, &before, &plan);
    }

    fn remember(&self) -> Remembered {
        let Some(state) = &self.state else {
            return Remembered::Yes;
        };
        match state.remember(&self.brain.aliases()) {
            Ok(()) => Remembered::Yes,
            Err(error) => {
                tracing::error!(%error, "cannot remember the aliases given out, so none is given out");
                Remembered::No
            }
        }
    }

    /// A limit that a day's figures were lost for is kept by those that were not.
    fn remember_given(&self) {
        if let Some(state) = &self.state
            && let Err(error) = state.remember_given(&self.brain.given(), SystemTime::now())
        {
            tracing::error!(%error, "cannot remember what was given to others today");
        }
    }

    /// Learns B where nobody configured it.
    fn measure_link(&mut self, sampler: &mut Sampler) {
        let Some(meter) = &mut self.link_meter else {
            return;
        };
        let before = meter.rate();
        meter.observe(sampler);
        let now = meter.rate();
        // A change of a percent would only make noise in every plan.
        if now.share_of(before) > 1.01 || now.share_of(before) < 0.99 {
            tracing::info!(from = %before, to = %now, "the link's rate is measured anew");
            let mut parameters = self.brain.parameters().clone();
            parameters.link = now;
            self.handle(Input::ParametersChanged(Box::new(parameters)), sampler);
        }
    }

    fn show(&self, sampler: &Sampler) {
        let registry = self
            .community
            .as_ref()
            .map(Community::registry_status)
            .unwrap_or_default();
        let surroundings = Surroundings {
            parameters: self.brain.parameters(),
            configured_link: self.link_meter.is_none(),
            registry,
            alias_names: self.community.as_ref().map(Community::alias_names),
            rescue_messages_refused: self.community.as_ref().map_or(0, Community::refused),
            state_trouble: self
                .state
                .as_ref()
                .map_or_else(String::new, StateFolder::trouble),
        };
        let view = self.brain.view();
        self.board
            .publish(self.figures.status(&view, sampler, &surroundings));
    }

    async fn drain(mut self, done: oneshot::Sender<()>, sampler: &mut Sampler) {
        let rescues = !self.brain.view().origins.is_empty();
        self.remember_given();
        self.handle(Input::DrainStarted, sampler);
        // Whoever sends visitors here by /-/ready must look elsewhere from now on.
        self.show(sampler);
        if let Some(community) = self.community.take() {
            // Whoever does not listen finds the link closed.
            let _ = tokio::time::timeout(FAREWELL_MAX, community.leave()).await;
        }
        if rescues {
            // The origins have stopped redirecting, but their last visitors are under way.
            tokio::time::sleep(self.brain.parameters().interval).await;
        }
        // The operator may have given up waiting.
        let _ = done.send(());
    }
}

/// Whether the aliases given out are safe on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remembered {
    Yes,
    No,
}

/// Decisions go to the log as they are; the levels are those of STYLE.md 11.
fn tell(reason: &Reason) {
    match reason {
        Reason::StateChanged { .. }
        | Reason::RescueBegan { .. }
        | Reason::RescueEnded { .. }
        | Reason::GraceEnded { .. }
        | Reason::DrillBegan { .. }
        | Reason::DrillRefused { .. }
        | Reason::DrillJoined { .. }
        | Reason::DrillEnded { .. }
        | Reason::CallingEarly { .. }
        | Reason::Copying { .. }
        | Reason::RedirectingResource { .. }
        | Reason::ServedHere { .. } => tracing::info!("{reason}"),
        Reason::NoCandidate(_)
        | Reason::OriginDied { .. }
        | Reason::Refusing { .. }
        | Reason::CameBack { .. } => {
            tracing::warn!("{reason}")
        }
        Reason::LoadRose { .. }
        | Reason::RedirectThreshold { .. }
        | Reason::Asked { .. }
        | Reason::RateChanged { .. }
        | Reason::NotHelped { .. }
        | Reason::CopyRefused { .. }
        | Reason::SosRejected { .. } => tracing::debug!("{reason}"),
    }
}
