//! Several upstreams behind one site: who gets a request, what is tried again and what never is.

#![allow(clippy::unwrap_used)]

#[path = "fetch_support/stage.rs"]
mod stage;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use levee_control::{Checked, Tier, UpstreamRules};
use levee_proxy::{
    CheckSettings, Endpoint, FetchError, FetchSettings, ServerErrors, UpstreamSettings, Upstreams,
    body_channel, watch_upstreams,
};
use stage::{Origin, Request, Stage, Visitor, bell, ok, say, say_and_close, say_and_hang, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

const OURS: &str = "Cache-Control: no-store\r\n";

/// Timeouts that a test can wait for.
fn impatient() -> FetchSettings {
    FetchSettings {
        first_byte_timeout: Duration::from_millis(100),
        body_timeout: Duration::from_millis(100),
        wait_max: Duration::from_millis(200),
        ..FetchSettings::default()
    }
}

async fn named(name: &'static str) -> Origin {
    Origin::says(&ok(OURS, name)).await
}

/// An address at which nobody listens.
async fn nowhere() -> SocketAddr {
    let origin = Origin::says("").await;
    let address = origin.address;
    origin.kill().await;
    address
}

/// Answers each request with the same words, at a socket in the file system.
fn serve_at(path: &Path, words: &'static str) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await? > 0 {
                    stream.write_all(ok(OURS, words).as_bytes()).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
}

fn group_of(stage: &Stage, addresses: &[SocketAddr]) -> Arc<Upstreams> {
    stage.group(UpstreamSettings::at(addresses))
}

#[tokio::test]
async fn requests_are_shared_out() {
    let (one, two) = (named("one").await, named("two").await);
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[one.address, two.address]);
    for number in 0..10 {
        let request = Request::balanced(&group, &format!("/{number}"));
        stage.get(&request).await.unwrap();
    }
    assert_eq!((one.asks(), two.asks()), (5, 5));
    assert_eq!((one.connections(), two.connections()), (1, 1));
    let requests: Vec<_> = group.view().iter().map(|view| view.requests).collect();
    assert_eq!(requests, [5, 5]);
}

#[tokio::test]
async fn a_dead_upstream_costs_no_visitor_anything() {
    let live = named("live").await;
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[nowhere().await, live.address]);
    for number in 0..20 {
        let request = Request::balanced(&group, &format!("/{number}"));
        assert_eq!(stage.get(&request).await.unwrap().text(), "live");
    }
    let dead = &group.view()[0];
    assert_eq!((dead.requests, dead.failures, dead.ejections), (3, 3, 1));
    assert_eq!(dead.outstanding, 0);
}

#[tokio::test]
async fn a_body_that_nothing_of_was_sent_goes_to_the_next_upstream_whole() {
    let live = Origin::play(|asked, stream| {
        let body = String::from_utf8(asked.body).unwrap();
        say(stream, ok(OURS, &body))
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[nowhere().await, live.address]);
    let request = Request::balanced(&group, "/form").method(Method::POST);
    let bell = bell();
    let (sender, receiver) = body_channel(64, Some(4), bell.clone(), 7);
    let mut miss = request.miss();
    miss.body = Some(receiver);
    let waiting = stage.fetcher.ask(miss, bell.clone(), 7).unwrap();
    let _ = sender.push(bytes::Bytes::from_static(b"a=12"));
    sender.finish();
    let answer = Visitor::with(waiting, bell).whole().await.unwrap();
    assert_eq!(answer.text(), "a=12");
    assert_eq!(group.view()[0].failures, 1);
}

#[tokio::test]
async fn a_post_that_may_have_had_its_effect_is_never_sent_again() {
    let broken = Origin::play(|_, stream| say_and_close(stream, "")).await;
    let live = named("live").await;
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[broken.address, live.address]);
    let request = Request::balanced(&group, "/order").method(Method::POST);
    let error = stage.get(&request).await.unwrap_err();
    assert_eq!(error, FetchError::ClosedEarly);
    assert_eq!((broken.asks(), live.asks()), (1, 0));
}

#[tokio::test]
async fn a_get_that_was_cut_off_or_not_answered_goes_to_another_upstream() {
    let broken = Origin::play(|_, stream| say_and_close(stream, "")).await;
    let silent = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let live = named("live").await;
    for sick in [&broken, &silent] {
        let stage = Stage::new(impatient());
        let group = group_of(&stage, &[sick.address, live.address]);
        let request = Request::balanced(&group, "/");
        assert_eq!(stage.get(&request).await.unwrap().text(), "live");
        assert_eq!(sick.asks(), 1);
    }
}

