//! What an operator may set about the data plane.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_control::GateLimits;
use levee_net::ListenAddress;

use crate::challenges::Challenges;

/// Settings of the front. Limits are for the whole process; each core gets its share.
#[derive(Clone, Debug)]
pub struct FrontSettings {
    /// Where to listen; port 0 picks a free one.
    pub listen: Vec<ListenAddress>,
    /// The same for visitors who come by HTTPS; needs a [`crate::TlsOffer`].
    pub listen_tls: Vec<ListenAddress>,
    /// What becomes of visitors who come by HTTP.
    pub cleartext: Cleartext,
    /// What authorities that check our names are shown.
    pub challenges: Arc<Challenges>,
    /// Those of them on which each connection begins with a PROXY header, and only trusted proxies
    /// may connect ([`crate::SiteTable::trusting`]).
    pub proxied: Vec<ListenAddress>,
    /// Permission bits of sockets in the file system.
    pub unix_mode: u32,
    /// Threads that answer requests, at least 1.
    pub cores: usize,
    /// Deadlines of connections.
    pub deadlines: Deadlines,
    /// Sizes and numbers.
    pub limits: Limits,
    /// When requests wait and when they are refused.
    pub gate: GateLimits,
    /// Bytes that a connection costs beside its first response, where no plan says so.
    pub connection_overhead: u64,
}

/// What becomes of visitors of our own site who come by HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleartext {
    /// They are served.
    Served,
    /// They are sent to HTTPS.
    Redirected {
        /// The port that they are sent to; 0 means that of the first listener for HTTPS.
        port: u16,
    },
}

/// How long the other side may take. Nothing waits for ever.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the first byte of a head, or the opening of the connection, to the end of the head.
    pub head: Duration,
    /// Between requests of a connection.
    pub idle: Duration,
    /// In this time a slow visitor must send or take `progress_bytes` of a body.
    pub progress: Duration,
    /// See `progress`.
    pub progress_bytes: u64,
    /// How long a tunnel (WebSocket) may stand still in both directions.
    pub tunnel_idle: Duration,
}

/// Sizes and numbers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections. Beyond it the one that was idle longest is closed, or one whose visitor is
    /// too slow; if there is none, the new one is.
    pub connections: usize,
    /// Longest head of a request, at most 60 KiB; beyond it 431.
    pub head_bytes: usize,
    /// Longest target of a request; beyond it 414.
    pub target_bytes: usize,
    /// Requests that wait for capacity; beyond it 503.
    pub parked: usize,
    /// Memory for small files.
    pub file_memory: u64,
    /// Request body that is read and thrown away so that its connection can be used again.
    pub drained_body_bytes: u64,
}

impl FrontSettings {
    /// The defaults, listening on `listen`.
    pub fn listening_on(listen: Vec<SocketAddr>) -> Self {
        Self {
            listen: listen.into_iter().map(ListenAddress::Tcp).collect(),
            listen_tls: vec![],
            cleartext: Cleartext::Served,
            challenges: Arc::default(),
            proxied: Vec::new(),
            unix_mode: 0o666,
            cores: 1,
            deadlines: Deadlines::default(),
            limits: Limits::default(),
            gate: GateLimits::default(),
            //= dotslash 4.3: five packets of one connection cost 358 bytes beside its response.
            connection_overhead: 358,
        }
    }
}

/// Longest head that can be read at all: it is read into one buffer, with room for what follows.
pub(crate) const HEAD_BYTES_MAX: usize = 60 * 1024;

impl FrontSettings {
    /// What one of `cores` gets: limits are for all together.
    pub(crate) fn share_of(&self, cores: usize) -> Self {
        let cores = cores.max(1);
        let mut settings = self.clone();
        let limits = &mut settings.limits;
        limits.connections = (limits.connections / cores).max(1);
        limits.parked = (limits.parked / cores).max(1);
        limits.file_memory /= cores as u64;
        limits.head_bytes = limits.head_bytes.min(HEAD_BYTES_MAX);
        settings
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            progress: Duration::from_secs(20),
            progress_bytes: 2048,
            tunnel_idle: Duration::from_secs(3600),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_bytes: 16 * 1024,
            target_bytes: 8 * 1024,
            parked: 10_000,
            file_memory: 64 * 1024 * 1024,
            drained_body_bytes: 64 * 1024,
        }
    }
}
