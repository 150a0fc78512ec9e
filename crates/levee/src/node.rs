//! A running server: every part built and wired in one visible place.
//!
//! Order matters once: every socket is bound first, then everything is built, then started. What
//! fails before the start is told in a sentence and leaves nothing behind. A reload builds what may
//! change anew and swaps it whole; SIGTERM drains.

mod certificates;
mod face;
mod inspection;
mod made;
mod parts;
mod purge_office;
mod reach;
mod signals;
mod sockets;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use levee_net::{Clock, Inherited, Shared};
use levee_observe::{AccessLog, AccessLogThread, StatusBoard};
use levee_proxy::{Fetcher, Front, Upstreams};
use levee_vocab::{ByteRate, WebAddress};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use self::certificates::{Keeping, Ordering};
use self::face::Face;
use self::made::{admin_limits, find_registries, interface_speed, sites, trust};
use self::parts::{Made, Parts, charge, cores, seed};
use self::purge_office::PurgeOffice;
use self::reach::own_address;
pub(crate) use self::reach::unheard;
use self::signals::{Signals, Told};
use self::sockets::bind;
use crate::admin;
use crate::brain_task::Order;
use crate::dns::Dns;
use crate::drill::DrillOffice;
use crate::https::Https;
use crate::integrity::IntegrityOffice;
use crate::replicator::CopiedSite;
use crate::serve::Again;
use crate::service_manager;
use crate::settings::Settings;
use crate::state::StateFolder;

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
    ordering: Ordering,
    fetcher: Fetcher,
    upstreams: Arc<Upstreams>,
    purges: Arc<PurgeOffice>,
    drills: Arc<DrillOffice>,
    integrity: Option<Arc<IntegrityOffice>>,
    dns: Option<Arc<Dns>>,
    /// What is copied, and how.
    copied: watch::Sender<CopiedSite>,
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
            told: self.ordering.told,
            in_force: Shared::new(self.settings),
            web: self.web.clone(),
            address: self.address,
            link: self.link,
        });
        let admin = tokio::spawn(admin::serve(admin, face.clone(), limits));
        announce(&face, self.https_port, admin_address);
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
        join(self.side_tasks, self.ordering.keeping).await;
        drop(front);
        // The writer ends when nobody can give it lines any more.
        let writer = self.log_thread;
        let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        Ok(())
    }
}

/// The port for HTTPS, and whether visitors get anything there.
enum Secure {
    Certified(u16),
    /// There is no certificate for the site yet.
    Waiting(u16),
}

impl Secure {
    fn of(face: &Face, port: u16) -> Self {
        match &face.https {
            Some(https) if https.covers(&face.web.host) => Self::Certified(port),
            Some(_) | None => Self::Waiting(port),
        }
    }
}

/// Prints that the server is ready.
fn announce(face: &Face, https_port: Option<u16>, admin: SocketAddr) {
    let https = https_port.map(|port| Secure::of(face, port));
    println!("{}", ready_line(&face.web, https, admin));
}

/// The one line of a server that is ready.
fn ready_line(web: &WebAddress, https: Option<Secure>, admin: SocketAddr) -> String {
    let (port, lack) = match https {
        None => return format!("levee: ready, site http://{web}, admin http://{admin}"),
        Some(Secure::Certified(port)) => (port, ""),
        Some(Secure::Waiting(port)) => (port, " (no certificate yet)"),
    };
    let port = match port {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let host = &web.host;
    format!("levee: ready, site http://{web}, https://{host}{port}{lack}, admin http://{admin}")
}

async fn reload(face: &Arc<Face>) {
    let face = Arc::clone(face);
    // Reads files, so not on the threads that keep the interval.
    match tokio::task::spawn_blocking(move || face.change()).await {
        // What was not taken stands in the log by then.
        Ok(Ok(done)) => tracing::info!("{}", done.told),
        Ok(Err(error)) => tracing::error!("not reloaded, the old settings stay in force: {error}"),
        Err(error) => tracing::error!(%error, "reload failed"),
    }
}

/// Waits for tasks that were cancelled just now, and ends the keeping of certificates.
async fn join(tasks: Vec<JoinHandle<()>>, keeping: Option<Keeping>) {
    for task in tasks {
        let _ = task.await;
    }
    if let Some(keeping) = keeping {
        keeping.stop().await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingsFile;

    #[tokio::test]
    async fn the_first_status_is_there_before_anybody_is_told_that_the_server_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[site]\nname = \"news.example.org\"\nlisten = [\"127.0.0.1:0\"]\n\
                    folder = \".\"\ncores = 1\n[admin]\nlisten = \"127.0.0.1:0\"\n";
        let file = SettingsFile::read(text, folder.path()).unwrap();
        let settings = Settings::settle(&file).unwrap();
        let node = Node::build(settings, &Inherited::default()).await.unwrap();
        // No other task has run since on this one thread.
        let status = node.board.status();
        assert!(status.ready);
        assert!(status.link.capacity > 0);
    }

    #[test]
    fn the_first_line_says_where_a_certificate_is_missing() {
        let web = WebAddress {
            host: "a.example".parse().unwrap(),
            port: 80,
        };
        let admin = SocketAddr::from(([127, 0, 0, 1], 9100));
        let line = |https| {
            let line = ready_line(&web, https, admin);
            let middle = line.strip_prefix("levee: ready, site http://a.example");
            let middle = middle
                .unwrap()
                .strip_suffix(", admin http://127.0.0.1:9100");
            middle.unwrap().to_owned()
        };
        assert_eq!(line(None), "");
        assert_eq!(line(Some(Secure::Certified(443))), ", https://a.example");
        let certified = line(Some(Secure::Certified(8443)));
        assert_eq!(certified, ", https://a.example:8443");
        let waiting = line(Some(Secure::Waiting(443)));
        assert_eq!(waiting, ", https://a.example (no certificate yet)");
    }
}
