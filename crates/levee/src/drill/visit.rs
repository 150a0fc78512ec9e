//! One visit of a drill: asks the site with the key, follows the redirect, looks at each byte.
//!
//! Each visitor of a crowd comes with connections of its own, and so does each visit. It does what
//! a browser does and nothing that a browser could not do, but for the key, which only the site
//! itself gets to see.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_proxy::DRILL_FIELD;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::account::Invitation;

/// Where each alias leads, as far as is known.
pub(super) type Guide = Arc<BTreeMap<String, Option<SocketAddr>>>;

/// People give up after so long (dotslash 5.1).
pub(super) const PATIENCE: Duration = Duration::from_secs(7);

/// What every visit needs to know.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) invitation: Arc<Invitation>,
    pub(super) guide: watch::Receiver<Guide>,
}

/// What a body looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) bytes: u64,
    hash: u64,
}

/// A visit that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visited {
    pub(super) outcome: Outcome,
    /// What it waited for a name, which is no fault of the rescue server.
    pub(super) waited: Duration,
}

/// How a visit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The site answered itself.
    Here(Body),
    /// The site answered that the drill is above its part of the link.
    AboveShare,
    /// A rescue server answered under this alias.
    Helped { alias: String, body: Body },
    /// A rescue server, or none where it is the site, did not answer well.
    Failed { alias: Option<String>, why: String },
}

/// Whether the visitor saw what the site shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Same,
    Different,
}

/// What a server answered.
#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    location: Option<String>,
    print: Print,
}

/// Visits `path`, which looks like `expected`. Never longer than [`PATIENCE`].
///
/// Cancel safety: dropped half-way, its connections close.
pub(super) async fn visit(ground: Ground, path: String, expected: Print) -> Visited {
    let mut way = Way::default();
    let walked = timeout(PATIENCE, walk(&ground, &path, expected, &mut way)).await;
    let (alias, waited) = (way.alias, way.waited);
    let outcome = match walked {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(why)) => Outcome::Failed { alias, why },
        Err(_) => {
            let why = format!("no whole answer within {} s", PATIENCE.as_secs());
            Outcome::Failed { alias, why }
        }
    };
    Visited { outcome, waited }
}

/// How far a visit has come.
#[derive(Debug, Default)]
struct Way {
    alias: Option<String>,
    waited: Duration,
}

/// What the site itself shows at `path`.
///
/// # Errors
/// Half a sentence: what came instead.
///
/// Cancel safety: as [`visit`].
pub(super) async fn look_at(ground: &Ground, path: &str) -> Result<Print, String> {
    let Invitation { site, address, .. } = &*ground.invitation;
    match get(*address, site, path, None).await? {
        Answer {
            status: 200, print, ..
        } => Ok(print),
        Answer {
            status: 301 | 302 | 307 | 308,
            location: Some(location),
            ..
        } if location.starts_with("https://") => {
            Err("it sends its visitors to HTTPS, and a drill goes by HTTP".to_owned())
        }
        Answer {
            status: 301 | 302 | 307 | 308,
            location: Some(location),
            ..
        } => Err(format!("it sends its visitors to {location}; {ANOTHER}")),
        Answer { status, .. } => Err(format!("it answers {status}; {ANOTHER}")),
    }
}

const ANOTHER: &str = "choose another page with --path";

async fn walk(
    ground: &Ground,
    path: &str,
    expected: Print,
    way: &mut Way,
) -> Result<Outcome, String> {
    let Invitation { site, address, key } = &*ground.invitation;
    let answer = get(*address, site, path, Some(key)).await?;
    let location = match (answer.status, answer.location) {
        (200, _) => {
            let body = compare(ground, path, (expected, answer.print)).await?;
            return Ok(Outcome::Here(body));
        }
        (429, _) => return Ok(Outcome::AboveShare),
        (302, Some(location)) => location,
        (status, _) => return Err(format!("the site answers {status}")),
    };
    let (alias, target) = split(&location).ok_or(format!("a redirect to `{location}`"))?;
    way.alias = Some(alias.clone());
    let asked = Instant::now();
    let address = find(ground, &alias).await;
    way.waited = since(asked);
    let address = address.ok_or("nobody knows its address".to_owned())?;
    let answer = get(address, &alias, &target, None).await?;
    match answer.status {
        200 => {
            let body = compare(ground, path, (expected, answer.print)).await?;
            Ok(Outcome::Helped { alias, body })
        }
        302 => Err("it sends the visitor back".to_owned()),
        503 => Err("it has no room (503)".to_owned()),
        status => Err(format!("it answers {status}")),
    }
}

