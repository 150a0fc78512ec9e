//! HTTPS: certificates, handshakes, and connections whose bytes travel in TLS 1.2 or 1.3.
//!
//! rustls does the protocol and aws-lc-rs the cryptography (record 0017). What is ours: which
//! certificate a visitor gets ([`Certificates`]), what outlives a reload ([`TlsKeys`]), and a
//! stream that the engine uses like a socket ([`TlsStream`]). Nothing here decides when a handshake
//! may take its time of a core; that is the engine's (`engine/handshake.rs`).

mod certificate;
mod certificates;
mod offer;
mod resolver;
mod scratch;
mod session;
mod stream;

pub use certificate::{Certificate, CertificateFlaw, PairFiles};
pub use certificates::{CertificateWarning, Certificates, CertificatesError};
pub(crate) use offer::provider;
pub use offer::{MinVersion, TlsKeys, TlsOffer};
pub(crate) use session::{Agreed, Resumption, Version};
pub(crate) use stream::{Handshake, HandshakeProgress, TlsStream, Waits};
