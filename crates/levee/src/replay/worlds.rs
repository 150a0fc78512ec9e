//! One thread for each number of neighbours: all of them play the same visits at the same time, so
//! that the log is read once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use levee_sim::replay::{Outcome, Replay, ReplaySettings, Visit};

/// Visits in one message, and messages that may wait: the reader is never far ahead.
const BATCH_VISITS: usize = 4096;
const BATCHES_WAITING: usize = 4;

/// The threads. They end when this is finished or dropped.
#[derive(Debug)]
pub struct Worlds {
    threads: Vec<World>,
    batch: Vec<Visit>,
}

/// One thread and the way to it.
#[derive(Debug)]
struct World {
    visits: SyncSender<Arc<[Visit]>>,
    thread: JoinHandle<Outcome>,
}

impl Worlds {
    /// Starts a thread for no neighbour, one for the first, one for the first two, and so on.
    ///
    /// # Errors
    /// A sentence, where the system gives no thread.
    pub fn start(settings: &ReplaySettings) -> Result<Self, String> {
        let threads = (0..=settings.neighbours.len()).map(|count| {
            let mut settings = settings.clone();
            settings.neighbours.truncate(count);
            let (visits, receiver) = sync_channel(BATCHES_WAITING);
            let thread = Builder::new()
                .name(format!("replay-{count}"))
                .spawn(move || play(settings, &receiver))
                .map_err(|error| format!("cannot start a thread for the simulation: {error}"))?;
            Ok(World { visits, thread })
        });
        Ok(Self {
            threads: threads.collect::<Result<_, String>>()?,
            batch: Vec::with_capacity(BATCH_VISITS),
        })
    }

    /// Lets a visit happen in every world.
    pub fn visit(&mut self, visit: Visit) {
        self.batch.push(visit);
        if self.batch.len() == BATCH_VISITS {
            self.send();
        }
    }

    /// The log is over: how it fared with each number of neighbours.
    ///
    /// # Errors
    /// A sentence, if a thread died of a mistake of ours.
    pub fn finish(mut self) -> Result<Vec<Outcome>, String> {
        self.send();
        let ended = self.threads.into_iter().map(|world| {
            drop(world.visits);
            let died = |_| "the simulation broke off by a mistake of its own".to_owned();
            world.thread.join().map_err(died)
        });
        ended.collect()
    }

    fn send(&mut self) {
        let batch: Arc<[Visit]> = self.batch.as_slice().into();
        self.batch.clear();
        for world in &self.threads {
            // A thread that died is found out when it is joined.
            let _ = world.visits.send(Arc::clone(&batch));
        }
    }
}

fn play(settings: ReplaySettings, visits: &Receiver<Arc<[Visit]>>) -> Outcome {
    let mut replay = Replay::new(settings);
    for batch in visits {
        batch.iter().for_each(|visit| replay.visit(visit));
    }
    replay.finish()
}
