//! From settings to a running server: everything is made first, then started, in one visible place.
//!
//! What a single setting leads to stands in `made`; here is what needs each other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use levee_control::{Brain, Input, Parameters, RoutePlan};
use levee_net::Clock;
use levee_observe::{AccessLog, AccessLogThread, StatusBoard};
use levee_proxy::{
    Bound, Fetcher, Front, FrontParts, Link, SiteTable, Space, Spaces, TlsOffer, Upstreams,
    watch_upstreams,
};
use levee_vocab::{ByteRate, WebAddress};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::Node;
use super::certificates::{CertificateBoard, Ordering};
use super::made::{
    access_log, copied, fetch_settings, https_ports, https_seen, kept, list_sources,
    private_addresses, start_dns,
};
use super::purge_office::PurgeOffice;
use super::sockets::Sockets;
use crate::brain_task::BrainTask;
use crate::community::{Community, Offer};
use crate::dns::{AliasNames, Dns};
use crate::figures::Figures;
use crate::https::{Https, VisitorSchemes};
use crate::integrity::IntegrityOffice;
use crate::link_meter::LinkMeter;
use crate::log_hand_over;
use crate::log_take_over::TakeOver;
use crate::registry_client::{RegistryClient, RegistryClientSettings};
use crate::registry_finder::KnownRegistries;
use crate::replicator::{CopiedSite, CopyCounts, Copying, Replicator};
use crate::rescue_link::{LinkCharge, LinkSettings, OriginPurge, RescueLinks, Surroundings};
use crate::settings::Settings;
use crate::state::StateFolder;
use crate::trust::{Trust, keep_list};

/// A link below this is served by one core: one core fills 12.5 MB/s (100 Mbit/s) many times over,
/// and one core keeps the budgets of a small link exact.
const ONE_CORE_LINK: ByteRate = ByteRate::from_kilobytes(12_500);

/// What the node is built from, once every socket is bound.
pub(super) struct Parts {
    pub(super) trust: Arc<Trust>,
    pub(super) registries: KnownRegistries,
    pub(super) settings: Settings,
    pub(super) web: WebAddress,
    pub(super) address: IpAddr,
    pub(super) link: ByteRate,
    pub(super) parameters: Parameters,
    pub(super) sites: Arc<SiteTable>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(super) https: Option<Arc<Https>>,
    pub(super) https_port: Option<u16>,
    pub(super) offer: Option<TlsOffer>,
    pub(super) state: Option<StateFolder>,
    pub(super) cores: usize,
}

/// What is made of the parts before anything runs.
pub(super) struct Made {
    pub(super) fetcher: Fetcher,
    pub(super) pacer: Option<Arc<Link>>,
    pub(super) log: AccessLog,
    pub(super) log_thread: AccessLogThread,
    pub(super) take_over: TakeOver,
    pub(super) brain: Brain,
    pub(super) schemes: VisitorSchemes,
    pub(super) purges: Arc<PurgeOffice>,
}

impl Parts {
    /// What neither needs a socket nor runs yet.
    fn make(&self) -> Result<Made, String> {
        let clock: levee_proxy::Clock = Arc::new(|| Clock.now());
        let fetcher = Fetcher::new(fetch_settings(&self.settings), Handle::current(), clock)
            .map_err(|error| error.to_string())?;
        self.sign(&fetcher)?;
        let (log, log_thread) = access_log(&self.settings)?;
        let kept = self.state.as_ref().map(kept).transpose()?;
        let schemes = VisitorSchemes::new(self.parameters.visitors, https_ports(self));
        let mut parameters = self.parameters.clone();
        parameters.visitors = schemes.now();
        fetcher.limit_disk_of_others(self.settings.help.disk);
        Ok(Made {
            purges: PurgeOffice::new(fetcher.clone()),
            fetcher,
            pacer: self
                .settings
                .link
                .rate
                .map(|rate| Arc::new(Link::new(rate))),
            take_over: TakeOver::new(log.clone()),
            log,
            log_thread,
            brain: Brain::restore(parameters, seed(), kept.unwrap_or_default()),
            schemes,
        })
    }

