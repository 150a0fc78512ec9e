//! A crowd that writes down what each visitor met on every step of the way, and when.
//!
//! An open loop with a bounded rate: a visit begins when it is due, over a connection of its own,
//! asks for the next page by the site's own name, and follows redirects. Names are resolved here:
//! those of sites that live elsewhere by the given table, all others to this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::http;
use crate::stage::{
    ALICE, Draft, INTERVAL, NEWS, PAGES, Place, RUSH, TOLERANCE, Town, body_of, page, until,
};

/// The papers' rule: what takes longer than 7 s has failed.
const PATIENCE: Duration = Duration::from_secs(7);
/// More redirects than this is a loop.
const REDIRECTS_MAX: usize = levee_control::REDIRECTS_MAX as usize;

/// What most of a crowd is in a second.
const MANY: usize = 30;

/// Where names of sites elsewhere lead, by the first part of their aliases.
pub type Elsewhere = BTreeMap<&'static str, IpAddr>;

/// Visitors of one site.
pub struct Crowd {
    seen: Arc<Mutex<Vec<Visit>>>,
    start: Instant,
    leave: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What one visitor met.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The first at the site's own name, each further one where a redirect led.
    pub hops: Vec<Hop>,
    /// Whether the last answer was the right page of the right site.
    pub page: Page,
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Right,
    /// Another page than the one that was asked for.
    Wrong,
    /// A server said that it has no room: 503.
    Refused,
    /// No whole answer, or another status.
    Lost,
    /// Too many redirects.
    Loop,
}

/// One request on the way. Times count from the start of the crowd.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Host and port that were asked.
    pub authority: String,
    pub asked: Duration,
    pub ended: Duration,
    /// The answer, or why there is none.
    pub answer: Result<http::Answer, String>,
}

impl Hop {
    /// Host and port that it redirects to.
    pub fn leads_to(&self) -> Option<&str> {
        self.leads_on().map(|(authority, _)| authority)
    }

    /// The same, and what is to be asked for there.
    fn leads_on(&self) -> Option<(&str, &str)> {
        let location = self.answer.as_ref().ok()?.location.as_deref()?;
        let location = location.strip_prefix("http://")?;
        Some(location.split_at(location.find('/')?))
    }
}

/// What most tests begin with: alice is the one whom the origin knows, and its crowd is redirected
/// to her, at an alias.
pub fn in_a_rescue() -> (Town, Place, Place, Crowd, String) {
    in_a_rescue_of(&NEWS)
}

/// The same with another origin than the usual one.
pub fn in_a_rescue_of(origin: &Draft) -> (Town, Place, Place, Crowd, String) {
    let town = Town::new();
    let alice = town.start(&ALICE);
    let news = town.start(origin);
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    (town, news, alice, crowd, alias)
}

impl Crowd {
    /// Sends `rate` visitors a second to `place`, until it leaves.
    pub fn send(place: &Place, rate: u32) -> Self {
        Self::come(place, rate, Elsewhere::new(), Duration::ZERO)
    }

    /// The same where some sites live elsewhere.
    pub fn send_through(place: &Place, rate: u32, elsewhere: Elsewhere) -> Self {
        Self::come(place, rate, elsewhere, Duration::ZERO)
    }

    /// The same over a slow network: each visitor needs so long to follow a redirect.
    pub fn send_slowly(place: &Place, rate: u32, delay: Duration) -> Self {
        Self::come(place, rate, Elsewhere::new(), delay)
    }

    fn come(place: &Place, rate: u32, elsewhere: Elsewhere, delay: Duration) -> Self {
        let start = Instant::now();
        let seen = Arc::<Mutex<Vec<Visit>>>::default();
        let (leave, left) = watch::channel(false);
        let visitor = Arc::new(Visitor {
            site: place.name,
            authority: place.address.to_string(),
            elsewhere,
            delay,
            start,
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let records = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            runtime.block_on(come(visitor, rate, left, records));
        });
        Self {
            seen,
            start,
            leave,
            thread: Some(thread),
        }
    }

    /// Time since its start.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Visits that have ended.
    pub fn seen(&self) -> Vec<Visit> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until many more visitors than now were redirected to `alias`.
    pub fn is_redirected_to(&self, alias: &str) {
        let before = redirects_to(&self.seen(), alias).count();
        until(&format!("redirects to {alias}"), || {
            let now = redirects_to(&self.seen(), alias).count();
            (now >= before + MANY).then_some(())
        });
    }

    /// Nobody else comes; everybody who is there finishes.
    pub fn leave(mut self) -> Vec<Visit> {
        self.go();
        self.seen()
    }

