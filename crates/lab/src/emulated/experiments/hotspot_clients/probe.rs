//! Finds out when each mirror has a copy of each resource, by asking it.
//!
//! A mirror that may not fetch what it lacks sends whoever asks for it back, so a HEAD that is
//! answered with 200 was answered from a copy. It goes by the cables of the watch and costs the
//! links nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use http::Method;
use tokio::runtime;

use super::super::super::LabError;
use super::super::super::servers::look_at;
use crate::crowd::client::{Following, Habit, Trail, Visitor};
use crate::crowd::meter::Traffic;
use crate::crowd::names::Names;
use crate::crowd::url::{Scheme, Url};

/// When copies were first seen: by path, one moment for each mirror that has it.
pub type Copies = BTreeMap<String, Vec<Instant>>;

/// A thread that asks. Dropped without [`Probe::stop`], it ends by itself with the process.
#[derive(Debug)]
pub struct Probe {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Copies>,
}

/// What is asked, and where.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    /// Admin pages of the source, which knows the aliases of its mirrors.
    pub source: SocketAddr,
    /// Domains of aliases and the hosts behind them.
    pub names: BTreeMap<String, IpAddr>,
    /// Paths of the resources.
    pub paths: Vec<String>,
}

/// How exactly the moment is found.
const PERIOD: Duration = Duration::from_millis(100);

impl Probe {
    /// Begins to ask.
    pub fn start(plan: ProbePlan) -> Result<Self, LabError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        let thread = thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || runtime.block_on(ask_on(&plan, &stop)))
            .map_err(LabError::machine("start"))?;
        Ok(Self { enough, thread })
    }

    /// Ends, with all that was found.
    pub fn stop(self) -> Copies {
        self.enough.store(true, Ordering::Relaxed);
        // A panic of it was printed already.
        self.thread.join().unwrap_or_default()
    }
}

async fn ask_on(plan: &ProbePlan, enough: &AtomicBool) -> Copies {
    let visitor = Visitor::new(
        Traffic::since(Instant::now()),
        "levee-lab probe".to_owned(),
        Habit::KeepAlive,
    );
    let visitor = visitor.among(Names::Hosts(plan.names.clone()), Following::Stays);
    let mut copies = Copies::new();
    let mut known = BTreeSet::new();
    let mut ticks = tokio::time::interval(PERIOD);
    while !enough.load(Ordering::Relaxed) {
        ticks.tick().await;
        let mirrors = look_at(plan.source)
            .await
            .unwrap_or_default()
            .rescue_servers;
        for mirror in mirrors {
            let alias = mirror.alias.split(':').next().unwrap_or_default();
            for path in &plan.paths {
                let copy = (alias.to_owned(), path.clone());
                if !known.contains(&copy) && has(&visitor, alias, path).await {
                    copies.entry(path.clone()).or_default().push(Instant::now());
                    known.insert(copy);
                }
            }
        }
    }
    copies
}

async fn has(visitor: &Visitor, alias: &str, path: &str) -> bool {
    let url = Url {
        scheme: Scheme::Http,
        host: alias.to_owned(),
        port: 80,
        target: path.to_owned(),
    };
    let mut trail = Trail::default();
    let answer = visitor.fetch(&Method::HEAD, &url, &mut trail);
    let answer = tokio::time::timeout(PERIOD * 5, answer).await;
    matches!(answer, Ok(Ok(_))) && trail.redirected.is_none()
}
