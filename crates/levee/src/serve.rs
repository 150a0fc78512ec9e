//! `levee serve`, `levee registry` and `levee dns`: from the command line to a running process and
//! back to an exit.
//!
//! Every socket is bound before anything else is started, so a taken port is told in a sentence and
//! changes nothing. What runs then is in `node.rs`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levee_net::{Inherited, ListenerError};
use levee_observe::{LoggingStyle, start_logging};
use levee_registry::{PrivateAddresses, RegistryLimits};
use levee_trust::Role;
use levee_vocab::Random;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::command::{NameServerOrder, Registry, Serve};
use crate::dns;
use crate::explain::told;
use crate::node::Node;
use crate::registry_finder::{self, KnownRegistries, RegistryPlaces};
use crate::registry_server::{self, RegistryServerSettings};
use crate::settings::{Complaint, Setting, Settings, SettingsFile, TrustSettings, read_text};
use crate::trust::{ListSources, Trust, keep_list};

/// Serves a site until SIGTERM or SIGINT, then drains.
///
/// # Errors
/// A sentence for the operator: a mistake in the settings, a taken port, an unusable folder.
pub fn run(serve: &Serve) -> Result<(), String> {
    // First of all: before anything is opened, what is open beside the standard streams is what a
    // service manager handed over.
    let inherited = Inherited::from_environment()
        .map_err(|error| format!("cannot use the sockets that were handed over: {error}"))?;
    log()?;
    let (settings, start) = settings(serve)?;
    levee_net::raise_open_files();
    // Two threads: one may be busy with the state folder while the other keeps the interval.
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("slow-side")
        .on_thread_start(levee_net::keep_nothing_freed)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let again = serve_again(serve, start);
    run_to_end(runtime, async {
        let node = Node::build(settings, &inherited).await?;
        node.run(again).await
    })
}

/// Longest that the end of the process waits for what has no deadline of its own.
const LEFTOVERS_MAX: Duration = Duration::from_secs(1);

/// Does `work`, and leaves threads behind that are still busy a little after it: a resolver of the
/// system that does not answer holds one for as long as it likes.
fn run_to_end<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFTOVERS_MAX);
    done
}

/// Runs a registry until SIGTERM or SIGINT.
///
/// # Errors
/// A sentence for the operator.
pub fn run_registry(registry: &Registry) -> Result<(), String> {
    log()?;
    let mut settings = RegistryServerSettings::default();
    settings.limits = RegistryLimits {
        private_addresses: match registry.allow_private {
            true => PrivateAddresses::Permitted,
            false => PrivateAddresses::Refused,
        },
        ..settings.limits
    };
    let trust = trust(registry)?;
    settings.peers.clone_from(&registry.peer);
    run_to_end(small_runtime()?, async {
        let listener = TcpListener::bind(registry.listen)
            .await
            .map_err(|cause| ListenerError::at(registry.listen, cause).to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let admin = match registry.admin {
            Some(admin) => Some(bind_admin(admin).await?),
            None => None,
        };
        let mut stop = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
        println!("levee registry: ready on {address}");
        let stopped = async {
            tokio::select! {
                _ = stop.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        let sources = ListSources {
            registries: list_registries(registry, &trust),
            period: LIST_PERIOD,
            role: Role::Registry,
        };
        let list = tokio::spawn(keep_list(Arc::clone(&trust), sources));
        let parts = (listener, settings, trust);
        let (desk, inbox) = registry_server::desk();
        let status = desk.clone();
        let shown = async {
            match admin {
                Some(admin) => registry_server::serve_status(admin, status).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = registry_server::run_with(parts, (desk, inbox), stopped) => {}
            () = shown => {}
        }
        list.abort();
        Ok(())
    })
}

/// The registry's own key and the members of its community.
fn trust(registry: &Registry) -> Result<Arc<Trust>, String> {
    let state = registry.state.as_deref();
    let settings = TrustSettings {
        identity: state.map(|folder| folder.join("identity.key")),
        authority: registry.authority,
        members: registry.members.clone(),
    };
    Trust::open(&settings, state).map(Arc::new)
}

/// Where a registry asks for newer member lists: nowhere in an open community, which has none.
fn list_registries(registry: &Registry, trust: &Trust) -> KnownRegistries {
    if !trust.is_closed() {
        return registry_finder::fixed(vec![]);
    }
    let places = RegistryPlaces {
        list: registry.peer.clone(),
        domain: None,
    };
    registry_finder::start(places, None, Random::from_seed(0))
}

async fn bind_admin(address: SocketAddr) -> Result<TcpListener, String> {
    let told = |cause| format!("{} (--admin)", ListenerError::at(address, cause));
    let listener = TcpListener::bind(address).await.map_err(told)?;
    let bound = listener.local_addr().map_err(told)?;
    println!("levee registry: admin on {bound}");
    Ok(listener)
}

/// Runs a name server until SIGTERM or SIGINT.
///
/// # Errors
/// A sentence for the operator.
pub fn run_name_server(order: &NameServerOrder) -> Result<(), String> {
    log()?;
    // Two threads: one may be busy with the state folder while the other answers.
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    run_to_end(runtime, dns::serve_community_zone(order))
}

/// Until somebody wants this process to end: SIGINT or SIGTERM.
///
/// Cancel safety: nothing is lost.
pub async fn told_to_stop() {
    let Ok(mut stop) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = stop.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// A runtime for one small job.
///
/// # Errors
/// When the system gives no thread or file descriptor.
pub fn small_runtime() -> Result<Runtime, String> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))
}

/// How to read the settings again at a reload: as they are now, and those that are others than at
/// the start.
pub type Again = Box<dyn Fn() -> Result<(Settings, Vec<&'static Setting>), String> + Send + Sync>;

fn serve_again(serve: &Serve, start: SettingsFile) -> Again {
    let serve = serve.clone();
    Box::new(move || {
        let (settings, now) = settings(&serve)?;
        Ok((settings, now.differences(&start)))
    })
}

/// What the file says, and over it what the command line says.
fn settings(serve: &Serve) -> Result<(Settings, SettingsFile), String> {
    let path = serve.config.as_deref().unwrap_or(Path::new("command line"));
    let complain = |complaints: Vec<Complaint>| told(path, &complaints);
    let mut file = match &serve.config {
        Some(path) => {
            let text = read_text(path)?;
            let folder = path.parent().unwrap_or(Path::new("."));
            SettingsFile::read(&text, folder).map_err(complain)?
        }
        None => SettingsFile::default(),
    };
    let folder = serve
        .folder
        .as_ref()
        .map(|folder| folder.display().to_string());
    let over = [
        ("site.folder", folder),
        (
            "site.listen",
            serve.listen.as_ref().map(ToString::to_string),
        ),
        ("site.name", serve.name.clone()),
        ("admin.listen", serve.admin.map(|admin| admin.to_string())),
    ];
    for (name, value) in over {
        if let Some(value) = value {
            file.set(name, &value);
        }
    }
    let settings = Settings::settle(&file).map_err(complain)?;
    Ok((settings, file))
}

fn log() -> Result<(), String> {
    let filter = std::env::var("LEVEE_LOG").unwrap_or_else(|_| "info".into());
    start_logging(LoggingStyle::Plain, &filter).map_err(|error| error.to_string())
}

/// How often a registry looks for a newer member list. A look is at one small file.
const LIST_PERIOD: Duration = Duration::from_secs(2);
