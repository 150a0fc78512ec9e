//! Plays a plan: visits when they are due, requests, and lines about them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use http::Method;
use levee_vocab::Random;
use tokio::runtime;
use tokio::task::JoinSet;

use super::tally::{Finished, First, RequestFigures, SecondFigures, StepFigures, StepTally, Whole};
use super::{Event, LoadPlan, Log, ResolverPlan, Step, Until, Wants};
use crate::crowd::PATIENCE;
use crate::crowd::authorities::Authorities;
use crate::crowd::client::{Failure, Fetched, Following, Habit, Protocol, Trail, Visitor};
use crate::crowd::meter::Traffic;
use crate::crowd::names::Names;
use crate::crowd::page;
use crate::crowd::resolvers::Resolvers;
use crate::crowd::url::{Scheme, Url};

/// Plays all of `plan`, and prints its events.
pub fn play(plan: LoadPlan) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let files = read_folder(&plan.files)?;
    let start = Instant::now();
    let stage = Arc::new(Stage {
        resolvers: plan.resolvers.map(|resolvers| {
            let ResolverPlan { server, count } = resolvers;
            Arc::new(Resolvers::new(server, &plan.site, count))
        }),
        authorities: match plan.authorities.is_empty() {
            true => None,
            false => Some(Authorities::read(&plan.authorities)?),
        },
        traffic: Traffic::since(start),
        start,
        files,
        book: Mutex::default(),
        told: AtomicU32::new(0),
        plan,
    });
    runtime.block_on(async {
        let ticker = tokio::spawn(tell_seconds(Arc::clone(&stage)));
        for (number, step) in stage.plan.steps.iter().enumerate() {
            tell(&Event::Began {
                step: number,
                rate: step.rate,
            })?;
            let figures = Arc::clone(&stage).step(number, step).await;
            tell(&Event::Ended(figures.clone()))?;
            let is_enough = match stage.plan.until {
                Until::Done => false,
                Until::Overloaded => figures.is_overloaded(),
                Until::Behind => figures.is_behind(),
            };
            if is_enough {
                break;
            }
        }
        ticker.abort();
        tell(&Event::Second(stage.take_second()))
    })
}

/// What all visitors share.
struct Stage {
    plan: LoadPlan,
    resolvers: Option<Arc<Resolvers>>,
    authorities: Option<Authorities>,
    files: BTreeMap<String, Bytes>,
    traffic: Traffic,
    start: Instant,
    book: Mutex<Book>,
    told: AtomicU32,
}

#[derive(Default)]
struct Book {
    step: Option<StepTally>,
    second: SecondFigures,
}

impl Stage {
    async fn step(self: Arc<Self>, number: usize, step: &Step) -> StepFigures {
        self.open().step = Some(StepTally::new(number, step.rate, step.seconds));
        let began = Instant::now();
        let mut playing = JoinSet::new();
        for visit in 0..step.visits() {
            let due = began + step.due(visit);
            tokio::time::sleep_until(due.into()).await;
            self.offer(step.wants.offered(), due.elapsed());
            let visit = Visit {
                stage: Arc::clone(&self),
                began,
                number: visit,
            };
            let wants = step.wants.clone();
            playing.spawn(async move { visit.play(due, &wants).await });
            while playing.try_join_next().is_some() {}
        }
        // Every request ends within its patience, so this does too.
        while playing.join_next().await.is_some() {}
        // A step lasts its time, also where the last visits were quick.
        tokio::time::sleep_until((began + Duration::from_secs_f64(step.seconds)).into()).await;
        let tally = self.open().step.take();
        let lasted = began.elapsed();
        tally.map(|tally| tally.close(lasted)).unwrap_or_default()
    }

    fn offer(&self, requests: u32, lag: Duration) {
        let mut book = self.open();
        book.second.offered += u64::from(requests);
        if let Some(tally) = &mut book.step {
            tally.offer(requests, lag);
        }
    }

    fn enter(&self, request: &Finished, began: Instant) {
        let mut book = self.open();
        if let Some(tally) = &mut book.step {
            tally.enter(request);
        }
        let second = &mut book.second;
        second.redirected += u64::from(request.redirect_bytes.is_some());
        match request.result {
            Ok(whole) => {
                second.answered += 1;
                second.bytes += whole.body;
            }
            Err(_) => second.failed += 1,
        }
        let every = self.plan.tell_every;
        if every > 0
            && self
                .told
                .fetch_add(1, Ordering::Relaxed)
                .is_multiple_of(every)
        {
            let asked = (began + request.asked).saturating_duration_since(self.start);
            let taken = request.ended.saturating_sub(request.asked);
            second.told.push((asked.as_secs_f64(), taken.as_secs_f64()));
        }
    }

