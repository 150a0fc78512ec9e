//! Looks at the status of every site once a second while a load is played, by the cables that are
//! there for it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime;

use super::LabError;
use super::servers::{Site, look_at};
use crate::demo::watch::Look;

/// What the sites said, by host, oldest first.
pub type Looks = BTreeMap<String, Vec<Look>>;

/// A thread that looks. Dropped, it ends.
#[derive(Debug)]
pub struct Sampler {
    looks: Arc<Mutex<Looks>>,
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Time between two looks at a site.
const PERIOD: Duration = Duration::from_secs(1);

impl Sampler {
    /// Begins to look at `sites`; times count from now.
    pub fn start(sites: &[Site]) -> Result<Self, LabError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::machine("start"))?;
        let sites: Vec<(String, SocketAddr)> = sites
            .iter()
            .map(|site| (site.process.name().to_owned(), site.admin))
            .collect();
        let looks: Arc<Mutex<Looks>> = Arc::default();
        let enough = Arc::new(AtomicBool::new(false));
        let (book, stop) = (Arc::clone(&looks), Arc::clone(&enough));
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || runtime.block_on(look_on(&sites, &book, &stop)))
            .map_err(LabError::machine("start"))?;
        Ok(Self {
            looks,
            enough,
            thread: Some(thread),
        })
    }

    /// Ends, with all that was seen.
    pub fn stop(mut self) -> Looks {
        self.end();
        std::mem::take(&mut *self.looks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed already.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

async fn look_on(sites: &[(String, SocketAddr)], book: &Mutex<Looks>, enough: &AtomicBool) {
    let start = Instant::now();
    let mut ticks = tokio::time::interval(PERIOD);
    while !enough.load(Ordering::Relaxed) {
        ticks.tick().await;
        for (name, admin) in sites {
            let Some(seen) = look_at(*admin).await else {
                continue;
            };
            let at = start.elapsed();
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            book.entry(name.clone())
                .or_default()
                .push(Look { at, seen });
        }
    }
}

/// Points of a figure that is a rate already.
pub fn levels(looks: &[Look], of: impl Fn(&Look) -> f64) -> Vec<(f64, f64)> {
    let points = looks.iter();
    points
        .map(|look| (look.at.as_secs_f64(), of(look)))
        .collect()
}

/// Points of the rate at which a counter grew.
pub fn growth(looks: &[Look], of: impl Fn(&Look) -> u64) -> Vec<(f64, f64)> {
    looks
        .windows(2)
        .map(|pair| {
            let time = (pair[1].at - pair[0].at).as_secs_f64();
            let grown = of(&pair[1]).saturating_sub(of(&pair[0]));
            (pair[1].at.as_secs_f64(), grown as f64 / time.max(1e-9))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::watch::{LifetimeSeen, Seen};

    #[test]
    fn a_counter_is_drawn_by_its_growth() {
        let look = |second: u64, redirects: u64| Look {
            at: Duration::from_secs(second),
            seen: Seen {
                lifetime: LifetimeSeen {
                    redirects,
                    ..LifetimeSeen::default()
                },
                ..Seen::default()
            },
        };
        let looks = [look(0, 0), look(1, 10), look(3, 30)];
        let points = growth(&looks, |look| look.seen.lifetime.redirects);
        assert_eq!(points, [(1.0, 10.0), (3.0, 10.0)]);
        assert_eq!(levels(&looks[..1], |_| 7.0), [(0.0, 7.0)]);
    }
}
