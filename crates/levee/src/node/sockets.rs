//! Every socket of a node, bound before anything else is built: a taken port is told in a sentence
//! and changes nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use levee_control::GateLimits;
use levee_net::{Inherited, ListenerError};
use levee_proxy::{Bound, Cleartext, Front, FrontSettings};
use tokio::net::TcpListener;

use crate::dns::NameSockets;
use crate::https::Https;
use crate::settings::{DnsSettings, Settings};

/// Every socket of the node.
pub(super) struct Sockets {
    pub(super) front: Bound,
    pub(super) admin: TcpListener,
    pub(super) rescue: Option<TcpListener>,
    /// Of our own name server.
    pub(super) names: Option<NameSockets>,
}

/// A socket that was handed over and would never be looked at would let its visitors wait for ever.
fn refuse_unknown(settings: &Settings, inherited: &Inherited) -> Result<(), String> {
    let tls = settings.tls.iter().flat_map(|tls| &tls.listen);
    let known: Vec<_> = settings.site.listen.iter().chain(tls).collect();
    match inherited.addresses().find(|one| !known.contains(one)) {
        None => Ok(()),
        Some(address) => Err(format!(
            "the service manager handed over a socket on {address}, which neither site.listen \
             nor tls.listen names; add it there, or take it out of the socket unit"
        )),
    }
}

/// Binds them all, or none.
pub(super) async fn bind(
    settings: &Settings,
    https: Option<&Https>,
    cores: usize,
    inherited: &Inherited,
) -> Result<Sockets, String> {
    refuse_unknown(settings, inherited)?;
    let mut front = FrontSettings::listening_on(vec![]);
    if let Some(https) = https {
        front.challenges = Arc::clone(https.challenges());
    }
    front.listen.clone_from(&settings.site.listen);
    front.unix_mode = settings.site.unix_mode;
    if let Some(tls) = &settings.tls {
        front.listen_tls = tls.listen.clone();
        front.cleartext = match tls.redirect {
            true => Cleartext::Redirected { port: tls.port },
            false => Cleartext::Served,
        };
    }
    front.proxied = settings.site.proxied.clone();
    front.cores = cores;
    front.limits.connections = settings.limits.connections;
    front.deadlines.head = settings.limits.head_time;
    front.deadlines.idle = settings.limits.idle_time;
    front.deadlines.tunnel_idle = settings.limits.tunnel_idle_time;
    front.limits.head_bytes = settings.limits.head_bytes;
    front.limits.target_bytes = settings.limits.head_bytes / 2;
    front.connection_overhead = settings.link.overhead;
    front.gate = GateLimits {
        wait_max: settings.rescue.wait_max,
        ..GateLimits::default()
    };
    let front = Front::bind(front, inherited).map_err(|error| error.to_string())?;
    let listen = async |address: SocketAddr, name: &str| {
        let listener = TcpListener::bind(address).await;
        listener.map_err(|cause| format!("{} ({name})", ListenerError::at(address, cause)))
    };
    let admin = listen(settings.admin, "admin.listen").await?;
    let rescue = match &settings.community {
        Some(community) => Some(listen(community.rescue_listen, "community.rescue_listen").await?),
        None => None,
    };
    let names = settings.dns.as_ref().and_then(DnsSettings::listen);
    Ok(Sockets {
        front,
        admin,
        rescue,
        names: names.map(NameSockets::bind).transpose()?,
    })
}
