//! A running server: every part built and wired in one visible place.
//!
//! Order matters once: every socket is bound first, then everything is built, then started. What
//! fails before the start is told in a sentence and leaves nothing behind. A reload builds what may
//! change anew and swaps it whole; SIGTERM drains.

mod certificates;
mod face;
mod inspection;
mod made;
mod purge_office;
mod reach;
mod sockets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Brain, Input, Parameters, RoutePlan};
use levee_net::{Clock, Inherited, Shared};
use levee_observe::{AccessLog, AccessLogThread, StatusBoard};
use levee_proxy::{
    Bound, Fetcher, Front, FrontParts, Link, SiteTable, Space, Spaces, TlsOffer, Upstreams,
    watch_upstreams,
};
use levee_vocab::{ByteRate, WebAddress};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use self::certificates::{CertificateBoard, Ordering};
use self::face::Face;
use self::made::{
    access_log, admin_limits, copied, fetch_settings, find_registries, https_ports, https_seen,
    interface_speed, kept, list_sources, private_addresses, sites, start_dns, trust,
};
use self::purge_office::PurgeOffice;
use self::reach::own_address;
use self::sockets::{Sockets, bind};
use crate::admin::{self, StatusSource};
use crate::brain_task::{BrainTask, Order};
use crate::community::{Community, Offer};
use crate::dns::{AliasNames, Dns};
use crate::drill::DrillOffice;
use crate::figures::Figures;
use crate::https::Https;
use crate::integrity::IntegrityOffice;
use crate::link_meter::LinkMeter;
use crate::log_hand_over;
use crate::log_take_over::TakeOver;
use crate::registry_client::{RegistryClient, RegistryClientSettings};
use crate::registry_finder::KnownRegistries;
use crate::replicator::{CopiedSite, CopyCounts, Copying, Replicator};
use crate::rescue_link::{LinkCharge, LinkSettings, OriginPurge, RescueLinks, Surroundings};
use crate::serve::Again;
use crate::service_manager;
use crate::settings::Settings;
use crate::state::StateFolder;
use crate::trust::{Trust, keep_list};

/// A link below this is served by one core: one core fills 12.5 MB/s (100 Mbit/s) many times over,
/// and one core keeps the budgets of a small link exact.
const ONE_CORE_LINK: ByteRate = ByteRate::from_kilobytes(12_500);
/// Time for running requests to finish when the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How often a stopping server looks whether its cores have ended.
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// A server that is built and serves.
pub struct Node {
    settings: Settings,
    front: Arc<Front>,
    https: Option<Arc<Https>>,
    orders: mpsc::Sender<Order>,
    board: Arc<StatusBoard>,
    admin: TcpListener,
    admin_address: SocketAddr,
    brain: JoinHandle<()>,
    log: AccessLog,
    log_thread: AccessLogThread,
    /// Log lines to rescue servers and from them, checks of upstreams.
    side_tasks: Vec<JoinHandle<()>>,
    fetcher: Fetcher,
    upstreams: Arc<Upstreams>,
    purges: Arc<PurgeOffice>,
    drills: Arc<DrillOffice>,
    integrity: Option<Arc<IntegrityOffice>>,
    dns: Option<Arc<Dns>>,
    /// What is copied, and how.
    copied: watch::Sender<CopiedSite>,
    /// The settings in force, for tasks that follow a reload.
    told: watch::Sender<Arc<Settings>>,
    web: WebAddress,
    /// Where visitors come by HTTPS.
    https_port: Option<u16>,
    address: IpAddr,
    link: ByteRate,
}