/// A page may have changed since the drill began: only a body that is not what the site shows
/// right now is a wrong one.
async fn compare(
    ground: &Ground,
    path: &str,
    (expected, seen): (Print, Print),
) -> Result<Body, String> {
    if seen == expected || seen == look_at(ground, path).await? {
        return Ok(Body::Same);
    }
    Ok(Body::Different)
}

async fn find(ground: &Ground, alias: &str) -> Option<SocketAddr> {
    let mut guide = ground.guide.clone();
    // The redirect may be faster than the account of who helps.
    let known = guide.wait_for(|guide| guide.contains_key(alias)).await;
    known.ok()?.get(alias).copied().flatten()
}

/// Name with port, and path, of `http://name:port/path`.
fn split(location: &str) -> Option<(String, String)> {
    let uri: Uri = location.parse().ok()?;
    let host = uri.host()?;
    let port = uri.port_u16().unwrap_or(80);
    let target = uri.path_and_query()?.as_str().to_owned();
    let is_http = uri.scheme_str() == Some("http");
    is_http.then(|| (format!("{host}:{port}"), target))
}

async fn get(
    address: SocketAddr,
    host: &str,
    target: &str,
    key: Option<&str>,
) -> Result<Answer, String> {
    let shown = host.strip_suffix(":80").unwrap_or(host);
    let mut request = Request::get(target)
        .header(header::HOST, shown)
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close");
    if let Some(key) = key {
        request = request.header(DRILL_FIELD, key);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(told)?;
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|error| format!("{address} cannot be reached: {error}"))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(told)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(told)?;
        let status = response.status().as_u16();
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let mut body = response.into_body();
        let mut print = Print::EMPTY;
        while let Some(frame) = body.frame().await {
            if let Some(bytes) = frame.map_err(told)?.data_ref() {
                print.add(bytes);
            }
        }
        Ok(Answer {
            status,
            location,
            print,
        })
    };
    tokio::pin!(answer);
    // The connection has to be driven while the answer is awaited; its error shows in the answer.
    tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

/// By which operators find the visits of a drill in their logs.
const AGENT: &str = concat!("levee-drill/", env!("CARGO_PKG_VERSION"));

impl Print {
    /// Of no bytes.
    const EMPTY: Self = Self {
        bytes: 0,
        hash: 0xCBF2_9CE4_8422_2325,
    };

    /// FNV-1a: the same however the bytes come in pieces. Chance alone must not fool it.
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash = bytes.iter().fold(self.hash, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
    }
}

fn told(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The time since `began`; a visit is late from when it should have begun, not from when it could.
pub(super) fn since(began: Instant) -> Duration {
    Instant::now().saturating_duration_since(began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_taken_apart() {
        let parts = |text: &str| split(text).map(|(alias, target)| alias + " " + &target);
        let one = parts("http://www-vh1.a.example:8080/a?b");
        assert_eq!(one.as_deref(), Some("www-vh1.a.example:8080 /a?b"));
        let two = parts("http://www-vh1.a.example/");
        assert_eq!(two.as_deref(), Some("www-vh1.a.example:80 /"));
        assert_eq!(parts("/elsewhere"), None);
        assert_eq!(parts("https://www-vh1.a.example/"), None);
    }

    #[test]
    fn a_print_does_not_depend_on_the_pieces() {
        let (mut one, mut two) = (Print::EMPTY, Print::EMPTY);
        one.add(b"all at once");
        two.add(b"all at");
        two.add(b" once");
        assert_eq!(one, two);
        two.add(b".");
        assert_ne!(one, two);
    }
}
