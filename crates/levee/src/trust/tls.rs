//! TLS between members: each side shows a certificate that it made of its own identity.
//!
//! The certificate has no name that anybody looks at, no issuer and no end; what TLS proves is that
//! the other side holds the key in it. What that key may do is asked of the member list afterwards
//! ([`super::Trust::permits`]): so a list that has changed counts at once, and a site that the
//! registry does not know yet can be told so, and hand out lists. TLS 1.3 only, no resumption: a
//! ticket would outlive an expulsion.

use std::io;
use std::sync::Arc;

use levee_trust::{Identity, PublicKey};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::CommunityStream;

/// What is spoken inside, so that a connection for one protocol cannot be turned into another
/// (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The rescue protocol.
    Rescue,
    /// The registry protocol, also between registries.
    Registry,
}

impl Channel {
    fn protocols(self) -> Vec<Vec<u8>> {
        let name: &[u8] = match self {
            Self::Rescue => b"levee-rescue/1",
            Self::Registry => b"levee-registry/1",
        };
        vec![name.to_vec()]
    }
}

/// Both ends of TLS with this identity.
pub(super) struct Tls {
    client: ClientConfig,
    server: ServerConfig,
}

impl Tls {
    /// Makes the certificate.
    pub(super) fn new(identity: &Identity) -> Result<Self, String> {
        let told = |error: Error| format!("cannot prepare TLS between members: {error}");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Arc::new(AnyIdentity {
            provider: Arc::clone(&provider),
        });
        let key = || PrivatePkcs8KeyDer::from(identity.to_pkcs8());
        let chain = vec![certificate(identity)?];
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(told)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_auth_cert(chain.clone(), key().into());
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(told)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key().into());
        let (mut client, mut server) = (client.map_err(told)?, server.map_err(told)?);
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Self { client, server })
    }

    /// Speaks TLS on a connection that we opened; gives the key of the other side.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        channel: Channel,
    ) -> io::Result<(CommunityStream, PublicKey)> {
        let mut config = self.client.clone();
        config.alpn_protocols = channel.protocols();
        let address = stream.peer_addr()?.ip();
        let connector = TlsConnector::from(Arc::new(config));
        let name = ServerName::IpAddress(address.into());
        let stream = connector.connect(name, stream).await?;
        let key = key_of(stream.get_ref().1.peer_certificates())?;
        Ok((Box::new(stream), key))
    }

    /// Speaks TLS on a connection that the other side opened; gives its key.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        channel: Channel,
    ) -> io::Result<(CommunityStream, PublicKey)> {
        let mut config = self.server.clone();
        config.alpn_protocols = channel.protocols();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let stream = acceptor.accept(stream).await?;
        let key = key_of(stream.get_ref().1.peer_certificates())?;
        Ok((Box::new(stream), key))
    }
}

/// A certificate that says nothing but the key.
fn certificate(identity: &Identity) -> Result<CertificateDer<'static>, String> {
    let told = |error: rcgen::Error| format!("cannot make a certificate: {error}");
    let pkcs8 = PrivatePkcs8KeyDer::from(identity.to_pkcs8());
    let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &rcgen::PKCS_ED25519);
    let parameters = rcgen::CertificateParams::new(Vec::new()).map_err(told)?;
    let made = parameters.self_signed(&pair.map_err(told)?);
    Ok(made.map_err(told)?.der().clone())
}

fn key_of(chain: Option<&[CertificateDer<'_>]>) -> io::Result<PublicKey> {
    let first = chain.and_then(<[_]>::first);
    let key = first.and_then(|certificate| key_in(certificate).ok());
    key.ok_or_else(|| io::Error::other("no Ed25519 certificate"))
}

fn key_in(certificate: &CertificateDer<'_>) -> Result<PublicKey, Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let info = parsed.subject_public_key_info();
    let not_ours = Error::InvalidCertificate(CertificateError::UnhandledCriticalExtension);
    PublicKey::from_spki(&info).ok_or(not_ours)
}

/// Takes every certificate with an Ed25519 key whose holder is at the other end.
#[derive(Debug)]
struct AnyIdentity {
    provider: Arc<CryptoProvider>,
}

impl AnyIdentity {
    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }
}

/// TLS 1.2 is switched off, so nobody gets as far as to ask.
fn refused() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.3 only".to_owned()))
}

impl ServerCertVerifier for AnyIdentity {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        key_in(end_entity).map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refused()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for AnyIdentity {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        key_in(end_entity).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refused()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
