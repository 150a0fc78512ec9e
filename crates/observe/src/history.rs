//! The last three minutes, so that a page that is opened late shows how it came to this.
//!
//! A ring of snapshots, one a second at most, whatever the length of a control interval. Pure: the
//! times come from the statuses. Ordered by uptime, which never jumps, not by the clock, which may.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::status::Status;
use crate::words::{finite, link_level};

/// Snapshots that are kept: three minutes at one a second.
pub const HISTORY_LENGTH: usize = 180;

/// Least seconds between two snapshots. A little under a second, so that intervals of one second
/// that end early by a moment are not left out.
const SPACING: f64 = 0.9;

/// What the charts draw of one moment. Rates are bytes a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Unix seconds.
    pub at: f64,
    /// Seconds since the start of the process.
    pub uptime: f64,
    /// State of the server.
    pub state: String,
    /// d_out against D_out.
    pub level: f64,
    /// D_out.
    pub usable: u64,
    /// d_out.
    pub out: u64,
    /// d_self.
    pub own: u64,
    /// d_resc.
    pub rescue: u64,
    /// d_redi, of the redirect responses themselves.
    pub redirect: u64,
    /// Size of the redirected files.
    pub redirected_files: u64,
    /// Requests a second.
    pub requests: f64,
    /// Redirects a second.
    pub redirects: f64,
    /// Refusals a second.
    pub refusals: f64,
    /// T_redi; none when nothing is redirected.
    pub redirect_threshold: Option<f64>,
    /// Rescue servers that help us.
    pub rescue_servers: usize,
}

/// The ring.
#[derive(Clone, Debug, Default)]
pub struct History {
    snapshots: VecDeque<Snapshot>,
}

impl History {
    /// Takes a snapshot of `status`, unless the last one is less than a second old. A status that
    /// is older than the last one is left out.
    pub fn note(&mut self, status: &Status) {
        let last = self.snapshots.back();
        if last.is_some_and(|last| status.uptime < last.uptime + SPACING) {
            return;
        }
        if self.snapshots.len() == HISTORY_LENGTH {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back(Snapshot::of(status));
    }

    /// The snapshots, oldest first.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.snapshots.iter()
    }

    /// The JSON of `GET /history.json`: `{"snapshots":[..]}`, oldest first.
    pub fn to_json(&self) -> String {
        let snapshots: Vec<_> = self.snapshots().collect();
        // Structs of numbers and texts always have a JSON form.
        let list = serde_json::to_string(&snapshots).unwrap_or_default();
        format!("{{\"snapshots\":{list}}}")
    }
}

impl Snapshot {
    /// What the charts draw of `status`.
    pub fn of(status: &Status) -> Self {
        Self {
            at: status.now,
            uptime: status.uptime,
            state: status.state.clone(),
            level: finite(link_level(status)),
            usable: status.link.usable,
            out: status.rates.out,
            own: status.rates.own,
            rescue: status.rates.rescue,
            redirect: status.rates.redirect,
            redirected_files: status.rates.redirected_files,
            requests: finite(status.rates.requests),
            redirects: finite(status.rates.redirects),
            refusals: finite(status.rates.refusals),
            redirect_threshold: status.redirect_threshold,
            rescue_servers: status.rescue_servers.len(),
        }
    }
}

/// Where the Brain task pins up each new status, and where every face of the server reads it.
#[derive(Debug, Default)]
pub struct StatusBoard {
    latest: RwLock<Arc<Status>>,
    history: Mutex<History>,
}

impl StatusBoard {
    /// Pins up `status` and adds it to the history.
    pub fn publish(&self, status: Status) {
        let status = Arc::new(status);
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(&status);
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// The newest status; all zero and not ready before the first.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.latest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A copy of the last three minutes.
    pub fn history(&self) -> History {
        self.history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(uptime: f64) -> Status {
        Status {
            uptime,
            ..Status::default()
        }
    }

    #[test]
    fn history_keeps_three_minutes_at_one_snapshot_a_second() {
        let mut history = History::default();
        for quarter in 0..1600 {
            history.note(&at(f64::from(quarter) / 4.0));
        }
        let kept: Vec<f64> = history.snapshots().map(|s| s.uptime).collect();
        assert_eq!(kept.len(), HISTORY_LENGTH);
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == 1.0));
        assert!(kept[HISTORY_LENGTH - 1] == 399.0);
        history.note(&at(1.0));
        assert_eq!(history.snapshots().count(), HISTORY_LENGTH);
        assert!(history.snapshots().all(|s| s.uptime != 1.0));
    }

    #[test]
    fn history_is_json_that_reads_back() {
        let board = StatusBoard::default();
        assert!(!board.status().ready);
        let mut status = at(2.0);
        status.rates.requests = f64::INFINITY;
        board.publish(status);
        let json: serde_json::Value =
            serde_json::from_str(&board.history().to_json()).expect("valid JSON");
        let snapshot: Snapshot =
            serde_json::from_value(json["snapshots"][0].clone()).expect("a snapshot");
        assert_eq!(snapshot.uptime, 2.0);
        assert_eq!(snapshot.requests, 0.0);
    }
}
