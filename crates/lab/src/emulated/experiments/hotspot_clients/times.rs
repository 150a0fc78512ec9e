//! How long after a threshold a resource was copied and redirected.

use std::collections::BTreeMap;
use std::time::Instant;

use super::super::super::bench::Played;
use super::super::super::findings::{Goal, Mark, Plot, Row};
use super::super::super::generator::RequestFigures;
use super::heat;
use super::probe::Copies;
use super::{RESOURCES, path};

/// All that happened to one resource, in seconds since the load began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    /// T_C was reached.
    pub worth_copying: Option<f64>,
    /// The first mirror had it.
    pub copied: Option<f64>,
    /// Every mirror had it.
    pub copied_to_all: Option<f64>,
    /// T_R was reached.
    pub worth_redirecting: Option<f64>,
    /// The first visitor was redirected.
    pub redirected: Option<f64>,
    /// The last visitor came who was not, among those before that.
    pub served: Option<f64>,
}

/// The steps of all resources, smallest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    steps: Vec<Steps>,
}

impl Times {
    /// From what was asked, and what so many mirrors had.
    pub fn of(played: &Played, copies: &Copies, mirrors: usize) -> Self {
        let requests = || played.seconds.iter().flat_map(|second| &second.requests);
        let sizes: BTreeMap<String, u64> = RESOURCES
            .iter()
            .map(|bytes| (path(*bytes), *bytes as u64))
            .collect();
        let size = |path: &str| sizes.get(path).copied().unwrap_or_default();
        let heats = heat::of(requests(), size);
        let since = |at: &Instant| match played.began {
            Some(began) => at.saturating_duration_since(began).as_secs_f64(),
            None => 0.0,
        };
        let steps = RESOURCES.iter().map(|bytes| {
            let path = path(*bytes);
            let heat = heats.get(&*path).copied().unwrap_or_default();
            let had = copies.get(&path).map_or(&[][..], Vec::as_slice);
            Steps {
                worth_copying: heat.copy,
                copied: had.first().map(since),
                copied_to_all: had.get(mirrors - 1).map(since),
                worth_redirecting: heat.redirect,
                redirected: first_redirect(requests().filter(|one| one.path == path)),
                served: last_served(requests().filter(|one| one.path == path)),
            }
        });
        Self {
            steps: steps.collect(),
        }
    }

    /// When the last resource was redirected for the first time.
    pub fn settled(&self) -> f64 {
        let redirected = self.steps.iter().filter_map(|one| one.redirected);
        redirected.fold(0.0, f64::max)
    }

    /// What is compared with the paper. A resource that reached a threshold and was not copied or
    /// redirected at all makes its row infinitely late.
    pub fn rows(&self) -> Vec<Row> {
        let (copied, copied_to_all) = (
            self.latest(|one| (one.worth_copying, one.copied)),
            self.latest(|one| (one.worth_copying, one.copied_to_all)),
        );
        let redirected = self.latest(|one| (one.worth_redirecting, one.redirected));
        // A visitor can only be redirected when one comes, which at T_R takes up to a second:
        // what is judged is for how long visitors were still served here.
        let served = self.latest(|one| (one.worth_redirecting, one.served));
        let row = |name: &str, seconds: f64| Row::told(name, "s", seconds);
        let mut rows = vec![
            row("copied after T_C, at worst", copied).judged_by(Goal::AtMost(2.0)),
            row("copied to all mirrors after T_C, at worst", copied_to_all),
            row("first redirect after T_R, at worst", redirected),
            row("last not redirected after T_R, at worst", served).judged_by(Goal::AtMost(1.0)),
        ];
        for (name, of, published) in [
            ("copied", (|one| one.copied) as Of, [11.0, 16.0]),
            ("redirected", |one| one.redirected, [14.0, 21.0]),
        ] {
            let times = || self.steps.iter().filter_map(of);
            if let Some(first) = times().reduce(f64::min) {
                let name = format!("first resource {name}, from the start");
                rows.push(row(&name, first).published(published[0]));
            }
            if let Some(last) = times().reduce(f64::max) {
                let name = format!("last resource {name}, from the start");
                rows.push(row(&name, last).published(published[1]));
            }
        }
        rows
    }

