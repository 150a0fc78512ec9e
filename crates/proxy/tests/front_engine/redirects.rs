//! Redirects, refusals and waiting, under plans made by hand.

use levee_control::RoutePlan;
use levee_proxy::UnknownHost;
use levee_vocab::{ByteRate, LinkId};

use crate::support::{Setup, get, redirecting};

fn redirecting_setup() -> Setup {
    Setup {
        plan: redirecting("site-vh1.rescue.example"),
        unknown: UnknownHost::Serve,
        ..Setup::default()
    }
}

#[test]
fn a_redirect_is_short_and_exact() {
    let running = redirecting_setup().start();
    running.write("a", vec![b'a'; 5000]);
    let response = running.get("/a?b=c");
    let date = response.header("date").to_owned();
    assert_eq!(
        response.head,
        format!(
            "HTTP/1.1 302 Found\r\nLocation: http://site-vh1.rescue.example:8080/a?b=c\r\n\
             Cache-Control: no-store\r\nContent-Length: 0\r\nDate: {date}\r\n\r\n"
        )
    );
    let bytes = response.head.len() as u64;
    // The visitor may have the last byte a moment before the core has counted it.
    let sample = running.sample_until(|sample| sample.bytes == bytes);
    let slot = sample.slots[&7];
    assert_eq!((slot.redirects, slot.redirect_bytes), (1, bytes));
    assert_eq!(
        slot.redirect_accounted,
        ((bytes + 358) as f64 * 0.8).round() as u64
    );
    assert!(slot.redirect_file_bytes >= 5000 && slot.redirect_file_bytes < 5400);
    assert_eq!((sample.own_requests, sample.own_bytes), (0, 0));
}

#[test]
fn what_only_we_can_answer_is_never_redirected() {
    let mut setup = redirecting_setup();
    let key = "0123456789abcdef0123456789abcdef";
    setup.plan.fetch_keys = vec![(LinkId::Outbound(1), key.parse().unwrap())];
    let running = setup.start();
    running.write("a", vec![b'a'; 5000]);
    running.write(".well-known/acme-challenge/x", vec![b'a'; 5000]);
    let with = |line: &str| {
        running.ask(&format!(
            "GET /a HTTP/1.1\r\nHost: site.example\r\n{line}\r\n\r\n"
        ))
    };
    let fetch = format!("levee-fetch: {key}");
    for line in [
        fetch.as_str(),
        "Cookie: a=b",
        "Authorization: Basic x",
        "Cache-Control: no-cache",
        "Pragma: no-cache",
        "X-Forwarded-Proto: https",
    ] {
        assert_eq!(with(line).status, 200, "{line}");
    }
    assert_eq!(
        with("levee-fetch: 0123456789abcdef0123456789abcdee").status,
        302
    );
    assert_eq!(running.get("/.well-known/acme-challenge/x").status, 200);
    assert_eq!(running.get("/none").status, 404);
    let mut client = running.connect();
    client.send("HEAD /a HTTP/1.1\r\nHost: site.example\r\n\r\n");
    assert_eq!(client.receive_head().status, 302);
    let sample = running.sample_until(|sample| sample.requests == 10);
    assert_eq!((sample.fetches_served, sample.redirects), (1, 2));
}

#[test]
fn requests_that_wait_are_redirected_when_help_comes() {
    let mut setup = Setup {
        // Nothing fits through: the first page alone fills the link for longer than the limit.
        link: Some(ByteRate::from_bytes(2000)),
        ..Setup::default()
    };
    setup.settings.gate.wait_max = std::time::Duration::from_secs(3600);
    let running = setup.start();
    running.write("a", vec![b'a'; 20_000]);
    let mut first = running.connect();
    first.send(get("/a"));
    running.sample_until(|sample| sample.own_requests == 1);
    let mut clients: Vec<_> = (0..3).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
    }
    running.sample_until(|sample| sample.waiting == 3);
    running.publish(redirecting("site-vh1.rescue.example"));
    for client in &mut clients {
        let response = client.receive();
        assert_eq!(response.status, 302);
        assert_eq!(response.header("connection"), "close");
    }
    let sample = running.sample_until(|sample| sample.waiting == 0);
    assert_eq!(sample.redirects, 3);
}

#[test]
fn who_waited_too_long_is_refused_and_beyond_that_dropped() {
    let mut setup = Setup {
        link: Some(ByteRate::from_bytes(2000)),
        ..Setup::default()
    };
    setup.settings.gate.wait_max = std::time::Duration::ZERO;
    let running = setup.start();
    running.write("a", vec![b'a'; 20_000]);
    let mut first = running.connect();
    first.send(get("/a"));
    running.sample_until(|sample| sample.own_requests == 1);
    let mut clients: Vec<_> = (0..20).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
    }
    let answers: Vec<Vec<u8>> = clients.iter_mut().map(|client| client.rest()).collect();
    let refusals = answers.iter().filter(|answer| !answer.is_empty()).count() as u64;
    for answer in answers.iter().filter(|answer| !answer.is_empty()) {
        let text = String::from_utf8_lossy(answer);
        assert!(
            text.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: "),
            "{text}"
        );
        assert!(text.contains("\r\nContent-Length: 0\r\n"), "{text}");
    }
    let sample = running.sample_until(|sample| sample.dropped + sample.refused == 20);
    assert_eq!(sample.refused, refusals);
    assert!(refusals >= 1 && sample.dropped >= 15, "{sample:?}");
}

#[test]
fn redirects_wait_outside_while_redirects_alone_fill_the_link() {
    let mut setup = redirecting_setup();
    setup.link = Some(ByteRate::from_bytes(2000));
    setup.settings.gate.wait_max = std::time::Duration::from_secs(3600);
    let running = setup.start();
    running.write("a", vec![b'a'; 5000]);
    let mut clients: Vec<_> = (0..30).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
    }
    let sample = running.sample_until(|sample| sample.requests == 30);
    // One redirect takes the link a quarter of a second; the limit is one second.
    assert!(sample.waiting >= 24, "{sample:?}");
    assert!(sample.link.unwrap().backlog < 1.4, "{sample:?}");
    assert_eq!(clients[0].receive().status, 302);
}

#[test]
fn a_new_plan_ends_redirecting() {
    let running = redirecting_setup().start();
    running.write("a", "aa");
    running.write("b", vec![b'b'; 5000]);
    let mut client = running.connect();
    client.send(get("/b"));
    assert_eq!(client.receive().status, 302);
    running.publish(RoutePlan::default());
    // The same connection goes on; the plan comes by message, so it may take a moment.
    loop {
        client.send(get("/b"));
        let response = client.receive();
        if response.status == 200 {
            break;
        }
        assert_eq!(response.status, 302);
    }
}
