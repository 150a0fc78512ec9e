//! Rehearsals with real neighbours: one that is left alone, and all that must end one.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};

use levee_lab::processes::levee_beside;
use serde_json::Value;

use crate::crowd::{Crowd, assert_nobody_is_led_astray};
use crate::stage::{ALICE, BOB, Draft, INTERVAL, NEWS, Place, RUSH, Town, body_of, page};

/// The site that rehearses; its link has room for a drill of twenty visits a second.
const PRESS: Draft = Draft {
    link: "1000 kB/s",
    ..NEWS
};

/// Long enough for whatever shall end it before.
const LONG: &str = "60s";

fn cast(news: &Draft) -> (Town, Place, Place, Place) {
    let town = Town::new();
    let (alice, bob) = (town.start(&ALICE), town.start(&BOB));
    let news = town.start(news);
    news.knows(&["alice", "bob"]);
    (town, news, alice, bob)
}

/// `levee drill` at a site. Killed if it is dropped before it has ended.
struct Drill(Option<Child>);

impl Drill {
    fn begin(site: &Place, time: &str, rate: &str) -> Self {
        Self::of(site, time, rate, &[&page(0), &page(1)])
    }

    fn of(site: &Place, time: &str, rate: &str, pages: &[&str]) -> Self {
        let paths = pages.iter().flat_map(|page| ["--path", page]);
        let child = Command::new(levee_beside().unwrap())
            .args(["drill", "--json", "--time", time, "--rate", rate])
            .args(paths)
            .args(["--admin", &site.admin.to_string()])
            .stdout(Stdio::piped())
            .spawn();
        Self(Some(child.unwrap()))
    }

    fn report(mut self) -> (ExitStatus, Value) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let report = serde_json::from_slice(&output.stdout).unwrap();
        (output.status, report)
    }
}

