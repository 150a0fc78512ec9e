//! The way of a visit to a server, in a drill or when one looks at what others deliver: by HTTP, or
//! by HTTPS as a browser goes, with the name in the clear (SNI, RFC 6066).
//!
//! In a drill nothing is asked by HTTPS before the server has shown a certificate for that name, by
//! an authority that is believed: those of this machine, or those of a file. One that visitors do
//! not believe is what a drill should find. A look believes every certificate ([`Authorities::any`]
//! says why). Each visitor comes for the first time, so no session is ever resumed.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use levee_vocab::WebAddress;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How the visitors of a site come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// By HTTP, or either way.
    #[default]
    Http,
    /// By HTTPS alone: whoever comes by HTTP is sent there.
    Https,
}

impl Scheme {
    /// The port that a URL need not name.
    pub const fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// A name and port as they stand in a URL of this scheme, and in `Host`.
    pub fn authority(self, place: &WebAddress) -> String {
        match place.port == self.usual_port() {
            true => place.host.to_string(),
            false => format!("{}:{}", place.host, place.port),
        }
    }
}

/// Bytes to a server and from it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A server that is visited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) address: SocketAddr,
    /// Its name, with a port unless that is the usual one of the scheme.
    pub(crate) host: &'a str,
}

/// Whose certificates are believed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Authorities(Result<TlsConnector, String>);

impl Authorities {
    /// Those in `file`, in PEM; without one those of this machine, whose lack is told when one is
    /// needed.
    ///
    /// # Errors
    /// A sentence, where the file cannot be used.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, String> {
        let Some(file) = file else {
            return Ok(Self(of_this_machine()));
        };
        let roots = roots(file).map_err(|error| format!("--ca {}: {error}", file.display()))?;
        let builder = builder()?.with_root_certificates(roots);
        Ok(Self(Ok(connector(builder.with_no_client_auth()))))
    }

    /// Every certificate, for looks. What is compared is signed by the origin, whoever delivers it;
    /// and a chain that had to hold would spare a liar, who could show the origin one that does
    /// not. What visitors' browsers believe (the community's own authority, perhaps) is not known
    /// here; a drill finds what they do not. So somebody on the way can make a member seem to
    /// alter pages, as by HTTP: he can cut it off as well.
    pub(crate) fn any() -> Self {
        let believing = Arc::new(Believing(Arc::new(aws_lc_rs::default_provider())));
        Self(builder().map(|builder| {
            let builder = builder.dangerous();
            let builder = builder.with_custom_certificate_verifier(believing);
            connector(builder.with_no_client_auth())
        }))
    }

    /// Connects to `place`, and by HTTPS shakes hands.
    ///
    /// # Errors
    /// Half a sentence.
    ///
    /// Cancel safety: dropped half-way, the connection closes.
    pub(crate) async fn connect(&self, place: Place<'_>) -> Result<Box<dyn Stream>, String> {
        let address = place.address;
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| format!("{address} cannot be reached: {error}"))?;
        match place.scheme {
            Scheme::Http => Ok(Box::new(stream)),
            Scheme::Https => self.shake_hands(place, stream).await,
        }
    }

    async fn shake_hands(
        &self,
        place: Place<'_>,
        stream: TcpStream,
    ) -> Result<Box<dyn Stream>, String> {
        let connector = self.0.as_ref().map_err(Clone::clone)?;
        let host = place.host;
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("{name} is no name for HTTPS"))?;
        match connector.connect(server, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => {
                let inner = error.get_ref().and_then(|error| error.downcast_ref());
                let way_out = match inner {
                    Some(rustls::Error::InvalidCertificate(_)) => WAY_OUT,
                    Some(_) | None => "",
                };
                Err(format!(
                    "{name} cannot be visited by HTTPS: {error}{way_out}"
                ))
            }
        }
    }
}

impl std::fmt::Debug for Authorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorities")
    }
}

/// Takes every certificate; who shows it must still have its key. For looks at what is signed in
/// another way ([`Authorities::any`]), and for nothing else: where anything is sent that is not for
/// everybody, or anything is believed because of who says it, this would let in whoever is on the
/// way.
#[derive(Debug)]
struct Believing(Arc<CryptoProvider>);

impl ServerCertVerifier for Believing {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn of_this_machine() -> Result<TlsConnector, String> {
    let with_roots = builder()?.with_native_roots();
    let builder = with_roots.map_err(|error| {
        format!("this machine knows no authorities: {error}; install ca-certificates, or {CA}")
    })?;
    Ok(connector(builder.with_no_client_auth()))
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

fn connector(mut config: ClientConfig) -> TlsConnector {
    config.resumption = Resumption::disabled();
    Arc::new(config).into()
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&text) {
        let root = root.map_err(|error| error.to_string())?;
        roots.add(root).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("no certificate in it".to_owned()),
        false => Ok(roots),
    }
}

const CA: &str = "name the authority by --ca FILE";
const WAY_OUT: &str = "; if the certificate is of an authority of your own, name it by --ca FILE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_names_no_authority() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = Authorities::read(Some(file.path())).unwrap_err();
        assert!(told.ends_with("no certificate in it"), "{told}");
        let told = Authorities::read(Some(Path::new("/no/such/file"))).unwrap_err();
        assert!(told.starts_with("--ca /no/such/file: "), "{told}");
    }
}