    fn go(&mut self) {
        // A crowd that is over listens no more.
        let _ = self.leave.send(true);
        if let Some(thread) = self.thread.take() {
            // Its panic was printed already.
            let _ = thread.join();
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.go();
    }
}

async fn come(
    visitor: Arc<Visitor>,
    rate: u32,
    mut left: watch::Receiver<bool>,
    records: Arc<Mutex<Vec<Visit>>>,
) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut visits = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = left.wait_for(|left| *left) => break,
        }
        let (visitor, records) = (Arc::clone(&visitor), Arc::clone(&records));
        visits.spawn(async move {
            let visit = visitor.visit(&page(number % PAGES)).await;
            records.lock().unwrap().push(visit);
        });
        while visits.try_join_next().is_some() {}
        number += 1;
    }
    while visits.join_next().await.is_some() {}
}

struct Visitor {
    site: &'static str,
    authority: String,
    elsewhere: Elsewhere,
    delay: Duration,
    start: Instant,
}

impl Visitor {
    async fn visit(&self, path: &str) -> Visit {
        let mut hops = Vec::new();
        let (mut authority, mut target) = (self.authority.clone(), path.to_owned());
        loop {
            let hop = self.hop(&authority, &target).await;
            let next = hop
                .leads_on()
                .map(|(one, other)| (one.to_owned(), other.to_owned()));
            let answer = hop.answer.clone();
            hops.push(hop);
            let page = match (answer, next) {
                (Err(_), _) => Page::Lost,
                (Ok(_), Some(next)) if hops.len() <= REDIRECTS_MAX => {
                    (authority, target) = next;
                    tokio::time::sleep(self.delay).await;
                    continue;
                }
                (Ok(_), Some(_)) => Page::Loop,
                (Ok(answer), None) => match answer.status {
                    200 if answer.body == body_of(self.site, path).as_bytes() => Page::Right,
                    200 => Page::Wrong,
                    503 => Page::Refused,
                    _ => Page::Lost,
                },
            };
            return Visit { hops, page };
        }
    }

    async fn hop(&self, authority: &str, target: &str) -> Hop {
        let asked = self.start.elapsed();
        let asking = ask(self.resolve(authority), authority, target);
        let answer = timeout(PATIENCE, asking).await;
        let answer = answer.unwrap_or_else(|_| Err("took longer than 7 s".to_owned()));
        Hop {
            authority: authority.to_owned(),
            asked,
            ended: self.start.elapsed(),
            answer,
        }
    }

    fn resolve(&self, authority: &str) -> SocketAddr {
        let (host, port) = authority.split_once(':').unwrap();
        let first = host.split(['.', '-']).next().unwrap();
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let address = self.elsewhere.get(first).copied().unwrap_or(here);
        (address, port.parse().unwrap()).into()
    }
}

async fn ask(at: SocketAddr, authority: &str, target: &str) -> Result<http::Answer, String> {
    let told = |what: &'static str| move |error: std::io::Error| format!("{what}: {error}");
    let mut stream = TcpStream::connect(at).await.map_err(told("connect"))?;
    let request = http::request(authority, target);
    let writing = stream.write_all(request.as_bytes()).await;
    writing.map_err(told("write"))?;
    let mut received = Vec::new();
    let reading = stream.read_to_end(&mut received).await;
    reading.map_err(told("read"))?;
    http::read(&received).ok_or_else(|| format!("cut off after {} bytes", received.len()))
}

/// When each redirect to `alias` was whole in the visitor's hands.
pub fn redirects_to<'a>(
    visits: &'a [Visit],
    alias: &'a str,
) -> impl Iterator<Item = Duration> + 'a {
    let first = visits.iter().filter_map(|visit| visit.hops.first());
    first
        .filter(move |hop| hop.leads_to() == Some(alias))
        .map(|hop| hop.ended)
}

/// Visits that ended like this.
pub fn count(visits: &[Visit], page: Page) -> usize {
    visits.iter().filter(|visit| visit.page == page).count()
}

/// Every visitor who asked by the site's own name got a page or a redirect there, and nobody was
/// led astray.
pub fn assert_the_name_answers(visits: &[Visit]) {
    for visit in visits {
        match &visit.hops[0].answer {
            Ok(answer) => assert!([200, 302].contains(&answer.status), "{visit:?}"),
            Err(_) => panic!("no answer by the site's own name: {visit:?}"),
        }
    }
    assert_nobody_is_led_astray(visits);
}

/// Nobody was sent around in circles, and nobody got another site's page.
pub fn assert_nobody_is_led_astray(visits: &[Visit]) {
    for visit in visits {
        assert!(
            ![Page::Loop, Page::Wrong].contains(&visit.page),
            "{visit:?}"
        );
    }
}

/// Every visitor got the right page in the end.
pub fn assert_all_are_right(visits: &[Visit]) {
    assert!(!visits.is_empty());
    for visit in visits {
        assert_eq!(visit.page, Page::Right, "{visit:?}");
    }
}

/// The last redirect to `alias` came no later than `intervals` after the fault at `since`.
pub fn assert_redirects_stop(visits: &[Visit], alias: &str, since: Duration, intervals: u32) {
    let last = redirects_to(visits, alias).max().unwrap();
    let bound = since + INTERVAL * intervals + TOLERANCE;
    assert!(last <= bound, "fault at {since:?}, redirect at {last:?}");
}
