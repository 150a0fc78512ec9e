//! One look at a page, through the way that visitors take.
//!
//! It looks like a browser's request, because who alters pages would spare a request that says what
//! it is for. Two things tell it from one: it comes from a member's address, which cannot be
//! hidden, so members look for one another; and by HTTPS it speaks HTTP/1.1, where a browser asks
//! for HTTP/2.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_control::{Look, Pace};
use levee_proxy::{Delivered, OriginKey, Standing, digest_of};
use levee_vocab::WebAddress;
use levee_wire::Digest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::diversion;
use crate::way::{Authorities, Place, Scheme};

/// What a browser says. Several, so that the looks of one site are not all alike.
const BROWSERS: [&[(&str, &str)]; 3] = [
    &[
        (
            "user-agent",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        ),
        ("accept-language", "en-US,en;q=0.5"),
        ("accept-encoding", "gzip, deflate"),
        ("upgrade-insecure-requests", "1"),
    ],
    &[
        (
            "user-agent",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/142.0.0.0 Safari/537.36",
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        ),
        ("accept-encoding", "gzip, deflate"),
        ("accept-language", "en-GB,en;q=0.9"),
        ("upgrade-insecure-requests", "1"),
    ],
    &[
        (
            "user-agent",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like \
             Gecko) Version/18.6 Safari/605.1.15",
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        ),
        ("accept-language", "en-GB,en;q=0.9"),
        ("accept-encoding", "gzip, deflate"),
    ],
];

/// A look takes no longer: a slow member is no liar.
pub const LOOK_MAX: Duration = Duration::from_secs(10);
/// By then a visitor wants to see something. A rescue server that keeps to its link is far quicker,
/// and visitors leave after seven seconds. Looks wait for each other, so none waits for longer.
const FIRST_BYTES_MAX: Duration = Duration::from_secs(3);
/// So much of a page must have come by then: more than a full link brings, where hundreds share it.
/// How long the rest takes depends on its size.
const FIRST_BYTES: usize = 16 << 10;
/// Longest body that is looked at.
const BODY_BYTES_MAX: usize = 4 << 20;
/// What the request and the connection of a look cost the link.
pub const fn look_bytes(scheme: Scheme) -> u64 {
    match scheme {
        Scheme::Http => 900,
        // A greeting with a key for the time after quantum computers alone takes 1.5 kB.
        Scheme::Https => 3000,
    }
}

/// What a browser shows or follows, as it was delivered: a page, a redirect in its place, or an
/// error that leads on (`Refresh`).
#[derive(Clone, Debug)]
pub struct Page {
    /// Any but that of an error which stays one.
    pub status: StatusCode,
    /// Its head.
    pub headers: HeaderMap,
    /// Of its body.
    pub digest: Digest,
}

impl Page {
    /// Whether a visitor gets the same of both.
    pub fn is_like(&self, other: &Self) -> bool {
        self.digest == other.digest && diversion::moves_alike(&self.headers, &other.headers)
    }

    /// Where a redirect leads.
    pub fn location(&self) -> Option<&[u8]> {
        let location = self.headers.get(header::LOCATION)?;
        self.status.is_redirection().then(|| location.as_bytes())
    }
}

/// Which browser we are this time.
#[derive(Clone, Copy, Debug)]
pub struct Guise(pub usize);

impl Guise {
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        BROWSERS[self.0 % BROWSERS.len()]
    }
}

/// The page that a visitor of the alias at `place` gets for `target`; none where there is none. And
/// how it came.
///
/// Cancel safety: dropped half-way, the connection is closed.
pub async fn delivered(
    authorities: &Authorities,
    place: Place<'_>,
    (target, guise): (&str, Guise),
) -> (Option<Page>, Pace) {
    let begun = Notify::new();
    let reading = async {
        let stream = authorities.connect(place).await.ok()?;
        answer(stream, (place.host, target), guise, &begun).await
    };
    let reading = timeout(LOOK_MAX, reading);
    tokio::pin!(reading);
    let in_time = timeout(FIRST_BYTES_MAX, async {
        tokio::select! {
            answer = &mut reading => Some(answer),
            () = begun.notified() => None,
        }
    });
    let answer = match in_time.await {
        Ok(Some(answer)) => answer.ok().flatten(),
        Ok(None) => Some(reading.await.ok().flatten().unwrap_or(Answer::Other)),
        Err(_) => None,
    };
    match answer {
        Some(Answer::Page(page)) => (Some(page), Pace::Timely),
        Some(Answer::Other) => (None, Pace::Timely),
        None => (None, Pace::Late),
    }
}

/// The same over a connection that is there, within `wait`.
///
/// Cancel safety: dropped half-way, the connection is closed.
pub async fn page<S>(stream: S, host: &str, wanted: (&str, Guise), wait: Duration) -> Option<Page>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (target, guise) = wanted;
    let begun = Notify::new();
    let answer = answer(stream, (host, target), guise, &begun);
    match timeout(wait, answer).await.ok()?? {
        Answer::Page(page) => Some(page),
        Answer::Other => None,
    }
}

/// What a server says.
enum Answer {
    /// A page, or what leads to one.
    Page(Page),
    /// A refusal, or a body that ended too early or not at all.
    Other,
}

