//! What visitors are offered: versions, certificates, resumption.
//!
//! An offer is immutable and shared by all cores; a reload makes a new one. What must outlive it,
//! the keys of the tickets, is in [`TlsKeys`]: a visitor resumes on whichever core takes the
//! connection, before and after a reload. A restart makes new keys, for keys that were written to
//! disk would open what was recorded before; visitors then pay one full handshake.
//!
//! Early data (0-RTT) is off: whoever records it can play it again.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use levee_vocab::HostName;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::version::{TLS12, TLS13};

use super::certificates::{Certificates, Provider};
use super::resolver::Resolver;
use crate::challenges::{CHALLENGE_PROTOCOL, Challenges};
use crate::site::UnknownHost;

/// Oldest version of the protocol that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 alone.
    Tls13,
}

/// Keys that outlive a reload: those that tickets for resumption are sealed with. They change by
/// themselves every six hours, and a ticket is good for twelve at most.
#[derive(Clone)]
pub struct TlsKeys {
    tickets: Arc<dyn ProducesTickets>,
    provider: Provider,
    challenges: Option<Arc<Challenges>>,
}

/// What visitors are offered.
#[derive(Clone, Debug)]
pub struct TlsOffer {
    pub(crate) config: Arc<ServerConfig>,
    resolver: Arc<Resolver>,
}

impl TlsOffer {
    /// Whether there is a certificate for `name`, in lower case. Allocates nothing.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.resolver.find(name).is_some()
    }
}

/// Tickets for each full or resumed connection. A browser needs one for each connection that it
/// opens later, and each of those brings the next; a second costs 230 bytes of a small link.
const TICKETS: usize = 1;

pub(crate) fn provider() -> Provider {
    Arc::new(aws_lc_rs::default_provider())
}

impl TlsKeys {
    /// New keys, from the system's randomness.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new() -> Result<Self, rustls::Error> {
        Ok(Self {
            tickets: aws_lc_rs::Ticketer::new()?,
            provider: provider(),
            challenges: None,
        })
    }

    /// The same keys; offers made with them also answer authorities that check our names. They may
    /// be without any certificate: then nobody else can finish a handshake.
    pub fn answering(mut self, challenges: Arc<Challenges>) -> Self {
        self.challenges = Some(challenges);
        self
    }

    /// An offer of `certificates`; `preferred` is the site's own name, for visitors who name none.
    ///
    /// # Errors
    /// When there is no certificate to offer, and nothing else either.
    pub fn offer(
        &self,
        certificates: &Certificates,
        min: MinVersion,
        preferred: &HostName,
        unknown: UnknownHost,
    ) -> Result<TlsOffer, rustls::Error> {
        if certificates.all().is_empty() && self.challenges.is_none() {
            return Err(rustls::Error::NoCertificatesPresented);
        }
        let versions: &[_] = match min {
            MinVersion::Tls12 => &[&TLS13, &TLS12],
            MinVersion::Tls13 => &[&TLS13],
        };
        let resolver = Resolver::new(certificates, SystemTime::now(), preferred, unknown);
        let resolver = Arc::new(resolver.answering(self.challenges.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Resolver>::clone(&resolver));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.challenges.is_some() {
            // The last: who knows anything else gets that.
            config.alpn_protocols.push(CHALLENGE_PROTOCOL.to_vec());
        }
        config.ticketer = Arc::clone(&self.tickets);
        config.send_tls13_tickets = TICKETS;
        // Tickets are all that is needed; a table of sessions would be a lock for all cores.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.max_early_data_size = 0;
        Ok(TlsOffer {
            config: Arc::new(config),
            resolver,
        })
    }
}

impl fmt::Debug for TlsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsKeys").finish_non_exhaustive()
    }
}
