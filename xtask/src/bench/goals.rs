//! The goals of the data plane, beside what came out. They are promises, so they stand here as
//! numbers and nothing bends them.

use super::json::best_peer;
use super::samples::Samples;
use super::servers::{BARE, OURS, Server};

/// One goal under one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Id of the workload.
    pub workload: &'static str,
    /// What is compared.
    pub what: &'static str,
    /// What was measured.
    pub measured: f64,
    /// The most that it may be.
    pub most: f64,
}

/// Workloads of cleartext HTTP/1.1.
const CLEARTEXT: &[&str] = &[
    "hot_1k",
    "hot_10k",
    "hot_100k",
    "redirect",
    "new_1k",
    "new_redirect",
    "proxy_hit_10k",
    "file_1m",
];
const TLS: &[&str] = &["https_10k", "https_resumed_10k", "https_full_10k"];
const HTTP2: &[&str] = &["h2_10k", "h2_10k_m10", "h2_1k_m100"];

/// Over the bare loop on the same backend.
const BARE_MOST: f64 = 1.10;
/// Over the best peer: less than its cost.
const PEER_MOST: f64 = 1.00;
/// Over nginx's proxy_cache.
const PROXY_CACHE_MOST: f64 = 0.65;
/// Over the best peer, for HTTP/2, which is a library's.
const HTTP2_MOST: f64 = 1.20;
/// Microseconds of user time for a request.
const USER_US_MOST: f64 = 1.0;
/// Microseconds in which 99 of 100 visitors have 100 KB.
const P99_US_MOST: f64 = 5000.0;
/// Bytes of own memory for an idle connection.
const IDLE_BYTES_MOST: f64 = 520.0;

/// Every goal that can be judged by these samples.
pub fn of(samples: &Samples, servers: &[&Server]) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut judge = |workload, what, measured: Option<f64>, most| {
        goals.extend(measured.map(|measured| Goal {
            workload,
            what,
            measured,
            most,
        }));
    };
    let to_best = |workload: &str| {
        let (name, _) = best_peer(samples, workload, servers)?;
        samples.ratio(workload, OURS, name)
    };
    for workload in CLEARTEXT {
        let figures = samples.figures(workload, OURS);
        judge(
            workload,
            "to the bare loop",
            samples.ratio(workload, OURS, BARE),
            BARE_MOST,
        );
        judge(workload, "to the best peer", to_best(workload), PEER_MOST);
        judge(
            workload,
            "us of user time",
            figures.map(|figures| figures.user_us),
            USER_US_MOST,
        );
    }
    let p99 = samples
        .figures("hot_100k", OURS)
        .map(|figures| figures.p99_us);
    judge("hot_100k", "us p99", p99, P99_US_MOST);
    let to_nginx = samples.ratio("proxy_hit_10k", OURS, "nginx");
    judge(
        "proxy_hit_10k",
        "to nginx proxy_cache",
        to_nginx,
        PROXY_CACHE_MOST,
    );
    for workload in TLS {
        judge(workload, "to the best peer", to_best(workload), PEER_MOST);
    }
    for workload in HTTP2 {
        judge(workload, "to the best peer", to_best(workload), HTTP2_MOST);
    }
    let idle = samples
        .figures("idle_10000", OURS)
        .map(|figures| figures.cost);
    judge("idle_10000", "bytes each", idle, IDLE_BYTES_MOST);
    goals
}

/// The goals as lines, with `met` or `missed` first.
pub fn lines(goals: &[Goal]) -> String {
    let mut text = String::from("\ngoals\n");
    for goal in goals {
        let result = match goal.measured <= goal.most {
            true => "met   ",
            false => "missed",
        };
        text.push_str(&format!(
            "  {result}  {:<18} {:<22} {:>9.2}  (at most {:.2})\n",
            goal.workload, goal.what, goal.measured, goal.most
        ));
    }
    let met = goals
        .iter()
        .filter(|goal| goal.measured <= goal.most)
        .count();
    text.push_str(&format!("  {met} of {} met\n", goals.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::samples_of;
    use super::super::servers::SERVERS;
    use super::super::workloads::WORKLOADS;
    use super::*;

    #[test]
    fn goals_are_judged_by_what_was_measured_and_by_nothing_else() {
        let samples = samples_of(&[("levee", 540), ("bare", 500), ("nginx", 530)]);
        let servers: Vec<&Server> = SERVERS.iter().collect();
        let goals = of(&samples, &servers);
        let text = lines(&goals);
        assert!(
            text.contains("met     hot_1k             to the bare loop"),
            "{text}"
        );
        assert!(
            text.contains("missed  hot_1k             to the best peer"),
            "{text}"
        );
        assert!(!text.contains("h2_10k"), "{text}");
        assert!(text.contains("2 of 3 met"), "{text}");
        assert!(of(&samples_of(&[]), &servers).is_empty());
    }

    #[test]
    fn every_goal_is_of_a_workload() {
        for id in CLEARTEXT.iter().chain(TLS).chain(HTTP2) {
            assert!(WORKLOADS.iter().any(|workload| workload.id == *id), "{id}");
        }
    }
}