    /// The longest time from the one to the other, over all resources. What came before it was due
    /// was not late.
    fn latest(&self, of: impl Fn(&Steps) -> (Option<f64>, Option<f64>)) -> f64 {
        let late = self.steps.iter().filter_map(|one| match of(one) {
            (None, _) => None,
            (Some(_), None) => Some(NEVER),
            (Some(due), Some(done)) => Some((done - due).max(0.0)),
        });
        late.fold(0.0, f64::max)
    }

    /// Each resource's steps over its size.
    pub fn plot(&self) -> Plot {
        let points = |of: Of| -> Vec<(f64, f64)> {
            let both = RESOURCES.iter().zip(&self.steps);
            both.filter_map(|(bytes, one)| Some((*bytes as f64 / 1000.0, of(one)?)))
                .collect()
        };
        Plot {
            title: "When each resource was copied and redirected".to_owned(),
            text: "Seconds since the first client came, by the size of the resource.".to_owned(),
            across: "kB".to_owned(),
            up: "seconds".to_owned(),
            ..Plot::default()
        }
        .with("T_C reached", Mark::Line, points(|one| one.worth_copying))
        .with("copied", Mark::Line, points(|one| one.copied))
        .with(
            "T_R reached",
            Mark::Line,
            points(|one| one.worth_redirecting),
        )
        .with("redirected", Mark::Line, points(|one| one.redirected))
    }
}

/// One of the steps.
type Of = fn(&Steps) -> Option<f64>;

/// What never happened took longer than any experiment.
const NEVER: f64 = 9999.0;

fn first_redirect<'a>(requests: impl Iterator<Item = &'a RequestFigures>) -> Option<f64> {
    let redirected = requests.filter_map(|one| one.redirected);
    redirected.reduce(f64::min)
}

/// When the last of those came who were not redirected, before the first who was.
fn last_served<'a>(requests: impl Iterator<Item = &'a RequestFigures> + Clone) -> Option<f64> {
    let first = first_redirect(requests.clone())?;
    let served = requests.filter(|one| one.redirected.is_none() && one.asked < first);
    Some(served.map(|one| one.asked).fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::findings::Verdict;
    use super::*;

    #[test]
    fn the_latest_resource_counts_and_one_that_was_never_hot_does_not() {
        let quick = Steps {
            worth_copying: Some(10.0),
            copied: Some(10.5),
            copied_to_all: Some(11.0),
            worth_redirecting: Some(12.0),
            redirected: Some(12.25),
            served: Some(11.5),
        };
        let late = Steps {
            copied: Some(13.0),
            ..quick
        };
        let times = Times {
            steps: vec![quick, late, Steps::default()],
        };
        let rows = times.rows();
        assert_eq!((rows[0].ours, rows[0].verdict), (3.0, Verdict::Missed));
        assert_eq!(rows[2].ours, 0.25);
        assert_eq!((rows[3].ours, rows[3].verdict), (0.0, Verdict::Met));
        assert_eq!(times.settled(), 12.25);
    }

    #[test]
    fn what_was_never_copied_is_missed() {
        let hot = Steps {
            worth_copying: Some(1.0),
            ..Steps::default()
        };
        let rows = Times { steps: vec![hot] }.rows();
        assert_eq!(rows[0].verdict, Verdict::Missed);
    }

    #[test]
    fn a_resource_is_served_here_until_its_first_redirect() {
        let request = |asked: f64, redirected: Option<f64>| RequestFigures {
            path: "/a".to_owned(),
            asked,
            redirected,
        };
        let served = [request(1.0, None), request(2.0, None)];
        assert_eq!(last_served(served.iter()), None);
        let later = [request(3.0, Some(3.1)), request(4.0, None)];
        let all: Vec<RequestFigures> = served.into_iter().chain(later).collect();
        assert_eq!(last_served(all.iter()), Some(2.0));
        assert_eq!(last_served(all[2..3].iter()), Some(0.0));
    }
}