    /// Starts everything.
    ///
    /// # Errors
    /// A sentence for the operator; nothing runs then.
    pub(super) fn start(self, sockets: Sockets) -> Result<Node, String> {
        let made = self.make()?;
        let (orders, orders_inbox) = mpsc::channel(ORDERS_MAX);
        let drills = self.drill_office(&sockets.front, orders.clone());
        let (plans, plans_seen) = watch::channel(made.brain.plan());
        let front = self.start_front(sockets.front, &made)?;
        let (events, inbox) = mpsc::channel(EVENTS_MAX);
        let (replicator, copied) = self.replicate(&front, &made, events.clone());
        let (scene, inspection, integrity) = self.open_inspection(&made, events.clone())?;
        let community = self.join(sockets.rescue, &made, (events, &integrity), &plans_seen)?;
        made.purges.open(&front, community.as_ref());
        let board = Arc::<StatusBoard>::default();
        let dns = start_dns(&self, sockets.names, plans_seen.clone())?;
        let certificates = Ordering::start(&self, &front, dns.as_deref())?;
        let offices = (dns.clone(), integrity.clone());
        let figures = self.figures(&made, replicator.counts(), offices, &certificates.board);
        let inspecting = self.inspect(inspection, (&front, community.as_ref()), plans_seen.clone());
        let side_tasks = self.side_tasks(made.take_over, &made.log, (plans_seen, inspecting));
        let task = BrainTask {
            front: Arc::clone(&front),
            community,
            state: self.state,
            schemes: made.schemes,
            link_meter: link_meter(&self.settings, self.link),
            board: Arc::clone(&board),
            figures,
            brain: made.brain,
            plans,
            drills: Arc::clone(&drills),
            cores: self.cores,
            connections_max: self.settings.limits.connections,
            replicator,
            scene,
            events: inbox,
            orders: orders_inbox,
        };
        Ok(Node {
            settings: self.settings,
            front,
            https: self.https,
            orders,
            board,
            admin_address: local_address(&sockets.admin)?,
            admin: sockets.admin,
            brain: task.start(),
            log: made.log,
            log_thread: made.log_thread,
            side_tasks,
            ordering: certificates,
            fetcher: made.fetcher,
            upstreams: self.upstreams,
            purges: made.purges,
            drills,
            integrity,
            dns,
            copied,
            web: self.web,
            https_port: self.https_port,
            address: self.address,
            link: self.link,
        })
    }

    /// Copies are made of what the site is at the moment.
    fn replicate(
        &self,
        front: &Arc<Front>,
        made: &Made,
        events: mpsc::Sender<Input>,
    ) -> (Replicator, watch::Sender<CopiedSite>) {
        let publisher = made.fetcher.publisher().cloned();
        let site = (&self.web, https_seen(&self.settings, self.https_port));
        let (copied, seen) = watch::channel(copied(&self.settings, site, publisher));
        let copying = Copying::new(seen, self.link, charge(made));
        (Replicator::start(front, copying, events), copied)
    }

    fn side_tasks(
        &self,
        take_over: TakeOver,
        log: &AccessLog,
        (plans, further): (watch::Receiver<Arc<RoutePlan>>, Vec<JoinHandle<()>>),
    ) -> Vec<JoinHandle<()>> {
        let sources = list_sources(&self.settings, &self.registries);
        let mut tasks = vec![
            tokio::spawn(take_over.learn_names(plans.clone())),
            tokio::spawn(log_hand_over::run(log.clone(), plans)),
            tokio::spawn(watch_upstreams(Arc::clone(&self.upstreams))),
            tokio::spawn(keep_list(Arc::clone(&self.trust), sources)),
        ];
        tasks.extend(further);
        tasks
    }

    fn figures(
        &self,
        made: &Made,
        copies: Arc<CopyCounts>,
        (dns, integrity): (Option<Arc<Dns>>, Option<Arc<IntegrityOffice>>),
        ordered: &CertificateBoard,
    ) -> Figures {
        Figures {
            site: self.web.to_string(),
            fetcher: made.fetcher.clone(),
            upstreams: Arc::clone(&self.upstreams),
            https: self.https.clone(),
            ordered: Arc::clone(ordered),
            log: made.log.clone(),
            handed_over: made.take_over.counts(),
            purge_answers: made.purges.answers(),
            copies,
            dns,
            integrity,
            trust: Arc::clone(&self.trust),
            started: Clock.now(),
        }
    }