impl Node {
    /// Binds, builds and starts. Needs a tokio runtime. Sockets that were `inherited` serve those
    /// addresses of the settings that they are bound to.
    ///
    /// # Errors
    /// A sentence for the operator; nothing runs then.
    ///
    /// Cancel safety: dropped half-way, every socket is closed again.
    pub async fn build(mut settings: Settings, inherited: &Inherited) -> Result<Self, String> {
        let cores = cores(&settings);
        let (https, offer) = Https::open(&settings)?.unzip();
        let address = own_address(&mut settings)?;
        let sockets = bind(&settings, https.as_ref(), cores, inherited).await?;
        if settings.site.port == 0 {
            // Where there are only sockets in the file system, a proxy in front has the true one.
            let first = sockets.front.local_addresses().first();
            settings.site.port = first.map_or(80, SocketAddr::port);
        }
        if let (Some(community), Some(rescue)) = (&mut settings.community, &sockets.rescue) {
            community.rescue_listen = rescue.local_addr().map_err(|error| error.to_string())?;
        }
        let web = WebAddress {
            host: settings.site.name.clone(),
            port: settings.site.port,
        };
        let link = settings.link.rate.unwrap_or_else(interface_speed);
        let parameters = settings
            .parameters(web.port, address, link)
            .check()
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
        let clock = Arc::new(|| Clock.now());
        let upstreams = Upstreams::new(settings.upstream.group.clone(), clock);
        upstreams.look_up_names().await;
        let sites = Arc::new(sites(&settings, &web, &upstreams)?);
        let https_port = sockets.front.local_tls_addresses().first();
        let state = match &settings.state_folder {
            Some(path) => Some(StateFolder::open(path).map_err(|error| error.to_string())?),
            None => None,
        };
        let parts = Parts {
            trust: trust(&settings)?,
            registries: find_registries(&settings),
            settings,
            web,
            address,
            link,
            parameters,
            sites,
            upstreams,
            https: https.map(Arc::new),
            https_port: https_port.map(SocketAddr::port),
            offer,
            state,
            cores,
        };
        parts.start(sockets)
    }

    /// Serves until SIGTERM or SIGINT, then drains. `again` reads the settings for a reload.
    ///
    /// # Errors
    /// When signals cannot be waited for.
    ///
    /// Cancel safety: dropped half-way, everything stops at once without draining.
    pub async fn run(self, again: Again) -> Result<(), String> {
        let mut signals = Signals::new()?;
        let interval = self.settings.rescue.interval;
        let Self {
            front,
            https,
            orders,
            board,
            admin,
            admin_address,
            brain,
            log,
            purges,
            drills,
            ..
        } = self;
        let limits = admin_limits(&self.settings);
        let face = Arc::new(Face {
            board,
            again,
            orders: orders.clone(),
            front: Arc::clone(&front),
            fetcher: self.fetcher,
            upstreams: self.upstreams,
            https,
            log,
            purges,
            drills,
            integrity: self.integrity,
            dns: self.dns.clone(),
            copied: self.copied,
            told: self.told,
            in_force: Shared::new(self.settings),
            web: self.web.clone(),
            address: self.address,
            link: self.link,
        });
        let admin = tokio::spawn(admin::serve(admin, face.clone(), limits));
        announce(&self.web, self.https_port, admin_address);
        service_manager::tell_ready();
        let watchdog = tokio::spawn(service_manager::keep_informed(face.clone(), interval));
        while signals.next().await == Told::Reload {
            service_manager::tell_reloading();
            reload(&face).await;
            service_manager::tell_ready();
        }
        service_manager::tell_stopping();
        watchdog.abort();
        tracing::info!("draining: no new connections, running requests are finished");
        drain(&front, &orders, self.dns.as_deref()).await;
        admin.abort();
        self.side_tasks.iter().for_each(JoinHandle::abort);
        // The task has ended, or hangs on a peer that does not listen.
        brain.abort();
        drop((face, admin.await, brain.await));
        join(self.side_tasks).await;
        drop(front);
        // The writer ends when nobody can give it lines any more.
        let writer = self.log_thread;
        let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        Ok(())
    }
}

/// The one line of a server that is ready.
fn announce(web: &WebAddress, https_port: Option<u16>, admin: SocketAddr) {
    let https = match https_port {
        None => String::new(),
        Some(443) => format!(", https://{}", web.host),
        Some(port) => format!(", https://{}:{port}", web.host),
    };
    println!("levee: ready, site http://{web}{https}, admin http://{admin}");
}

/// What the operator tells a running server by signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Reload,
    Stop,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            _ = self.hang_up.recv() => Told::Reload,
        }
    }
}

async fn reload(face: &Arc<Face>) {
    let face = Arc::clone(face);
    // Reads files, so not on the threads that keep the interval.
    match tokio::task::spawn_blocking(move || face.reload()).await {
        Ok(Ok(done)) => tracing::info!("{done}"),
        Ok(Err(error)) => tracing::error!("not reloaded, the old settings stay in force: {error}"),
        Err(error) => tracing::error!(%error, "reload failed"),
    }
}

/// Waits for tasks that were cancelled just now.
async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        let _ = task.await;
    }
}