#[tokio::test]
async fn what_broke_off_in_its_body_is_not_repeated_but_counts() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: no-store\r\n\r\nhalf";
    let broken = Origin::play(move |_, stream| say_and_close(stream, half)).await;
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[broken.address]);
    for _ in 0..3 {
        let answer = stage.get(&Request::balanced(&group, "/")).await;
        assert_eq!(answer.unwrap_err(), FetchError::Truncated);
    }
    until(|| group.view()[0].ejections == 1).await;
}

#[tokio::test]
async fn a_storm_of_failures_is_not_doubled_by_retries() {
    let script = |_, stream| say_and_close(stream, "");
    let (one, two) = (Origin::play(script).await, Origin::play(script).await);
    let stage = Stage::new(FetchSettings::default());
    let mut settings = UpstreamSettings::at(&[one.address, two.address]);
    settings.rules.failures_max = u32::MAX;
    let group = stage.group(settings);
    for number in 0..200 {
        let request = Request::balanced(&group, &format!("/{number}"));
        assert!(stage.get(&request).await.is_err());
    }
    let sent = one.asks() + two.asks();
    assert!((200..=250).contains(&sent), "{sent}");
}

#[tokio::test]
async fn with_all_upstreams_down_each_request_is_still_tried() {
    let stage = Stage::new(FetchSettings::default());
    let origin = Origin::says("").await;
    let address = origin.address;
    origin.kill().await;
    let group = group_of(&stage, &[address]);
    for _ in 0..5 {
        let error = stage.get(&Request::balanced(&group, "/")).await;
        assert_eq!(error.unwrap_err(), FetchError::ConnectRefused);
    }
    assert_eq!(group.view()[0].ejections, 1);
    assert_eq!(group.view()[0].requests, 5);
}

#[tokio::test]
async fn server_errors_eject_only_where_they_are_counted() {
    let sick = Origin::says("HTTP/1.1 500 Sick\r\nContent-Length: 0\r\n\r\n").await;
    for (counting, ejections) in [(ServerErrors::Tolerated, 0), (ServerErrors::Failures, 1)] {
        let stage = Stage::new(FetchSettings::default());
        let mut settings = UpstreamSettings::at(&[sick.address]);
        settings.server_errors = counting;
        let group = stage.group(settings);
        for number in 0..5 {
            let request = Request::balanced(&group, &format!("/{number}"));
            stage.get(&request).await.unwrap();
        }
        assert_eq!(group.view()[0].ejections, ejections);
    }
}

#[tokio::test]
async fn more_requests_than_an_upstream_may_have_wait_for_a_bounded_time() {
    let silent = Origin::play(|_, stream| say_and_hang(stream, "")).await;
    let stage = Stage::new(FetchSettings {
        wait_max: Duration::from_millis(50),
        ..FetchSettings::default()
    });
    let mut settings = UpstreamSettings::at(&[silent.address]);
    settings.rules.outstanding_max = 1;
    let group = stage.group(settings);
    let held = stage.ask(&Request::balanced(&group, "/held").method(Method::POST));
    until(|| silent.asks() == 1).await;
    let error = stage.get(&Request::balanced(&group, "/late")).await;
    assert_eq!(error.unwrap_err(), FetchError::Overloaded);
    drop(held);
    until(|| group.view()[0].outstanding == 0).await;
}

#[tokio::test]
async fn a_visitor_who_waited_gets_the_place_of_one_who_left() {
    let origin = Origin::play(|asked, stream| match asked.number {
        0 => say_and_hang(stream, ""),
        _ => say(stream, ok(OURS, "here")),
    })
    .await;
    let stage = Stage::new(FetchSettings::default());
    let mut settings = UpstreamSettings::at(&[origin.address]);
    settings.rules.outstanding_max = 1;
    let group = stage.group(settings);
    let post = Request::balanced(&group, "/held").method(Method::POST);
    let held = stage.ask(&post);
    until(|| origin.asks() == 1).await;
    let late = stage.ask(&Request::balanced(&group, "/late"));
    drop(held);
    assert_eq!(late.whole().await.unwrap().text(), "here");
}

#[tokio::test]
async fn an_upstream_may_listen_on_a_socket_in_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    serve_at(&path, "by file");
    let stage = Stage::new(FetchSettings::default());
    let mut settings = UpstreamSettings::at(&[]);
    settings.list = vec![(Endpoint::Unix(path), Tier::Primary)];
    let group = stage.group(settings);
    for number in 0..3 {
        let request = Request::balanced(&group, &format!("/{number}"));
        assert_eq!(stage.get(&request).await.unwrap().text(), "by file");
    }
}

#[tokio::test]
async fn a_name_is_looked_up_and_one_that_leads_nowhere_says_so() {
    let origin = named("by name").await;
    let stage = Stage::new(FetchSettings::default());
    let mut settings = UpstreamSettings::at(&[]);
    let port = origin.address.port();
    settings.list = vec![(Endpoint::Name("localhost".into(), port), Tier::Primary)];
    let group = stage.group(settings.clone());
    let lost = stage.get(&Request::balanced(&group, "/")).await;
    assert_eq!(lost.unwrap_err(), FetchError::NameUnknown);
    group.look_up_names().await;
    let found = stage.get(&Request::balanced(&group, "/")).await;
    assert_eq!(found.unwrap().text(), "by name");
}