    fn start_front(&self, bound: Bound, made: &Made) -> Result<Arc<Front>, String> {
        let front = bound.start(FrontParts {
            plan: made.brain.plan(),
            sites: Arc::clone(&self.sites),
            fetcher: Some(made.fetcher.clone()),
            tls: self.offer.clone(),
            link: made.pacer.clone(),
            // Lines for others are kept even where our own log is off.
            log: self.wants_log().then(|| made.log.sender()),
            handed_over: Some(made.take_over.inlet()),
            purge: Some(made.purges.inlet()),
        });
        front.map(Arc::new).map_err(|error| error.to_string())
    }

    fn wants_log(&self) -> bool {
        self.settings.log.access != levee_observe::LogTarget::Off
            || self.settings.community.is_some()
    }

    fn join(
        &self,
        listener: Option<TcpListener>,
        made: &Made,
        (events, integrity): (mpsc::Sender<Input>, &Option<Arc<IntegrityOffice>>),
        plans: &watch::Receiver<Arc<RoutePlan>>,
    ) -> Result<Option<Community>, String> {
        let Some(community) = &self.settings.community else {
            return Ok(None);
        };
        let charge = charge(made);
        let site = self.settings.site.name.clone();
        let trust = Arc::clone(&self.trust);
        let mut settings =
            RegistryClientSettings::new(self.registries.clone(), site, trust, seed());
        settings.source = Some(self.address);
        settings.charge = Arc::clone(&charge);
        let registry = RegistryClient::start(settings);
        let site = self.settings.site.name.clone();
        let mut settings = LinkSettings::new(site, self.address);
        settings.private_addresses = private_addresses(community);
        settings.integrity.clone_from(integrity);
        settings.call_wait = settings.call_wait.min(self.settings.rescue.interval * 2);
        settings.https = https_ports(self);
        let surroundings = Surroundings {
            address_book: Arc::new(registry.clone()),
            trust: Arc::clone(&self.trust),
        };
        let fetcher = made.fetcher.clone();
        let origin_purge: OriginPurge = Arc::new(move |origin, purge| {
            let WebAddress { host, port } = origin.clone();
            fetcher.purge(&Spaces::One(Space::Origin(host, port)), purge)
        });
        let events_of_links = events.clone();
        let links = RescueLinks::start(
            listener,
            settings,
            surroundings,
            charge,
            origin_purge,
            events_of_links,
        );
        let offer = Offer {
            site: self.web.clone(),
            rescue: (self.address, community.rescue_listen.port()).into(),
            period: self.settings.rescue.registry_period,
            https: https_ports(self),
        };
        let names = AliasNames::start(&self.settings, self.address, plans.clone())?;
        let community = Community::new(links, registry, offer, events);
        Ok(Some(community.registering(names)))
    }
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|error| error.to_string())
}

/// Measures the link where nobody configured it.
fn link_meter(settings: &Settings, link: ByteRate) -> Option<LinkMeter> {
    match settings.link.rate {
        Some(_) => None,
        None => Some(LinkMeter::new(link)),
    }
}

/// Charges the link for what does not go through the cores.
pub(super) fn charge(made: &Made) -> LinkCharge {
    match made.pacer.clone() {
        Some(link) => Arc::new(move |bytes| link.charge(Clock.now(), bytes)),
        None => Arc::new(|_| {}),
    }
}

pub(super) fn cores(settings: &Settings) -> usize {
    match settings.site.cores {
        0 if settings.link.rate.is_some_and(|rate| rate < ONE_CORE_LINK) => 1,
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    }
}

/// From the operating system; a predictable seed would only make jitter predictable.
pub(super) fn seed() -> u64 {
    getrandom::u64().unwrap_or(0x5EED)
}

/// What links and registry tell between two looks of the Brain: a few messages a second for each of
/// at most 128 rescues.
const EVENTS_MAX: usize = 1024;
/// The operator gives one order at a time.
const ORDERS_MAX: usize = 4;
