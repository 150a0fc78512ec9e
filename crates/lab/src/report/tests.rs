//! The report shows what was measured, and needs no other file.

use super::*;
use crate::crowd::tally::Second;
use crate::demo::figures::{Drafted, Series};
use crate::demo::verdict;

fn figures() -> Figures {
    let second = Second {
        offered: 100,
        answered: 98,
        failed: 2,
        bytes: 600_000,
        p50: 0.004,
        p99: 0.8,
    };
    let mut figures = Figures {
        seed: 7,
        crowd_seconds: 60.0,
        requests_gain: 11.8,
        first_redirect_seconds: Some(1.4),
        back_to_normal_seconds: Some(30.9),
        rescue_servers: vec![Drafted {
            name: "alice".to_owned(),
            link: 1_000_000,
            seconds: 1.2,
            requests: 4_000,
        }],
        series: Series {
            onset: 6.0,
            crowd_end: 66.0,
            bound: Some((67.0, 87.0)),
            normal: Some(121.0),
            with: vec![second; 70],
            without: vec![second; 74],
            origin_carried: vec![40_000.0; 120],
            alone_carried: vec![54_000.0; 120],
            redirects: vec![55; 88],
            delivered: [("alice", 500_000), ("news", 30_000)]
                .map(|(name, bytes)| (name.to_owned(), vec![bytes; 88]))
                .into(),
        },
        ..Figures::default()
    };
    figures.with.tally.offered = 6_000;
    figures.with.tally.answered = 5_900;
    figures.with.peak_ratio = 0.97;
    figures.criteria = verdict::criteria(&figures);
    figures.survived = verdict::survived(&figures.criteria);
    figures
}

#[test]
fn the_report_is_one_page_without_anything_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&figures(), folder.path()).unwrap();
    let page = fs::read_to_string(files.page).unwrap();
    assert_eq!(page.matches("<svg").count(), 4);
    assert!(page.contains("The site survived."));
    assert!(page.contains("alice (1000 kB/s) after 1.2 s"));
    let own = page.replace("http://www.w3.org/2000/svg", "");
    for elsewhere in ["http://", "https://", "<script", "url("] {
        assert!(!own.contains(elsewhere), "{elsewhere}");
    }
}

#[test]
fn the_json_holds_every_promised_figure_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&figures(), folder.path()).unwrap();
    let text = fs::read_to_string(files.json).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in [
        "survived",
        "requests_gain",
        "data_gain",
        "redirect_bound_ratio",
        "first_redirect_seconds",
        "back_to_normal_seconds",
        "origin_rate_peak_ratio",
        "p99_with",
        "p99_without",
    ] {
        assert!(!json[name].is_null(), "{name}");
    }
    assert_eq!(json["with"]["offered"], 6_000);
    assert_eq!(json["requests_gain"], 11.8);
}

#[test]
fn the_table_names_what_was_kept_and_what_was_missed() {
    let table = table(&figures());
    assert!(table.contains("kept   First redirect after the onset: 1.4 s"));
    assert!(table.contains("MISSED Redirects a second against B/(n+358) (goal)"));
    assert!(table.ends_with("The site survived.\n"), "{table}");
    assert!(table.lines().all(|line| line.len() < 160), "{table}");
}

#[test]
fn a_report_without_any_rescue_can_be_drawn_too() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&Figures::default(), folder.path()).unwrap();
    let page = fs::read_to_string(files.page).unwrap();
    assert!(page.contains("did NOT survive"));
}
