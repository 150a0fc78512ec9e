//! Which certificate authorities a visitor believes, and the handshake by which it finds out.
//!
//! A visitor does what a browser does: the server must show a certificate for the name that was
//! asked for, signed by somebody whom the visitor believes, or nothing is asked of it. Each visitor
//! comes for the first time, so no session is ever resumed.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Authorities that are believed. Cheap to clone.
#[derive(Clone)]
pub struct Authorities(TlsConnector);

impl Authorities {
    /// Those whose root certificates stand in `files`, in PEM.
    ///
    /// # Errors
    /// Where a file cannot be read, or holds no certificate.
    pub fn read(files: &[PathBuf]) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for file in files {
            let certificates = CertificateDer::pem_file_iter(file).map_err(io::Error::other)?;
            for certificate in certificates {
                let certificate = certificate.map_err(io::Error::other)?;
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config).into()))
    }

    /// Shakes hands with the server at the other end of `stream`, which must prove that it is
    /// `host`. Without a word about the protocol, so HTTP/1.1 is spoken.
    ///
    /// Cancel safety: dropped half-way, the connection is closed.
    pub(super) async fn shake_hands<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities")
    }
}