    /// Tells a request with what it was for, where that is wanted.
    fn tell_request(&self, asked: Instant, url: &Url, trail: &Trail) {
        let since = |at: Instant| at.saturating_duration_since(self.start).as_secs_f64();
        match self.plan.log {
            Log::Nothing => {}
            Log::Requests => self.open().second.requests.push(RequestFigures {
                path: url.target.clone(),
                asked: since(asked),
                redirected: trail.redirected.map(|(at, _)| since(at)),
            }),
        }
    }

    fn take_second(&self) -> SecondFigures {
        let at = self.start.elapsed().as_secs_f64();
        let second = std::mem::take(&mut self.open().second);
        SecondFigures { at, ..second }
    }

    fn visitor(&self, number: u32, habit: Habit) -> Visitor {
        let names = self.plan.names.clone();
        let names = match &self.resolvers {
            None => Names::Hosts(names),
            Some(all) => Names::Resolved(all.of(number as usize), names),
        };
        Visitor::new(self.traffic.clone(), self.plan.agent.clone(), habit)
            .among(names, self.plan.following)
            .speaking(self.plan.protocol)
            .believing(self.authorities.clone())
    }

    fn url(&self, path: &str) -> Url {
        let scheme = match self.authorities {
            None => Scheme::Http,
            Some(_) => Scheme::Https,
        };
        Url {
            scheme,
            host: self.plan.site.clone(),
            port: scheme.port(),
            target: path.to_owned(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One visit of a step.
struct Visit {
    stage: Arc<Stage>,
    /// When the step began.
    began: Instant,
    number: u32,
}

/// Connections that a browser opens to one server, at most.
const CONNECTIONS_PER_PAGE: usize = 2;

impl Visit {
    async fn play(&self, due: Instant, wants: &Wants) {
        match wants {
            Wants::Files(paths) => {
                let visitor = self.stage.visitor(self.number, Habit::OneRequestEach);
                let path = &paths[self.number as usize % paths.len()];
                self.get(&visitor, &self.stage.url(path), due).await;
            }
            Wants::Session { path, requests } => {
                let visitor = self.stage.visitor(self.number, Habit::KeepAlive);
                let url = self.stage.url(path);
                let mut asked = due;
                for number in 0..*requests {
                    if self.get(&visitor, &url, asked).await.is_none() {
                        // What was still wanted of this connection has failed with it.
                        (number + 1..*requests).for_each(|_| self.fail(due, Failure::NotAsked));
                        return;
                    }
                    // The next one is asked when the one before is there, as httperf does.
                    asked = Instant::now();
                }
            }
            Wants::Client {
                paths,
                requests,
                pause_max,
                stay_max,
                slowly: _,
                fast: _,
            } => {
                let client = self.client(paths, *requests, *pause_max);
                let left = due + Duration::from_secs_f64(*stay_max);
                // One that leaves in the middle of a request has not waited for it.
                let _ = tokio::time::timeout_at(left.into(), client).await;
            }
            Wants::Preview { path } => self.preview(due, path).await,
            Wants::Page { path, requests } => self.page(due, path, *requests).await,
        }
    }

    async fn client(&self, paths: &[String], requests: u32, pause_max: f64) {
        let mut random = Random::from_seed(u64::from(self.number));
        let visitor = self.stage.visitor(self.number, Habit::OneRequestEach);
        for _ in 0..requests {
            let path = &paths[random.within(0..paths.len() as u64) as usize];
            // A client that stays asks when it is ready: only then is anything offered.
            let asked = Instant::now();
            self.get(&visitor, &self.stage.url(path), asked).await;
            self.stage.offer(1, Duration::ZERO);
            let pause = Duration::from_secs_f64(pause_max * random.fraction());
            tokio::time::sleep(pause).await;
        }
    }

    async fn preview(&self, due: Instant, path: &str) {
        let visitor = self.stage.visitor(self.number, Habit::OneRequestEach);
        let url = self.stage.url(path);
        self.ask(&visitor, (&Method::HEAD, &url), due).await;
        let page = self.get(&visitor, &url, Instant::now()).await;
        let asked = Instant::now();
        let image = page.and_then(|page| {
            let html = String::from_utf8_lossy(&page.body).into_owned();
            page.url.join(&page::preview_image(&html)?).ok()
        });
        match image {
            Some(image) => {
                self.get(&visitor, &image, asked).await;
            }
            None => self.fail(asked, Failure::NotAsked),
        }
    }

    async fn page(&self, due: Instant, path: &str, requests: u32) {
        let visitor = self.stage.visitor(self.number, Habit::KeepAlive);
        let page = self.get(&visitor, &self.stage.url(path), due).await;
        let asked = Instant::now();
        let Some(page) = page else {
            // Images of a page that never came were wanted all the same.
            (1..requests).for_each(|_| self.fail(asked, Failure::NotAsked));
            return;
        };
        let images: Vec<Url> = page::images(&String::from_utf8_lossy(&page.body))
            .iter()
            .filter_map(|reference| page.url.join(reference).ok())
            .collect();
        let at_once = match self.stage.plan.protocol {
            Protocol::Http1 => CONNECTIONS_PER_PAGE,
            Protocol::Http2 => images.len(),
        };
        let next = AtomicUsize::new(0);
        let load = async |_| {
            while let Some(image) = images.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.get(&visitor, image, asked).await;
            }
        };
        join_all((0..at_once).map(load)).await;
    }

    async fn get(&self, visitor: &Visitor, url: &Url, asked: Instant) -> Option<Fetched> {
        self.ask(visitor, (&Method::GET, url), asked).await
    }

    /// One request that was meant to be asked at `asked`; none when it failed.
    async fn ask(
        &self,
        visitor: &Visitor,
        (method, url): (&Method, &Url),
        asked: Instant,
    ) -> Option<Fetched> {
        let mut trail = Trail::default();
        let fetching = visitor.fetch(method, url, &mut trail);
        let fetched = tokio::time::timeout_at((asked + PATIENCE).into(), fetching).await;
        let fetched = fetched.unwrap_or(Err(Failure::Late)).and_then(|fetched| {
            match *method == Method::HEAD || self.is_right(url, &fetched, &trail) {
                true => Ok(fetched),
                false => Err(Failure::WrongBody),
            }
        });
        self.stage.tell_request(asked, url, &trail);
        self.stage.enter(
            &Finished {
                asked: asked.saturating_duration_since(self.began),
                ended: self.began.elapsed(),
                first: match url.host == self.stage.plan.site {
                    true => First::Source,
                    false => First::Other,
                },
                last: trail.server,
                redirect_bytes: trail.redirected.map(|(_, bytes)| bytes),
                result: match &fetched {
                    Ok(fetched) => Ok(self.whole(fetched, &trail)),
                    Err(failure) => Err(*failure),
                },
            },
            self.began,
        );
        fetched.ok()
    }

    fn whole(&self, fetched: &Fetched, trail: &Trail) -> Whole {
        // One that stays with a redirect has that for an answer, and it is counted as a redirect.
        let redirected = trail.redirected.is_some();
        let is_own = fetched.url.host == self.stage.plan.site && !redirected;
        Whole {
            body: fetched.body.len() as u64,
            own: if is_own { fetched.wire_bytes } else { 0 },
        }
    }

    fn is_right(&self, url: &Url, fetched: &Fetched, trail: &Trail) -> bool {
        let stays = self.stage.plan.following == Following::Stays;
        let content_with_redirect = stays && trail.redirected.is_some();
        let file = self.stage.files.get(&url.target);
        content_with_redirect || file.is_some_and(|file| self.is_same(file, &fetched.body))
    }

    /// Whether a body is that of the file. A rescue server may have made absolute links to the site
    /// relative ones.
    fn is_same(&self, file: &Bytes, body: &Bytes) -> bool {
        let absolute = format!("http://{}", self.stage.plan.site);
        let relative = |text: &Bytes| String::from_utf8_lossy(text).replace(&absolute, "");
        file == body || (file.starts_with(b"<!doctype html") && relative(file) == relative(body))
    }

    fn fail(&self, asked: Instant, failure: Failure) {
        self.stage.enter(
            &Finished {
                asked: asked.saturating_duration_since(self.began),
                ended: self.began.elapsed(),
                first: First::Nobody,
                last: None,
                redirect_bytes: None,
                result: Err(failure),
            },
            self.began,
        );
    }
}

async fn tell_seconds(stage: Arc<Stage>) {
    let second = Duration::from_secs(1);
    let mut ticks = tokio::time::interval_at((stage.start + second).into(), second);
    loop {
        ticks.tick().await;
        // Nobody reads any more: the whole run is about to end.
        if tell(&Event::Second(stage.take_second())).is_err() {
            return;
        }
    }
}

fn tell(event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn read_folder(root: &Path) -> io::Result<BTreeMap<String, Bytes>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let under = path.strip_prefix(root).unwrap_or(&path);
            let name = format!("/{}", under.display());
            files.insert(name, Bytes::from(fs::read(&path)?));
        }
    }
    Ok(files)
}
