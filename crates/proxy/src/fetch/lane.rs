//! Turns at one source: so many fetches at once, and the most wanted object next.
//!
//! When a rescue begins, hundreds of visitors ask a cold rescue server for a hundred objects, and
//! all of them come over the origin's full link. Asked for at once, each would trickle, and every
//! visitor would wait for the last. So few are fetched at a time, and when a turn is free it goes
//! to the object for which the most visitors wait; among equals the first come. An object that few
//! want may wait long: the flight's own deadline ends that.

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::flight::{Flight, lock};

/// The turns at one source.
#[derive(Debug)]
pub(super) struct Lane {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// In the order in which they came.
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    flight: Arc<Flight>,
    turn: oneshot::Sender<Turn>,
}

/// A turn; given on when it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Lane>);

impl Lane {
    /// A source from which `width` fetches run at once.
    pub fn new(width: usize) -> Arc<Self> {
        let (free, waiting) = (width.max(1), Vec::new());
        Arc::new(Self {
            state: Mutex::new(State { free, waiting }),
        })
    }

    /// Waits for a turn.
    ///
    /// Cancel safety: dropped half-way, the place in the queue is given up; a turn that was just
    /// given is given on.
    pub async fn turn(self: &Arc<Self>, flight: &Arc<Flight>) -> Turn {
        let given = {
            let mut state = lock(&self.state);
            if state.free > 0 {
                state.free -= 1;
                return Turn(Arc::clone(self));
            }
            let (turn, given) = oneshot::channel();
            state.waiting.push(Waiting {
                flight: Arc::clone(flight),
                turn,
            });
            given
        };
        given
            .await
            .expect("a lane outlives its queue: each turn holds it, and passes itself on")
    }
}

impl State {
    /// The most wanted of those that still wait.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
        let wanted = |index: &usize| {
            // The first of several equals is wanted.
            (
                self.waiting[*index].flight.readers(),
                std::cmp::Reverse(*index),
            )
        };
        let index = (0..self.waiting.len()).max_by_key(wanted)?;
        Some(self.waiting.remove(index).turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut state = lock(&self.0.state);
            let next = state.next();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(next) = next {
            // Where nobody takes it any more, the turn comes back, is dropped, and so goes on.
            drop(next.send(Self(Arc::clone(&self.0))));
        }
    }
}
