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
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_proxy::{DRILL_FIELD, DRILL_LOOK};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::account::Invitation;
use crate::way::{Authorities, Place, Scheme};

/// Where each alias leads, as far as is known.
pub(super) type Guide = Arc<BTreeMap<String, Option<SocketAddr>>>;

/// People give up after so long (dotslash 5.1).
pub(super) const PATIENCE: Duration = Duration::from_secs(7);

/// What every visit needs to know.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) invitation: Arc<Invitation>,
    pub(super) guide: watch::Receiver<Guide>,
    pub(super) authorities: Authorities,
}

impl Ground {
    /// The site itself.
    fn site(&self) -> Place<'_> {
        Place {
            scheme: self.invitation.scheme,
            address: self.invitation.address,
            host: &self.invitation.site,
        }
    }
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
    /// The site answered that the drill is over.
    TooLate,
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

/// What the site itself shows at `path` when the drill begins. The site is told that it is its
/// drill that looks, so that pages that fill its link are no crowd.
///
/// # Errors
/// Half a sentence: what came instead.
///
/// Cancel safety: as [`visit`].
pub(super) async fn look_first(ground: &Ground, path: &str) -> Result<Print, String> {
    let key = format!("{}{DRILL_LOOK}", ground.invitation.key);
    look_at(ground, path, Some(&key)).await
}

async fn look_at(ground: &Ground, path: &str, key: Option<&str>) -> Result<Print, String> {
    match get(ground, ground.site(), path, key).await? {
        Answer {
            status: 200, print, ..
        } => Ok(print),
        Answer {
            status: 301 | 302 | 307 | 308,
            location: Some(location),
            ..
        } if location.starts_with("https://") && ground.invitation.scheme == Scheme::Http => Err(
            format!("it sends its visitors to HTTPS by itself, to {location}; {REDIRECT}"),
        ),
        Answer {
            status: 301 | 302 | 307 | 308,
            location: Some(location),
            ..
        } => Err(format!("it sends its visitors to {location}; {ANOTHER}")),
        Answer { status, .. } => Err(format!("it answers {status}; {ANOTHER}")),
    }
}

const REDIRECT: &str = "let levee do that (tls.redirect = true), and the drill goes by HTTPS";
const ANOTHER: &str = "choose another page with --path";

async fn walk(
    ground: &Ground,
    path: &str,
    expected: Print,
    way: &mut Way,
) -> Result<Outcome, String> {
    let answer = get(ground, ground.site(), path, Some(&ground.invitation.key)).await?;
    let location = match (answer.status, answer.location) {
        (200, _) => {
            let body = compare(ground, path, (expected, answer.print)).await?;
            return Ok(Outcome::Here(body));
        }
        (429, _) => return Ok(Outcome::AboveShare),
        (410, _) => return Ok(Outcome::TooLate),
        (302, Some(location)) => location,
        (status, _) => return Err(format!("the site answers {status}")),
    };
    let scheme = ground.invitation.scheme;
    let redirect = split(&location, scheme).ok_or(format!("a redirect to `{location}`"))?;
    let asked = Instant::now();
    let found = find(ground, &redirect, way).await;
    way.waited = since(asked);
    let (alias, address) = found.ok_or("nobody knows its address".to_owned())?;
    let place = Place {
        scheme,
        address,
        host: &redirect.host,
    };
    let answer = get(ground, place, &redirect.target, None).await?;
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
/// right now is a wrong one. This look counts like any visitor's: where each visit needs one, the
/// drill must give way.
async fn compare(
    ground: &Ground,
    path: &str,
    (expected, seen): (Print, Print),
) -> Result<Body, String> {
    if seen == expected || seen == look_at(ground, path, None).await? {
        return Ok(Body::Same);
    }
    Ok(Body::Different)
}

/// Where the alias of `redirect` is, by the name and port under which it is counted: the port is
/// that by HTTP, however it is visited.
async fn find(ground: &Ground, redirect: &Redirect, way: &mut Way) -> Option<(String, SocketAddr)> {
    let mut guide = ground.guide.clone();
    if ground.invitation.scheme == Scheme::Http {
        way.alias = Some(redirect.host.clone());
    }
    // The redirect may be faster than the account of who helps.
    let known = guide.wait_for(|guide| redirect.known_in(guide).is_some());
    let known = known.await.ok()?;
    let (alias, address) = redirect.known_in(&known)?;
    way.alias = Some(alias.clone());
    let mut address = (*address)?;
    if ground.invitation.scheme == Scheme::Https {
        address.set_port(redirect.port);
    }
    Some((alias.clone(), address))
}

/// Where a visitor is sent.
#[derive(Debug, PartialEq, Eq)]
struct Redirect {
    scheme: Scheme,
    /// Name and port.
    host: String,
    port: u16,
    target: String,
}

impl Redirect {
    /// Its alias in `guide`, and where that leads.
    fn known_in<'a>(&self, guide: &'a Guide) -> Option<(&'a String, &'a Option<SocketAddr>)> {
        match self.scheme {
            Scheme::Http => guide.get_key_value(&self.host),
            Scheme::Https => {
                let name = |host: &'a str| host.rsplit_once(':').map_or(host, |(name, _)| name);
                let own = self
                    .host
                    .rsplit_once(':')
                    .map_or(&*self.host, |(name, _)| name);
                guide.iter().find(|(alias, _)| name(alias) == own)
            }
        }
    }
}

