//! The JSON of a replay. Fields are added, never renamed.

use levee_observe::Calendar;
use levee_sim::replay::Outcome;
use serde::Serialize;

use super::Report;

#[derive(Serialize)]
struct Told {
    logs: Vec<String>,
    lines: LinesTold,
    requests: u64,
    bytes: u64,
    from: String,
    until: String,
    link_bytes_per_second: u64,
    busiest_second: SecondTold,
    /// Missing where none of the numbers of neighbours is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbours_needed: Option<usize>,
    runs: Vec<RunTold>,
    hot_spots: Vec<HotTold>,
}

#[derive(Serialize)]
struct LinesTold {
    read: u64,
    broken: u64,
    left_out: u64,
    astray: u64,
}

#[derive(Serialize)]
struct SecondTold {
    at: String,
    requests: u64,
    link_bytes: u64,
}

#[derive(Serialize)]
struct RunTold {
    neighbours: Vec<NeighbourTold>,
    survived: bool,
    answered: u64,
    refused: u64,
    failed: u64,
    overloaded_minutes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    overloaded_from: Option<String>,
    worst_minute_lost_share: f64,
    redirects: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirected_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirected_until: Option<String>,
}

#[derive(Serialize)]
struct NeighbourTold {
    link_bytes_per_second: u64,
    requests: u64,
}

#[derive(Serialize)]
struct HotTold {
    path: String,
    copied_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirected_at: Option<String>,
}

impl Report {
    /// One line of JSON.
    pub fn json(&self) -> String {
        let since_start = |second: u64| Calendar::of(self.start + second).rfc3339();
        let hot = self.seen.hot.iter().map(|spot| HotTold {
            path: spot.path.clone(),
            copied_at: since_start(spot.copy_at),
            redirected_at: spot.redirect_at.map(since_start),
        });
        let told = Told {
            logs: self
                .logs
                .iter()
                .map(|log| log.display().to_string())
                .collect(),
            lines: LinesTold {
                read: self.lines.read,
                broken: self.lines.broken,
                left_out: self.lines.left_out,
                astray: self.lines.astray,
            },
            requests: self.seen.requests,
            bytes: self.seen.bytes,
            from: Calendar::of(self.start).rfc3339(),
            until: Calendar::of(self.end).rfc3339(),
            link_bytes_per_second: self.link.as_bytes(),
            busiest_second: SecondTold {
                at: since_start(self.seen.busiest.number),
                requests: self.seen.busiest.requests,
                link_bytes: self.seen.busiest.link_bytes,
            },
            neighbours_needed: self.neighbours_needed(),
            runs: self
                .outcomes
                .iter()
                .map(|outcome| self.run(outcome))
                .collect(),
            hot_spots: hot.collect(),
        };
        // There is no map and no number that JSON cannot say, so this does not fail.
        let mut text = serde_json::to_string(&told).unwrap_or_default();
        text.push('\n');
        text
    }

    fn run(&self, outcome: &Outcome) -> RunTold {
        let at = |moment| Calendar::of(self.unix(moment)).rfc3339();
        let neighbours = self.neighbours.iter().zip(&outcome.carried);
        let neighbours = neighbours.map(|(link, &requests)| NeighbourTold {
            link_bytes_per_second: link.as_bytes(),
            requests,
        });
        RunTold {
            neighbours: neighbours.collect(),
            survived: outcome.has_survived(),
            answered: outcome.answered,
            refused: outcome.refused,
            failed: outcome.failed,
            overloaded_minutes: outcome.minutes_overloaded,
            overloaded_from: outcome.overloaded_from.map(at),
            worst_minute_lost_share: outcome.worst.map_or(0.0, |worst| worst.lost_share()),
            redirects: outcome.redirects,
            redirected_from: outcome.redirected_from.map(at),
            redirected_until: outcome.redirected_until.map(at),
        }
    }
}