impl Drop for Drill {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until both neighbours take part in the drill of news, and one of them serves it. On a
/// small link each page goes to one of them only, by its hash.
fn both_take_part(news: &Place, members: [&Place; 2]) {
    for member in members {
        member.wait("part in a drill", |status| {
            status["drill"]["site"] == "news.localhost" && status["drill"]["own"] == false
        });
    }
    crate::stage::until("a visit of the drill", || {
        let serves = |member: &&Place| member.status()["origins"][0]["requests"].as_u64() > Some(0);
        members.iter().any(serves).then_some(())
    });
    news.wait("its own drill", |status| status["drill"]["own"] == true);
}

fn ended(report: &Value) -> &str {
    report["ended"].as_str().unwrap()
}

fn all_is_over(places: [&Place; 3]) {
    for place in places {
        place.is_normal_again();
        place.wait("no drill", |status| status["drill"].is_null());
    }
}

#[test]
fn a_drill_ends_by_itself_and_no_real_visitor_notices() {
    let (_town, news, alice, bob) = cast(&PRESS);
    let drill = Drill::begin(&news, "4s", "20/s");
    both_take_part(&news, [&alice, &bob]);
    let own_name = news.address.to_string();
    for number in 0..8 {
        let path = page(number % 2);
        let answer = news.get(&own_name, &path);
        assert_eq!(
            (answer.status, answer.body),
            (200, body_of("news", &path).into_bytes())
        );
    }
    assert_eq!(news.status()["state"], "normal");
    let (status, report) = drill.report();
    assert!(status.success(), "{report:#}");
    assert_eq!(ended(&report), "its time is over");
    for member in report["members"].as_array().unwrap() {
        assert_eq!(member["helped"], true, "{member}");
        assert!(member["visits"].as_u64() > Some(5), "{member}");
        assert_eq!(member["failed"], 0, "{member}");
        assert_eq!(member["different"], 0, "{member}");
    }
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    all_is_over([&news, &alice, &bob]);
}

/// Waits until `site` has measured what came after its drill, whose state must have stayed.
fn is_left_in_peace(site: &Place) {
    let uptime = |status: &Value| status["uptime"].as_f64().unwrap();
    let until = uptime(&site.status()) + 3.0 * INTERVAL.as_secs_f64();
    site.wait("the time after the drill", |status| uptime(status) > until);
    let log = site.log();
    assert!(!log.contains("state changed"), "{log}");
}

#[test]
fn large_pages_on_a_small_link_are_no_crowd() {
    let (_town, news, alice, bob) = cast(&NEWS);
    // A second of the link, for the drill and for each rescue server that fetches it.
    fs::write(news.home.join("public/large.txt"), vec![b'x'; 40_000]).unwrap();
    let drill = Drill::of(&news, "5s", "2/s", &[&page(0), "/large.txt"]);
    let (_, report) = drill.report();
    assert_eq!(ended(&report), "its time is over", "{report:#}");
    assert!(report["first_helped"].is_number(), "{report:#}");
    is_left_in_peace(&news);
    all_is_over([&news, &alice, &bob]);
}

#[test]
fn who_still_comes_when_a_drill_is_over_is_no_crowd() {
    let (_town, news, alice, bob) = cast(&NEWS);
    let (_, report) = Drill::begin(&news, "3s", "30/s").report();
    assert_eq!(ended(&report), "its time is over", "{report:#}");
    is_left_in_peace(&news);
    all_is_over([&news, &alice, &bob]);
}

#[test]
fn any_member_ends_a_drill_for_all() {
    let (_town, news, alice, bob) = cast(&PRESS);
    let drill = Drill::begin(&news, LONG, "20/s");
    both_take_part(&news, [&alice, &bob]);
    let stop = Command::new(levee_beside().unwrap())
        .args(["drill", "stop", "--admin", &bob.admin.to_string()])
        .output()
        .unwrap();
    assert!(stop.status.success(), "{stop:?}");
    let (status, report) = drill.report();
    assert!(!status.success());
    assert!(
        ended(&report).starts_with("bob.localhost ended its part"),
        "{report:#}"
    );
    let cut_short = "the drill was over before its time: bob.localhost";
    assert!(
        report["findings"].to_string().contains(cut_short),
        "{report:#}"
    );
    all_is_over([&news, &alice, &bob]);
}

#[test]
fn a_member_that_declines_drills_is_not_in_them() {
    let (_town, news, alice, bob) = cast(&PRESS);
    let settings = fs::read_to_string(alice.settings()).unwrap();
    let declining = settings.replace("[rescue]", "drills = false\n[rescue]");
    fs::write(alice.settings(), declining).unwrap();
    alice.reload();
    crate::stage::until("a reload of alice", || {
        alice.log().contains("reloaded").then_some(())
    });
    let (status, report) = Drill::begin(&news, "3s", "20/s").report();
    assert!(!status.success());
    let [first, second] = report["members"].as_array().unwrap().as_slice() else {
        panic!("{report:#}");
    };
    assert_eq!(
        (&first["site"], &first["helped"]),
        (&"alice.localhost".into(), &false.into())
    );
    assert_eq!(
        (&second["site"], &second["helped"]),
        (&"bob.localhost".into(), &true.into())
    );
    assert!(
        report["findings"].to_string().contains("community.drills"),
        "{report:#}"
    );
    all_is_over([&news, &alice, &bob]);
}

#[test]
fn nothing_stays_of_a_drill_whose_site_is_killed() {
    let (_town, mut news, alice, bob) = cast(&PRESS);
    let drill = Drill::begin(&news, LONG, "20/s");
    both_take_part(&news, [&alice, &bob]);
    news.kill();
    let (status, report) = drill.report();
    assert!(!status.success());
    assert_eq!(ended(&report), "the server does not answer any more");
    news.restart();
    all_is_over([&news, &alice, &bob]);
}

#[test]
fn nothing_stays_of_a_drill_whose_command_is_killed() {
    let (_town, news, alice, bob) = cast(&PRESS);
    let drill = Drill::begin(&news, LONG, "20/s");
    both_take_part(&news, [&alice, &bob]);
    drop(drill);
    all_is_over([&news, &alice, &bob]);
    assert!(news.log().contains("whoever began it is gone"));
}

#[test]
fn a_drill_gives_way_to_a_real_crowd() {
    let (_town, news, alice, bob) = cast(&NEWS);
    let drill = Drill::begin(&news, LONG, "4/s");
    both_take_part(&news, [&alice, &bob]);
    let crowd = Crowd::send(&news, RUSH);
    let (_, report) = drill.report();
    assert_eq!(ended(&report), "a crowd of real visitors has come");
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    news.wait("no drill", |status| status["drill"].is_null());
    assert_nobody_is_led_astray(&crowd.leave());
    all_is_over([&news, &alice, &bob]);
}
