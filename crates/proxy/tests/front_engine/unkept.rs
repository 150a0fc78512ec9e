//! Pages that nobody may keep: a rescue server would fetch each visit through our own link, so
//! their visitors stay with us, as soon as one answer has shown it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use levee_control::{OriginPhase, RoutePlan};
use levee_proxy::UnknownHost;
use levee_vocab::LinkId;

use crate::support::{Running, Setup, origin, redirecting, rescuing};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const ALIAS: &str = "site-vh1.alias.example";
const VISITS: usize = 50;

fn answer(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 5\r\nConnection: close\r\n\r\nhello")
}

/// A site in front of an application that answers so, all of whose visitors are to be redirected.
fn overrun(application: impl Fn(&str) -> String + Send + 'static) -> Running {
    Setup {
        upstream: Some(origin(application)),
        unknown: UnknownHost::Serve,
        plan: RoutePlan {
            fetch_keys: vec![(LinkId::Outbound(1), KEY.parse().unwrap())],
            ..redirecting(ALIAS)
        },
        ..Setup::default()
    }
    .start()
}

fn get(host: &str, lines: &str) -> String {
    format!("GET /page HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n")
}

/// What a visitor gets after the rescue server has fetched a page with this answer.
fn check(status: &'static str, fields: &'static str, visitor: u16) {
    let running = overrun(move |_| answer(status, fields));
    let before = running.ask(&get("site.example", ""));
    assert_eq!(before.status, 302, "{fields}: nothing is known yet");
    let fetched = running.ask(&get("site.example", &format!("Levee-Fetch: {KEY}\r\n")));
    assert!(status.starts_with(&fetched.status.to_string()), "{fields}");
    let after = running.ask(&get("site.example", ""));
    assert_eq!(after.status, visitor, "{status} {fields}");
}

#[test]
fn visitors_of_what_nobody_may_keep_stay_and_all_others_are_redirected() {
    for fields in [
        "Cache-Control: no-store\r\n",
        "Cache-Control: private, max-age=60\r\n",
        "Set-Cookie: visit=1\r\n",
        "Cache-Control: no-cache\r\n",
        "Vary: *\r\n",
    ] {
        check("200 OK", fields, 200);
    }
    for fields in [
        "Cache-Control: max-age=60\r\n",
        // Our cache does not keep these two, and a rescue server does.
        "",
        "Vary: Cookie\r\n",
        "Cache-Control: no-cache\r\nETag: \"1\"\r\n",
    ] {
        check("200 OK", fields, 302);
    }
    // An error is no page: when it is over, whoever was turned away is welcome elsewhere.
    check(
        "500 Internal Server Error",
        "Cache-Control: no-store\r\n",
        302,
    );
}

#[test]
fn what_is_for_one_who_is_logged_in_says_nothing_of_the_others() {
    let private = "Cache-Control: private\r\n";
    let running = overrun(move |_| answer("200 OK", private));
    let known = running.ask(&get("site.example", "Cookie: session=1\r\n"));
    assert_eq!(
        known.status, 200,
        "a visitor who is known is never redirected"
    );
    assert_eq!(running.ask(&get("site.example", "")).status, 302);
}

/// What came of the visits of a page, each following its redirect.
#[derive(Debug, PartialEq, Eq)]
struct Visits {
    redirected: usize,
    /// Counted as those who stay only because nobody may keep the page.
    kept: u64,
    /// Fetches by the rescue server that the origin has answered.
    fetched: u64,
    /// How often the origin's application was asked.
    asked: usize,
}

/// Visits of a page with these fields.
fn visits(fields: &'static str) -> Visits {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let site = overrun(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        answer("200 OK", fields)
    });
    let rescue = Setup {
        plan: rescuing(site.address, OriginPhase::Live),
        ..Setup::default()
    }
    .start();
    let mut redirected = 0;
    for _ in 0..VISITS {
        // The name and port that the rescue server fetches by.
        let first = site.ask(&get("origin.example:8080", ""));
        let page = match first.status {
            302 => {
                redirected += 1;
                rescue.ask(&get(ALIAS, ""))
            }
            _ => first,
        };
        assert_eq!((page.status, page.text()), (200, "hello"));
    }
    let sample = site.sample_until(|sample| sample.fetches_served > 0);
    Visits {
        redirected,
        kept: sample.kept_visits,
        fetched: sample.fetches_served,
        asked: asked.load(Ordering::Relaxed),
    }
}

#[test]
fn a_page_that_nobody_may_keep_is_fetched_once_and_not_once_for_each_visit() {
    let unkept = Visits {
        redirected: 1,
        kept: VISITS as u64 - 1,
        fetched: 1,
        asked: VISITS,
    };
    let told = "the first visit shows it";
    assert_eq!(visits("Cache-Control: no-store\r\n"), unkept, "{told}");
    let kept = Visits {
        redirected: VISITS,
        kept: 0,
        fetched: 1,
        asked: 1,
    };
    assert_eq!(visits("Cache-Control: max-age=60\r\n"), kept);
}