async fn drain(front: &Front, orders: &mpsc::Sender<Order>, dns: Option<&Dns>) {
    let (done, drained) = oneshot::channel();
    if orders.send(Order::Drain(done)).await.is_ok() {
        // The Brain task answers or is gone.
        let _ = drained.await;
    }
    front.drain(DRAIN_MAX);
    let all_gone = async {
        while !front.is_drained() {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if tokio::time::timeout(DRAIN_MAX + DRAIN_LOOK, all_gone)
        .await
        .is_err()
    {
        tracing::warn!(
            "some requests were not finished in {} s",
            DRAIN_MAX.as_secs()
        );
    }
    // The rescue servers have left our name meanwhile, or their name server does not answer.
    if let Some(dns) = dns {
        dns.finish().await;
    }
}

/// What the node is built from, once every socket is bound.
struct Parts {
    trust: Arc<Trust>,
    registries: KnownRegistries,
    settings: Settings,
    web: WebAddress,
    address: IpAddr,
    link: ByteRate,
    parameters: Parameters,
    sites: Arc<SiteTable>,
    upstreams: Arc<Upstreams>,
    https: Option<Arc<Https>>,
    https_port: Option<u16>,
    offer: Option<TlsOffer>,
    state: Option<StateFolder>,
    cores: usize,
}

/// What is made of the parts before anything runs.
struct Made {
    fetcher: Fetcher,
    pacer: Option<Arc<Link>>,
    log: AccessLog,
    log_thread: AccessLogThread,
    take_over: TakeOver,
    brain: Brain,
    purges: Arc<PurgeOffice>,
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
            brain: Brain::restore(self.parameters.clone(), seed(), kept.unwrap_or_default()),
        })
    }

    fn start(self, sockets: Sockets) -> Result<Node, String> {
        let made = self.make()?;
        let (orders, orders_inbox) = mpsc::channel(ORDERS_MAX);
        let drills = self.drill_office(&sockets.front, orders.clone());
        let (plans, plans_seen) = watch::channel(made.brain.plan());
        let front = self.start_front(sockets.front, &made)?;
        let (events, inbox) = mpsc::channel(EVENTS_MAX);
        let (replicator, copied) = self.replicate(&front, &made, events.clone());
        let (scene, inspection, integrity) = self.open_inspection(&made, events.clone())?;
        let told = (events, integrity.clone());
        let community = self.join(sockets.rescue, &made, told, plans_seen.clone())?;
        made.purges.open(&front, community.as_ref());
        let board = Arc::<StatusBoard>::default();
        let dns = start_dns(&self, sockets.names, plans_seen.clone())?;
        let certificates = Ordering::start(&self, &front, dns.as_deref())?;
        let offices = (dns.clone(), integrity.clone());
        let figures = self.figures(&made, replicator.counts(), offices, certificates.board);
        let inspecting = self.inspect(inspection, (&front, community.as_ref()), plans_seen.clone());
        let side_tasks = self.side_tasks(made.take_over, &made.log, (plans_seen, inspecting));
        let task = BrainTask {
            front: Arc::clone(&front),
            community,
            state: self.state,
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
            brain: tokio::spawn(task.run()),
            log: made.log,
            log_thread: made.log_thread,
            side_tasks: side_tasks.into_iter().chain(certificates.keeper).collect(),
            fetcher: made.fetcher,
            upstreams: self.upstreams,
            purges: made.purges,
            drills,
            integrity,
            dns,
            copied,
            told: certificates.told,
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
        ordered: CertificateBoard,
    ) -> Figures {
        Figures {
            site: self.web.to_string(),
            fetcher: made.fetcher.clone(),
            upstreams: Arc::clone(&self.upstreams),
            https: self.https.clone(),
            ordered,
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
        (events, integrity): (mpsc::Sender<Input>, Option<Arc<IntegrityOffice>>),
        plans: watch::Receiver<Arc<RoutePlan>>,
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
        settings.integrity = integrity;
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
        };
        let names = AliasNames::start(&self.settings, self.address, plans)?;
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
fn charge(made: &Made) -> LinkCharge {
    match made.pacer.clone() {
        Some(link) => Arc::new(move |bytes| link.charge(Clock.now(), bytes)),
        None => Arc::new(|_| {}),
    }
}

fn cores(settings: &Settings) -> usize {
    match settings.site.cores {
        0 if settings.link.rate.is_some_and(|rate| rate < ONE_CORE_LINK) => 1,
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    }
}

/// From the operating system; a predictable seed would only make jitter predictable.
fn seed() -> u64 {
    getrandom::u64().unwrap_or(0x5EED)
}

/// What links and registry tell between two looks of the Brain: a few messages a second for each of
/// at most 128 rescues.
const EVENTS_MAX: usize = 1024;
/// The operator gives one order at a time.
const ORDERS_MAX: usize = 4;