#[tokio::test]
async fn an_ejected_upstream_comes_back_when_somebody_listens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let live = named("live").await;
    let mut settings = UpstreamSettings::at(&[live.address]);
    let upstream = (Endpoint::Unix(path.clone()), Tier::Primary);
    settings.list.insert(0, upstream);
    settings.rules.ejection_min = Duration::from_millis(5);
    settings.rules.check_interval = Duration::from_millis(5);
    let group = Upstreams::new(settings, Arc::new(|| levee_net::Clock.now()));
    let watch = tokio::spawn(watch_upstreams(Arc::clone(&group)));
    let stage = Stage::new(FetchSettings::default());
    for number in 0..10 {
        let request = Request::balanced(&group, &format!("/{number}"));
        assert_eq!(stage.get(&request).await.unwrap().text(), "live");
    }
    assert!(group.view()[0].ejected_until.is_some());
    serve_at(&path, "again");
    until(|| group.view()[0].ejected_until.is_none()).await;
    let answers = [
        stage.get(&Request::balanced(&group, "/a")).await.unwrap(),
        stage.get(&Request::balanced(&group, "/b")).await.unwrap(),
    ];
    assert!(answers.iter().any(|answer| answer.text() == "again"));
    watch.abort();
}

#[tokio::test]
async fn checks_by_path_eject_and_bring_back() {
    let well = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let told = well.clone();
    let origin = Origin::play(move |asked, stream| {
        assert!(asked.line().starts_with("GET /healthz "), "{}", asked.head);
        assert_eq!(asked.header("host").unwrap(), "www.example.org");
        match told.load(std::sync::atomic::Ordering::SeqCst) {
            true => say(stream, ok("", "well")),
            false => say(stream, "HTTP/1.1 503 Sick\r\nContent-Length: 0\r\n\r\n"),
        }
    })
    .await;
    let mut settings = UpstreamSettings::at(&[origin.address]);
    settings.rules = UpstreamRules {
        checked: Checked::All,
        check_interval: Duration::from_millis(5),
        ejection_min: Duration::from_millis(5),
        ..UpstreamRules::default()
    };
    settings.check = CheckSettings {
        path: Some("/healthz".into()),
        host: "www.example.org".into(),
        ..CheckSettings::default()
    };
    // Checks have a true clock, or they would never be due.
    let group = Upstreams::new(settings, Arc::new(|| levee_net::Clock.now()));
    let watch = tokio::spawn(watch_upstreams(Arc::clone(&group)));
    until(|| origin.asks() >= 3).await;
    assert!(group.view()[0].ejected_until.is_none());
    well.store(false, std::sync::atomic::Ordering::SeqCst);
    until(|| group.view()[0].ejected_until.is_some()).await;
    well.store(true, std::sync::atomic::Ordering::SeqCst);
    until(|| group.view()[0].ejected_until.is_none()).await;
    watch.abort();
}

#[tokio::test]
async fn connections_to_an_upstream_that_left_the_list_are_closed() {
    let (stays, leaves) = (named("stays").await, named("leaves").await);
    let stage = Stage::new(FetchSettings::default());
    let group = group_of(&stage, &[stays.address, leaves.address]);
    for number in 0..4 {
        let request = Request::balanced(&group, &format!("/{number}"));
        stage.get(&request).await.unwrap();
    }
    let gone = group.change(UpstreamSettings::at(&[stays.address]));
    assert_eq!(gone, [Endpoint::Address(leaves.address)]);
    stage.fetcher.close_idle(&gone);
    // Back again: by a new connection. The one that stayed keeps its own.
    group.change(UpstreamSettings::at(&[stays.address, leaves.address]));
    for number in 4..8 {
        let request = Request::balanced(&group, &format!("/{number}"));
        stage.get(&request).await.unwrap();
    }
    assert_eq!((stays.connections(), leaves.connections()), (1, 2));
}

#[tokio::test]
async fn a_kept_connection_costs_one_task_and_is_closed_when_its_time_is_over() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let origin = named("one").await;
    let stage = Stage::new(FetchSettings {
        idle_timeout: Duration::from_millis(500),
        ..FetchSettings::default()
    });
    let before = tasks();
    for number in 0..100 {
        let request = Request::upstream(&origin, &format!("/{number}"));
        stage.get(&request).await.unwrap();
        stage.settled().await;
    }
    // Each end of the connections, and who closes them: none for each request.
    let most = before + 2 * origin.connections() + 2;
    assert!(tasks() <= most, "{} tasks", tasks());
    until(|| tasks() == before).await;
}
