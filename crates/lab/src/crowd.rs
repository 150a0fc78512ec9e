//! A crowd of visitors, played against a real server on this machine.
//!
//! [`schedule`] draws who comes when, [`visit`] plays each visit, [`client`] speaks HTTP, [`meter`]
//! counts bytes, [`ledger`] keeps what became of every request and [`tally`] draws figures from it.
//! A crowd has a thread of its own and never waits for answers: a visit begins when it is due, and
//! latency counts from the moment at which a request was meant to be asked.

pub mod authorities;
pub mod client;
pub mod ledger;
pub mod meter;
pub mod names;
pub mod page;
pub mod resolvers;
pub mod schedule;
pub mod tally;
pub mod url;
pub mod visit;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use ledger::Ledger;
use schedule::Arrival;
use visit::Stage;

/// The papers' rule: what takes longer than 7 s has failed.
pub const PATIENCE: Duration = Duration::from_secs(7);

/// A crowd at work. Dropped, it goes home at once.
#[derive(Debug)]
pub struct Crowd {
    ledger: Arc<Ledger>,
    leave: watch::Sender<Leave>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    WhenDone,
    Now,
}

impl Crowd {
    /// Sends `arrivals`, timed from the start of the stage's ledger, on a thread of its own.
    pub fn send(name: &str, stage: Stage, arrivals: Vec<Arrival>) -> io::Result<Self> {
        let ledger = Arc::clone(&stage.ledger);
        let (leave, left) = watch::channel(Leave::WhenDone);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::Builder::new()
            .name(format!("crowd {name}"))
            .spawn(move || runtime.block_on(play(Arc::new(stage), arrivals, left)))?;
        Ok(Self {
            ledger,
            leave,
            thread: Some(thread),
        })
    }

    /// Its records.
    pub const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Whether every visit has come to its end.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Nobody listens any more when the crowd is already over.
        let _ = self.leave.send(Leave::Now);
        if let Some(thread) = self.thread.take() {
            // A panic of the crowd was already printed; it must not become a second one here.
            let _ = thread.join();
        }
    }
}

async fn play(stage: Arc<Stage>, arrivals: Vec<Arrival>, mut left: watch::Receiver<Leave>) {
    let mut visits = JoinSet::new();
    let everything = async {
        for arrival in arrivals {
            let due = stage.ledger.start() + arrival.at;
            tokio::time::sleep_until(due.into()).await;
            let lag = stage.ledger.now().saturating_sub(arrival.at);
            stage.ledger.offer(stage.requests_of(&arrival.visit), lag);
            let stage = Arc::clone(&stage);
            visits.spawn(async move { stage.play(arrival.at, arrival.visit).await });
            while visits.try_join_next().is_some() {}
        }
        while visits.join_next().await.is_some() {}
    };
    tokio::select! {
        () = everything => {}
        _ = left.wait_for(|leave| *leave == Leave::Now) => {}
    }
}

#[cfg(test)]
mod tests;