/// What stands in `http://name:port/path`; none where it is of another scheme.
fn split(location: &str, scheme: Scheme) -> Option<Redirect> {
    let uri: Uri = location.parse().ok()?;
    let expected = match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    if uri.scheme_str() != Some(expected) {
        return None;
    }
    let port = uri.port_u16().unwrap_or(scheme.usual_port());
    Some(Redirect {
        scheme,
        host: format!("{}:{port}", uri.host()?),
        port,
        target: uri.path_and_query()?.as_str().to_owned(),
    })
}

async fn get(
    ground: &Ground,
    place: Place<'_>,
    target: &str,
    key: Option<&str>,
) -> Result<Answer, String> {
    let usual = format!(":{}", place.scheme.usual_port());
    let shown = place.host.strip_suffix(&usual).unwrap_or(place.host);
    let mut request = Request::get(target)
        .header(header::HOST, shown)
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close");
    if let Some(key) = key {
        request = request.header(DRILL_FIELD, key);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(told)?;
    let stream = ground.authorities.connect(place).await?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(told)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(told)?;
        read_answer(response).await
    };
    tokio::pin!(answer);
    // The connection has to be driven while the answer is awaited; its error shows in the answer.
    tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

async fn read_answer(response: Response<Incoming>) -> Result<Answer, String> {
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
        let parts = |text: &str, scheme| {
            let Redirect { host, target, .. } = split(text, scheme)?;
            Some(host + " " + &target)
        };
        let http = |text: &str| parts(text, Scheme::Http);
        let one = http("http://www-vh1.a.example:8080/a?b");
        assert_eq!(one.as_deref(), Some("www-vh1.a.example:8080 /a?b"));
        let two = http("http://www-vh1.a.example/");
        assert_eq!(two.as_deref(), Some("www-vh1.a.example:80 /"));
        assert_eq!(http("/elsewhere"), None);
        assert_eq!(http("https://www-vh1.a.example/"), None);
        let secure = parts("https://www-vh1.a.example/", Scheme::Https);
        assert_eq!(secure.as_deref(), Some("www-vh1.a.example:443 /"));
        let in_the_clear = parts("http://www-vh1.a.example/", Scheme::Https);
        assert_eq!(in_the_clear, None);
    }

    #[test]
    fn an_alias_by_https_is_found_by_its_name() {
        let address: SocketAddr = "192.0.2.7:8080".parse().unwrap();
        let alias = "www-vh1.a.example:8080".to_owned();
        let guide: Guide = Arc::new([(alias.clone(), Some(address))].into());
        let known = |location: &str, scheme| {
            let redirect = split(location, scheme).unwrap();
            redirect.known_in(&guide).map(|(alias, _)| alias.clone())
        };
        let secure = known("https://www-vh1.a.example:8443/", Scheme::Https);
        assert_eq!(secure, Some(alias));
        assert_eq!(known("https://www-vh2.a.example/", Scheme::Https), None);
        assert_eq!(known("http://www-vh1.a.example/", Scheme::Http), None);
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