/// What is said over a connection; none where nothing is. Tells when a page has begun to come.
async fn answer<S>(
    stream: S,
    (host, target): (&str, &str),
    guise: Guise,
    begun: &Notify,
) -> Option<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut request = Request::builder()
        .method(Method::GET)
        .uri(target)
        .header(header::HOST, host);
    for (name, value) in guise.headers() {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new()).ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let answer = async {
        let (parts, body) = sender.send_request(request).await.ok()?.into_parts();
        // A browser shows a 203 as it shows a 200, and does what `Refresh` says whatever comes.
        let is_redirect =
            parts.status.is_redirection() && parts.headers.contains_key(header::LOCATION);
        if !parts.status.is_success() && !is_redirect && !diversion::moves(&parts.headers) {
            return Some(Answer::Other);
        }
        let body = read(Limited::new(body, BODY_BYTES_MAX), begun).await?;
        let digest = tokio::task::spawn_blocking(move || digest_of(&body)).await;
        Some(Answer::Page(Page {
            status: parts.status,
            headers: parts.headers,
            digest: digest.ok()?,
        }))
    };
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}

/// All of a body; tells when its first bytes are there.
async fn read(mut body: Limited<Incoming>, begun: &Notify) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() >= FIRST_BYTES {
            begun.notify_one();
        }
    }
    Some(read.freeze())
}

/// What the signature of a page says.
pub fn standing(page: &Page, key: &OriginKey, site: &WebAddress, target: &str) -> Standing {
    let field = |name: &str| page.headers.get(name).map(header::HeaderValue::as_bytes);
    let delivered = Delivered {
        status: page.status.as_u16(),
        field: &field,
        digest: page.digest,
        site,
        target,
    };
    key.judge(&delivered, SystemTime::now())
}

/// What a page is of which its signature does not say everything, beside `ours`; a redirect is one
/// that leads elsewhere.
pub fn compared(page: &Page, standing: Standing, ours: &Page) -> Look {
    if page.location().is_some() || diversion::is_moved_by(&page.headers, &ours.headers) {
        return Look::Diverted;
    }
    match standing {
        Standing::Authentic => Look::Authentic,
        Standing::Forged => Look::Forged,
        Standing::Unsigned if page.digest == ours.digest => Look::Same,
        Standing::Unsigned => Look::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use tokio::net::TcpListener;

    use super::*;

    async fn delivered_at(address: SocketAddr) -> (Option<Page>, Pace) {
        let place = Place {
            scheme: Scheme::Http,
            address,
            host: "vh1.alice.test",
        };
        let authorities = Authorities::any();
        delivered(&authorities, place, ("/", Guise(0))).await
    }

    /// How a page comes from a server that says `answer` to whoever asks, and then nothing.
    async fn pace_of(answer: &'static str) -> (Option<Page>, Pace) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            assert!(length > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let delivered = delivered_at(address).await;
        server.abort();
        delivered
    }

    #[tokio::test]
    async fn a_page_that_comes_at_once_is_timely_and_so_is_a_refusal() {
        let (page, pace) = pace_of("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        assert!(page.is_some());
        assert_eq!(pace, Pace::Timely);
        let (page, pace) = pace_of("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").await;
        assert!(page.is_none());
        assert_eq!(pace, Pace::Timely);
    }

    #[tokio::test]
    async fn where_a_redirect_leads_is_seen() {
        let (page, pace) = pace_of(concat!(
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n",
            "location: http://evil.test/\r\n\r\n"
        ))
        .await;
        assert_eq!(page.unwrap().location(), Some(&b"http://evil.test/"[..]));
        assert_eq!(pace, Pace::Timely);
    }

    /// A browser shows the first like any page, and follows the second.
    #[tokio::test]
    async fn no_status_hides_what_a_visitor_gets() {
        let (page, _) = pace_of("HTTP/1.1 203 Other\r\ncontent-length: 2\r\n\r\nhi").await;
        assert!(page.is_some_and(|page| page.location().is_none()));
        let (page, _) = pace_of(concat!(
            "HTTP/1.1 404 No\r\ncontent-length: 0\r\n",
            "refresh: 0; url=//evil.test\r\n\r\n"
        ))
        .await;
        assert!(page.is_some_and(|page| diversion::moves(&page.headers)));
    }

    #[test]
    fn what_leads_elsewhere_is_worse_than_a_right_page() {
        let page = |status, digest, fields: &[(header::HeaderName, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| {
                let value = header::HeaderValue::from_static(value);
                (name.clone(), value)
            });
            let headers = fields.collect();
            let digest = Digest([digest; 32]);
            Page {
                status,
                headers,
                digest,
            }
        };
        let ours = page(StatusCode::OK, 1, &[]);
        let moved = page(
            StatusCode::OK,
            1,
            &[(header::REFRESH, "0; url=//evil.test")],
        );
        let sent = [(header::LOCATION, "http://evil.test/")];
        let sent = page(StatusCode::FOUND, 1, &sent);
        for standing in [Standing::Authentic, Standing::Unsigned] {
            assert_eq!(compared(&moved, standing, &ours), Look::Diverted);
            assert_eq!(
                compared(&moved, Standing::Authentic, &moved),
                Look::Authentic
            );
            assert_eq!(compared(&sent, standing, &ours), Look::Diverted);
        }
        let unsigned = |page: &Page| compared(page, Standing::Unsigned, &ours);
        assert_eq!(unsigned(&ours), Look::Same);
        assert_eq!(unsigned(&page(StatusCode::OK, 2, &[])), Look::Foreign);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_or_only_begins_is_late() {
        for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\nhi"] {
            let (page, pace) = pace_of(answer).await;
            assert!(page.is_none());
            assert_eq!(pace, Pace::Late);
        }
    }

    #[tokio::test]
    async fn where_nobody_listens_a_visitor_waits_for_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let (_, pace) = delivered_at(address).await;
        assert_eq!(pace, Pace::Late);
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_not_waited_for() {
        // Ours as well: a core that is stuck must not end all looks.
        let (ours, theirs) = tokio::io::duplex(4096);
        let wanted = ("/", Guise(0));
        let seen = page(ours, "www.example.org", wanted, Duration::from_millis(1)).await;
        assert!(seen.is_none());
        drop(theirs);
    }
}
