//! Log lines of visitors whom others served come back to the origin, so that its statistics stay
//! whole.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::http;
use crate::stage::{Community, Draft, ORIGIN, Place, until};

/// Short: the lines are handed over every ten seconds, the last of them after the rescue.
const CROWD: Duration = Duration::from_secs(5);

#[test]
fn visitors_served_elsewhere_stand_in_the_json_log_of_the_origin() {
    let log = "format = \"json\"";
    let (lines, alias) = lines_of_a_rescue(&Draft { log, ..ORIGIN });
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for agent in [BY_ALIAS, BY_DNS] {
        // The rescue server's own fetch for the visitor stands in the log as well, as what it is.
        let is_visit = |line: &&Value| {
            line["user_agent"] == agent && line["class"] != "fetch" && line["status"] == 200
        };
        let visits: Vec<&Value> = lines.iter().filter(is_visit).collect();
        let [line] = visits[..] else {
            panic!("{agent} stands in the log {} times", visits.len());
        };
        assert_eq!(line["rescue_server"], alias.as_str());
        assert_eq!(line["class"], "rescue");
        assert_eq!(line["target"], TARGET);
        assert_eq!(line["remote"], "127.0.0.1");
    }
    // The visitor's way is whole: the redirect at the origin names where the page came from.
    let redirect = lines
        .iter()
        .find(|line| line["class"] == "redirect")
        .unwrap();
    assert!(redirect["rescue_server"].as_str().unwrap().contains("-vh"));
}

#[test]
fn visitors_served_elsewhere_stand_in_the_combined_log_of_the_origin() {
    let (lines, alias) = lines_of_a_rescue(&ORIGIN);
    for agent in [BY_ALIAS, BY_DNS] {
        let is_visit = |line: &&String| {
            line.contains(agent) && !line.contains(" fetch - [") && line.contains("\" 200 ")
        };
        let visits: Vec<&String> = lines.iter().filter(is_visit).collect();
        let [line] = visits[..] else {
            panic!("{agent} stands in the log {} times", visits.len());
        };
        assert!(
            line.starts_with(&format!("127.0.0.1 {alias} - [")),
            "{line}"
        );
        assert!(
            line.contains(&format!("\"GET {TARGET} HTTP/1.1\" 200 ")),
            "{line}"
        );
    }
}

/// Visitors who are served by a rescue server: redirected to its alias, and led to it by DNS under
/// the origin's own name.
const BY_ALIAS: &str = "came-by-alias";
const BY_DNS: &str = "came-by-dns";
const TARGET: &str = "/index.html?from=test";

/// Plays a rescue to its end. Gives the lines of the origin's log, and the alias under which two
/// visitors of our own were served.
fn lines_of_a_rescue(draft: &Draft) -> (Vec<String>, String) {
    let community = Community::start(draft);
    let crowd = community.in_mid_crowd(CROWD);
    let origin = &community.origin;
    let status = origin.wait("a rescue server", |status| {
        status["rescue_servers"][0]["alias"].is_string()
    });
    let alias = status["rescue_servers"][0]["alias"].as_str().unwrap();
    let alias = alias.split(':').next().unwrap();
    let helper = community.member_of(alias);
    for (host, agent) in [(alias, BY_ALIAS), (origin.address.host.as_str(), BY_DNS)] {
        let host = format!("{host}:{}", helper.address.port);
        until("a page from the rescue server", || {
            let agent = format!("User-Agent: {agent}\r\n");
            let answer = http::get(helper.socket(), &host, TARGET, &agent);
            (answer.status == 200).then_some(())
        });
    }
    until("the end of the crowd", || crowd.is_over().then_some(()));
    let counter = |place: &Place, name: &str| place.status()["lifetime"][name].as_u64().unwrap();
    until("every line handed over", || {
        // What members ask of each other, as homes of objects, is no visit.
        let visits = |member| {
            counter(member, "rescue_requests").saturating_sub(counter(member, "fetches_served"))
        };
        let served: u64 = community.members.iter().map(visits).sum();
        let taken_over = counter(origin, "log_lines_taken_over");
        (taken_over == served).then_some(())
    });
    for place in community.members.iter().chain([origin]) {
        assert_eq!(counter(place, "log_lines_lost"), 0);
        assert_eq!(counter(place, "log_lines_refused"), 0);
    }
    let lines = until("the lines in the file", || {
        let log = fs::read_to_string(origin.home.join("access.log")).unwrap();
        let is_whole = log.contains(BY_ALIAS) && log.contains(BY_DNS);
        is_whole.then(|| log.lines().map(str::to_owned).collect())
    });
    (lines, alias.to_owned())
}
