//! When each resource reached a threshold, by the requests that visitors made.
//!
//! The server is not asked: these are the moments that it should have seen. The formula is the
//! paper's, request by request: IAT = (1 - a) IAT + a (now - last), and a threshold T is reached
//! when IAT <= b T, with b = log10(1 + size / 1000).

use std::collections::BTreeMap;

use levee_control::HotSpotRules;

use super::super::super::generator::RequestFigures;

/// When a resource became hot, in seconds since the load began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heat {
    /// T_C was reached.
    pub copy: Option<f64>,
    /// T_R was reached.
    pub redirect: Option<f64>,
}

/// a: how much the newest gap counts.
const SMOOTHING: f64 = 0.125;

/// The heat of each resource, by path; `bytes` tells the size of an answer.
pub fn of<'a>(
    requests: impl Iterator<Item = &'a RequestFigures>,
    bytes: impl Fn(&str) -> u64,
) -> BTreeMap<&'a str, Heat> {
    let mut arrivals: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for request in requests {
        let of_path = arrivals.entry(&request.path).or_default();
        of_path.push(request.asked);
    }
    let heats = arrivals.into_iter().map(|(path, mut times)| {
        times.sort_by(f64::total_cmp);
        (path, heat(&times, bytes(path)))
    });
    heats.collect()
}

fn heat(times: &[f64], bytes: u64) -> Heat {
    let rules = HotSpotRules::default();
    let weight = rules.weight(bytes);
    let mut heat = Heat::default();
    // Nothing is known of it at first, so it is as rare as can be.
    let mut average = weight * rules.service.as_secs_f64();
    let ceiling = average;
    for pair in times.windows(2) {
        average += SMOOTHING * (pair[1] - pair[0] - average);
        average = average.min(ceiling);
        if average <= weight * rules.copy.as_secs_f64() {
            heat.copy.get_or_insert(pair[1]);
        }
        if average <= weight * rules.redirect.as_secs_f64() {
            heat.redirect.get_or_insert(pair[1]);
        }
    }
    heat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_hot_some_twenty_quick_requests_after_the_first() {
        // b = 1, so the thresholds are 1 s and 0.5 s, and the average falls from 10 s by an eighth
        // each time.
        let times: Vec<f64> = (0..60).map(|number| f64::from(number) * 0.1).collect();
        let heat = heat(&times, 9000);
        // 9.9 * 0.875^n <= 0.9 for the first time at n = 18, and <= 0.4 at n = 25.
        assert!((heat.copy.unwrap() - 1.8).abs() < 1e-9, "{heat:?}");
        assert!((heat.redirect.unwrap() - 2.5).abs() < 1e-9, "{heat:?}");
    }

    #[test]
    fn what_is_asked_for_rarely_never_is() {
        let times: Vec<f64> = (0..60).map(|number| f64::from(number) * 2.0).collect();
        assert_eq!(heat(&times, 9000), Heat::default());
    }

    #[test]
    fn each_path_has_its_own() {
        let request = |number: u32, path: &str| RequestFigures {
            path: path.to_owned(),
            asked: f64::from(number) * 0.05,
            redirected: None,
        };
        let quick = (0..60).map(|number| request(number, "/quick"));
        let rare = (0..2).map(|number| request(number, "/rare"));
        let all: Vec<RequestFigures> = quick.chain(rare).collect();
        let heats = of(all.iter(), |_| 9000);
        assert!(heats["/quick"].redirect.is_some());
        assert_eq!(heats["/rare"], Heat::default());
    }
}
