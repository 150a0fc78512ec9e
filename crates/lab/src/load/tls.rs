//! A new TLS 1.3 connection for every request, with a full handshake or a resumed one.
//!
//! Every server is offered the same: one cipher suite, one group. So all do the same arithmetic,
//! whatever they would prefer. Which kind of handshake came about is counted, not assumed.
//!
//! Deliberately no check of certificates: the servers are our own, and a client that verifies
//! would be the bottleneck.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme,
    StreamOwned,
};

use super::{Asked, Handshakes, Seen, answer};

/// Enough that the server always has a handshake to do.
const THREADS: usize = 16;
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Nothing takes longer than this and is still an answer.
const LATENCY_MAX_US: u64 = 60_000_000;

/// Tickets that a thread keeps: servers give one to four with each connection. Each is used once,
/// as RFC 8446 appendix C.4 asks for; so a server that gives new ones only with a full handshake
/// has more of those.
const TICKETS_MAX: usize = 32;

/// What one thread saw.
struct Tally {
    full: u64,
    resumed: u64,
    errors: u64,
    microseconds: Histogram<u64>,
}

/// Connects, asks and closes, on several threads, for so many seconds.
pub(super) fn run(asked: &Asked, handshakes: Handshakes, seconds: u64) -> io::Result<Seen> {
    let begin = Instant::now();
    let deadline = begin + Duration::from_secs(seconds);
    let tallies: Vec<io::Result<Tally>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| visit(asked, handshakes, deadline)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, io::Result<Tally>>| {
            thread.join().expect("a visiting thread does not panic")
        };
        threads.into_iter().map(join).collect()
    });
    let milliseconds = begin.elapsed().as_millis();
    let mut sum = Tally::new();
    for tally in tallies {
        let tally = tally?;
        sum.full += tally.full;
        sum.resumed += tally.resumed;
        sum.errors += tally.errors;
        sum.microseconds
            .add(&tally.microseconds)
            .map_err(io::Error::other)?;
    }
    Ok(Seen {
        figures: vec![
            ("requests", sum.full + sum.resumed),
            ("errors", sum.errors),
            (
                "milliseconds",
                u64::try_from(milliseconds).unwrap_or(u64::MAX),
            ),
            ("p50_us", sum.microseconds.value_at_quantile(0.50)),
            ("p99_us", sum.microseconds.value_at_quantile(0.99)),
            ("full", sum.full),
            ("resumed", sum.resumed),
        ],
    })
}

impl Tally {
    fn new() -> Self {
        Self {
            full: 0,
            resumed: 0,
            errors: 0,
            microseconds: Histogram::new_with_bounds(1, LATENCY_MAX_US, 3).expect("good bounds"),
        }
    }
}

fn visit(asked: &Asked, handshakes: Handshakes, deadline: Instant) -> io::Result<Tally> {
    // Each thread has tickets of its own: nobody takes those of another, and there is no lock.
    let config = Arc::new(config(handshakes)?);
    let request = asked.request("close");
    let mut buffer = vec![0; 64 * 1024];
    let mut tally = Tally::new();
    while Instant::now() < deadline {
        let begin = Instant::now();
        match once(asked, &config, &request, &mut buffer) {
            Ok(HandshakeKind::Resumed) => tally.resumed += 1,
            Ok(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) => tally.full += 1,
            Err(_) => {
                tally.errors += 1;
                continue;
            }
        }
        let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        tally.microseconds.saturating_record(took);
    }
    Ok(tally)
}

fn once(
    asked: &Asked,
    config: &Arc<ClientConfig>,
    request: &str,
    buffer: &mut [u8],
) -> io::Result<HandshakeKind> {
    let name = ServerName::try_from(asked.host.clone()).map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let stream = TcpStream::connect(asked.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let mut stream = StreamOwned::new(session, stream);
    stream.write_all(request.as_bytes())?;
    answer::read(&mut stream, buffer)?;
    let kind = stream.conn.handshake_kind();
    kind.ok_or_else(|| io::Error::other("an answer before the handshake"))
}

fn config(handshakes: Handshakes) -> io::Result<ClientConfig> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    config.resumption = match handshakes {
        Handshakes::Full => Resumption::disabled(),
        Handshakes::Resumed => Resumption::in_memory_sessions(TICKETS_MAX),
    };
    Ok(config)
}

/// Believes everything, signatures too; see the head of this file. Only for servers that the lab
/// has started itself. It is not the one of `levee` (`way`), which looks at what strangers deliver
/// and checks that whoever shows a certificate has its key: here that would be the arithmetic that
/// is kept away from the client, and more kinds of signatures on offer would let each server pick
/// its own.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
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
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
