//! The way to the authority: HTTPS with a deadline on everything, and a limit on what it may say.
//!
//! It is known by the system's roots, or by those of `acme.root`. What it says of waiting
//! (`Retry-After`) is noted here, because the library keeps it to itself where the authority
//! refuses.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::response::Parts;
use http::{Method, Request};
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, Problem};
use levee_net::Shared;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::error::{AcmeError, causes};

type Https = Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>;

/// See the head of this file.
#[derive(Clone)]
pub(super) struct Authority {
    client: Https,
    retry_after: Arc<Shared<Option<Duration>>>,
}

/// How something was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    ByGet,
    ByPost,
}

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for a whole answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Longest answer. A chain has some 6 kB.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

impl Authority {
    /// A way to an authority that is known by the certificates in `root`, or by the system's.
    ///
    /// # Errors
    /// When there are no roots. Blocks while it reads them.
    pub fn new(root: Option<&Path>) -> Result<Self, AcmeError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| AcmeError::Roots(error.to_string()))?;
        let builder = match root {
            Some(path) => builder.with_root_certificates(roots(path)?),
            None => builder
                .with_native_roots()
                .map_err(|error| AcmeError::Roots(error.to_string()))?,
        };
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_MAX));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(builder.with_no_client_auth())
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            retry_after: Arc::default(),
        })
    }

    /// What the last answer said of waiting.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.with(|told| *told)
    }
}

impl HttpClient for Authority {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let asked_by = match *request.method() == Method::GET {
            true => Asked::ByGet,
            false => Asked::ByPost,
        };
        let (asked, told) = (self.client.request(request), Arc::clone(&self.retry_after));
        Box::pin(async move {
            let answer = async {
                let answer = asked.await.map_err(|error| causes(&error))?;
                let (parts, body) = answer.into_parts();
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
                let body = body.map_err(|error| causes(&*error))?;
                Ok::<_, String>((parts, body.to_bytes()))
            };
            let answer = tokio::time::timeout(ANSWER_MAX, answer).await;
            let late = || format!("no answer within {} s", ANSWER_MAX.as_secs());
            let answer = answer.map_err(|_| late()).and_then(|answer| answer);
            let (parts, body) = answer.map_err(|cause| Error::Other(cause.into()))?;
            let seconds = parts.headers.get(RETRY_AFTER);
            let seconds = seconds.and_then(|value| value.to_str().ok()?.trim().parse().ok());
            told.replace(seconds.map(Duration::from_secs));
            refuse_nonsense(&parts, &body, asked_by)?;
            let body = Box::new(body);
            Ok(BytesResponse { parts, body })
        })
    }
}

/// The library takes every answer to a GET for what it asked for, and every failure for one that
/// explains itself.
fn refuse_nonsense(parts: &Parts, body: &[u8], asked_by: Asked) -> Result<(), Error> {
    if parts.status.is_success() || body.is_empty() {
        return Ok(());
    }
    match (serde_json::from_slice::<Problem>(body), asked_by) {
        (Ok(_), Asked::ByPost) => Ok(()),
        (Ok(problem), Asked::ByGet) => Err(Error::Api(problem)),
        (Err(_), _) => Err(Error::Other(format!("it answers {}", parts.status).into())),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, AcmeError> {
    let told = |cause: String| AcmeError::Roots(format!("{}: {cause}", path.display()));
    let text = std::fs::read(path).map_err(|error| told(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&text) {
        let root = root.map_err(|error| told(error.to_string()))?;
        roots.add(root).map_err(|error| told(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(told("no certificate in it".into())),
        false => Ok(roots),
    }
}
