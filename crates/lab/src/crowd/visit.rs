//! What one visitor does, from arrival to the last image.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;

use levee_vocab::WebAddress;

use super::client::{Failure, Fetched, Habit, Trail, Visitor};
use super::ledger::{Answer, Asked, Ledger, Record};
use super::meter::Traffic;
use super::page;
use super::schedule::Visit;
use super::url::{Scheme, Url};
use crate::site::Site;

/// Where a crowd plays: the site, and where its doings are written down.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The site as it should be.
    pub site: Arc<Site>,
    /// Where visitors believe it is.
    pub address: WebAddress,
    /// Counts bytes.
    pub traffic: Traffic,
    /// Keeps records.
    pub ledger: Arc<Ledger>,
    /// A request that takes longer has failed; the papers say 7 s.
    pub patience: Duration,
}

/// Connections that a reader's browser opens to one server.
const CONNECTIONS_PER_READER: usize = 2;

impl Stage {
    /// Requests that a visit calls for.
    pub fn requests_of(&self, visit: &Visit) -> u64 {
        match visit {
            Visit::Preview { .. } => 3,
            Visit::Reader { page } => 1 + self.site.pages[*page].images.len() as u64,
            Visit::Single { .. } => 1,
        }
    }

    /// Plays one visit that was meant to begin at `arrived`, to its end.
    pub async fn play(&self, arrived: Duration, visit: Visit) {
        match visit {
            Visit::Preview { server } => self.preview(arrived, server).await,
            Visit::Reader { page } => self.reader(arrived, page).await,
            Visit::Single { path } => {
                let visitor = self.visitor("levee-lab", Habit::OneRequestEach);
                let asking = Asking::new(Asked::Single, arrived, arrived);
                self.get(&visitor, &asking, &self.url(&path)).await;
            }
        }
    }

    async fn preview(&self, arrived: Duration, server: u32) {
        let agent =
            format!("http.rb/5.2.0 (Mastodon/4.3.1; +http://fediverse-{server}.localhost/)");
        let visitor = self.visitor(&agent, Habit::OneRequestEach);
        let post = self.url(&self.site.post().path);
        let head = Asking::new(Asked::PostHead, arrived, arrived);
        self.ask(&visitor, &head, &Method::HEAD, &post).await;
        let asking = Asking::new(Asked::Post, arrived, self.ledger.now());
        let fetched = self.get(&visitor, &asking, &post).await;
        let asked = self.ledger.now();
        let preview = fetched.and_then(|fetched| {
            let html = String::from_utf8_lossy(&fetched.body).into_owned();
            fetched.url.join(&page::preview_image(&html)?).ok()
        });
        let asking = Asking::new(Asked::Preview, arrived, asked);
        match preview {
            Some(url) => {
                self.get(&visitor, &asking, &url).await;
            }
            None => self.never_asked(&asking),
        }
    }

    async fn reader(&self, arrived: Duration, rank: usize) {
        const AGENT: &str =
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        let visitor = self.visitor(AGENT, Habit::KeepAlive);
        let wanted = &self.site.pages[rank];
        let asking = Asking::new(Asked::Page, arrived, arrived);
        let fetched = self.get(&visitor, &asking, &self.url(&wanted.path)).await;
        let asking = Asking::new(Asked::Image, arrived, self.ledger.now());
        let Some(fetched) = fetched else {
            wanted.images.iter().for_each(|_| self.never_asked(&asking));
            return;
        };
        let images: Vec<Url> = page::images(&String::from_utf8_lossy(&fetched.body))
            .iter()
            .filter_map(|reference| fetched.url.join(reference).ok())
            .collect();
        let next = AtomicUsize::new(0);
        let load = async || {
            while let Some(image) = images.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.get(&visitor, &asking, image).await;
            }
        };
        const { assert!(CONNECTIONS_PER_READER == 2) };
        tokio::join!(load(), load());
    }

    /// GETs an object and keeps a record of it; none when it failed.
    async fn get(&self, visitor: &Visitor, asking: &Asking, url: &Url) -> Option<Fetched> {
        self.ask(visitor, asking, &Method::GET, url).await
    }

    async fn ask(
        &self,
        visitor: &Visitor,
        asking: &Asking,
        method: &Method,
        url: &Url,
    ) -> Option<Fetched> {
        let mut trail = Trail::default();
        let deadline = self.ledger.start() + asking.asked + self.patience;
        let fetching = visitor.fetch(method, url, &mut trail);
        let result = within(deadline, fetching).await.and_then(|fetched| {
            match *method == Method::HEAD || self.is_right(url, &fetched.body) {
                true => Ok(fetched),
                false => Err(Failure::WrongBody),
            }
        });
        let since_start = |at: Instant| at.saturating_duration_since(self.ledger.start());
        self.ledger.enter(Record {
            kind: asking.kind,
            arrived: asking.arrived,
            asked: asking.asked,
            ended: self.ledger.now(),
            redirected: trail.redirected.map(|(at, bytes)| (since_start(at), bytes)),
            result: match &result {
                Ok(fetched) => Ok(Answer {
                    bytes: fetched.body.len() as u64,
                    wire_bytes: fetched.wire_bytes,
                    port: fetched.url.port,
                }),
                Err(failure) => Err(*failure),
            },
        });
        result.ok()
    }

    /// Whether `body` is what the site has at the path of `url`.
    fn is_right(&self, url: &Url, body: &Bytes) -> bool {
        self.site.objects.get(&url.target) == Some(body)
    }

    fn never_asked(&self, asking: &Asking) {
        self.ledger.enter(Record {
            kind: asking.kind,
            arrived: asking.arrived,
            asked: asking.asked,
            ended: self.ledger.now(),
            redirected: None,
            result: Err(Failure::NotAsked),
        });
    }

    fn visitor(&self, agent: &str, habit: Habit) -> Visitor {
        Visitor::new(self.traffic.clone(), agent.to_owned(), habit)
    }

    fn url(&self, path: &str) -> Url {
        Url {
            scheme: Scheme::Http,
            host: self.address.host.to_string(),
            port: self.address.port,
            target: path.to_owned(),
        }
    }
}

/// What is asked, and since when.
struct Asking {
    kind: Asked,
    arrived: Duration,
    asked: Duration,
}

impl Asking {
    const fn new(kind: Asked, arrived: Duration, asked: Duration) -> Self {
        Self {
            kind,
            arrived,
            asked,
        }
    }
}

async fn within<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout_at(deadline.into(), work)
        .await
        .unwrap_or(Err(Failure::Late))
}
