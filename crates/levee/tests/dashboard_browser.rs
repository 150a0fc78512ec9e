//! The pages of the admin address in a real browser: they draw, and hostile names stay text.
//!
//! The figures here are samples, to see the layout; the same helper looks at the real binary in the
//! tests of the whole server.
#![allow(clippy::unwrap_used)]

mod browser;

use std::sync::Arc;
use std::time::Duration;

use browser::{Look, Window};
use levee::admin::{AdminLimits, StatusSource, serve};
use levee::drill::{Account, Begun, DrillDesk};
use levee_control::DrillStop;
use levee_observe::{History, Status, StatusBoard};

/// The pages for people; the status page reloads itself, so it is looked at once.
const PAGES: [(&str, Look); 2] = [("/", Look::Loaded), ("/dashboard", Look::Live)];

struct Sample(StatusBoard);

impl StatusSource for Sample {
    fn status(&self) -> Arc<Status> {
        self.0.status()
    }

    fn history(&self) -> History {
        self.0.history()
    }

    fn drills(&self) -> &dyn DrillDesk {
        self
    }

    fn purge(&self, purge: levee_vocab::Purge) -> levee::admin::Reporting {
        let report = levee::purge_report::PurgeReport::new(&purge, 0, &[]);
        Box::pin(async move { report })
    }

    fn reload(&self) -> Result<String, String> {
        Err("a sample has no settings".into())
    }
}

impl DrillDesk for Sample {
    fn begin(&self, _length: Duration, _rate: u32) -> Begun {
        Box::pin(async { Err("a sample has no neighbours".into()) })
    }

    fn account(&self) -> Account {
        Account::default()
    }

    fn stop(&self, _stop: DrillStop) -> Result<String, String> {
        Err("a sample has no neighbours".into())
    }
}

fn sample(name: &str) -> Status {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../observe/tests/sample/");
    let text = std::fs::read_to_string(format!("{folder}{name}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// An admin server that shows `status`, and two minutes of a crowd before it.
fn show(status: &Status) -> (String, tokio::runtime::Runtime) {
    let board = StatusBoard::default();
    for second in 0..120_u32 {
        let mut past = status.clone();
        let crowd = f64::from(second.saturating_sub(30).min(40)) / 40.0;
        past.uptime -= 120.0 - f64::from(second);
        past.rates.out = (past.rates.out as f64 * (0.1 + 0.9 * crowd)) as u64;
        past.rates.own = (past.rates.own as f64 * (0.15 + 0.85 * crowd)) as u64;
        past.rates.redirect = (past.rates.redirect as f64 * crowd) as u64;
        past.rates.rescue = (past.rates.rescue as f64 * crowd) as u64;
        past.rates.requests *= 0.1 + 0.9 * crowd;
        past.rates.redirects *= crowd;
        board.publish(past);
    }
    board.publish(status.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(serve(
        listener,
        Arc::new(Sample(board)),
        AdminLimits::default(),
    ));
    (url, runtime)
}

#[test]
fn the_dashboard_draws_who_helps_whom_and_the_last_minutes() {
    let (url, _server) = show(&sample("sos.json"));
    let dom = browser::dom(&format!("{url}/dashboard"), Look::Live);
    assert!(
        dom.contains("being rescued by 2 servers; 87 % of visitors"),
        "{dom}"
    );
    assert_eq!(
        dom.matches("class=\"peer").count(),
        3,
        "three rescue servers"
    );
    assert!(dom.contains("big.localhost:8081"));
    assert_eq!(dom.matches("<canvas").count(), 2, "two charts");
    assert!(dom.contains("news.localhost/posts/the-one"));
    assert!(dom.contains("state changed from normal to sos"));
    let (url, _server) = show(&sample("rescue.json"));
    let dom = browser::dom(&format!("{url}/dashboard"), Look::Live);
    assert!(dom.contains("class=\"peer origin"), "{dom}");
}

/// What stands behind each `mark` in `text`, up to the next quote.
fn numbers(text: &str, mark: &str) -> Vec<f64> {
    let parts = text.split(mark).skip(1);
    parts
        .map(|part| part.split('"').next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn no_line_of_the_drawing_is_cut_off() {
    let mut alone = sample("sos.json");
    alone.rescue_servers.clear();
    for status in [alone, sample("rescue.json")] {
        let (url, _server) = show(&status);
        let dom = browser::dom(&format!("{url}/dashboard"), Look::Live);
        let drawing = dom.split("id=\"stage\"").nth(1).unwrap();
        let drawing = drawing.split("</svg>").next().unwrap();
        // Of a width that is one of two.
        let [height] = [numbers(drawing, "0 0 900 "), numbers(drawing, "0 0 420 ")].concat()[..]
        else {
            panic!("it has no size: {drawing}");
        };
        let lowest = numbers(drawing, " y=\"").into_iter().fold(0.0, f64::max);
        // Letters reach a little below their line.
        assert!(
            lowest > 0.0 && lowest + 5.0 <= height,
            "{lowest} of {height}"
        );
    }
}

#[test]
fn the_status_page_needs_no_script() {
    let (url, _server) = show(&sample("sos.json"));
    let dom = browser::dom(&url, Look::Loaded);
    assert!(
        dom.contains("being rescued by 2 servers; 87 % of visitors"),
        "{dom}"
    );
    assert!(dom.contains("T_high") && dom.contains("Last decisions"));
    assert!(!dom.contains("<script"));
}

#[test]
fn hostile_names_stay_text_in_the_browser() {
    let evil = "</script><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";
    let mut status = sample("sos.json");
    status.site = evil.into();
    status.hot[0].url = evil.into();
    status.decisions[0].text = evil.into();
    status.rescue_servers[0].site = evil.into();
    status.rescue_servers[0].alias = evil.into();
    status.registry.last_error = evil.into();
    let (url, _server) = show(&status);
    for (path, look) in PAGES {
        let dom = browser::dom(&format!("{url}{path}"), look);
        assert!(dom.contains("&lt;img src=x"), "{dom}");
        assert!(!dom.contains("<img"), "{dom}");
        assert!(!dom.contains("<title>taken"), "{dom}");
    }
}

#[test]
fn pages_fit_a_phone_and_a_desk() {
    let (url, _server) = show(&sample("sos.json"));
    let folder = tempfile::tempdir().unwrap();
    for window in [Window::Phone, Window::Desk] {
        for (path, look) in PAGES {
            let picture = folder.path().join("page.png");
            browser::screenshot(&format!("{url}{path}"), look, window, &picture);
            let bytes = std::fs::read(&picture).unwrap();
            assert!(bytes.starts_with(b"\x89PNG"), "{path}");
            assert!(bytes.len() > 20_000, "{path} is all but empty");
            if let Some(keep) = std::env::var_os("KEEP_SCREENSHOTS") {
                let name = format!("{window:?}{}.png", path.replace('/', "-"));
                std::fs::copy(&picture, std::path::Path::new(&keep).join(name)).unwrap();
            }
        }
    }
}
