//! Every kind of misbehaviour costs its own link, and names its cause.

use std::time::Duration;

use levee_control::{Input, LinkLoss, Output};

use crate::stage::{Stage, accept, settings};
use crate::{SOS, rate, shut_down};

#[derive(Clone, Copy, PartialEq)]
enum When {
    Instead,
    AfterSos,
}

/// What is typed after the SOS was accepted, or instead of it, costs the link and names its cause.
async fn check_dropped(when: When, text: &[u8], answer: &str, cause: &'static str) {
    let mut settings = settings();
    match text.last() {
        Some(b'\n') => {}
        Some(_) => settings.session.line_wait = Duration::from_millis(50),
        None => settings.session.sos_wait = Duration::from_millis(50),
    }
    let mut stage = Stage::set(settings).await;
    let mut netcat = stage.netcat().await;
    let mut greeted = None;
    if when == When::AfterSos {
        netcat.types(&format!("{SOS}\n")).await;
        let link = stage.next_call().await.0;
        stage.obeys(accept(link));
        netcat
            .reads("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
            .await;
        greeted = Some(link);
    }
    netcat.types_bytes(text).await;
    if !answer.is_empty() {
        netcat.reads(answer).await;
    }
    netcat.reads_the_end().await;
    stage.has_refused(cause, 1).await;
    let Some(lost) = greeted else {
        return assert!(stage.is_quiet());
    };
    let event = stage.next().await;
    let Input::LinkLost { link, .. } = event.clone() else {
        panic!("{cause}: {event:?}");
    };
    assert_eq!(link, lost);
}

#[tokio::test]
async fn a_peer_that_misbehaves_before_its_sos_is_dropped_with_a_reason() {
    let megabyte = vec![b'x'; 1 << 20];
    let unknown = "1 501 Unknown\n";
    let bad = "1 400 parameter address is missing\n";
    check_dropped(When::Instead, b"GET / HTTP/1.1\r\n", "", "malformed").await;
    check_dropped(When::Instead, b"\x16\x03\x01\x02\x00\n", "", "malformed").await;
    check_dropped(When::Instead, b"1 SOS www.origin.com\n", bad, "malformed").await;
    check_dropped(When::Instead, &megabyte, "", "line_too_long").await;
    check_dropped(When::Instead, b"1 RATE 60\n", "", "out_of_place").await;
    check_dropped(When::Instead, b"1 SHUTDOWN\n", "", "out_of_place").await;
    check_dropped(When::Instead, b"1 HELLO\n", unknown, "out_of_place").await;
    check_dropped(
        When::Instead,
        b"2 SOS www.origin.com 1.2.3.4 8080 600\n",
        "",
        "wrong_number",
    )
    .await;
    check_dropped(When::Instead, b"1 200 OK\n", "", "unexpected_answer").await;
    check_dropped(When::Instead, b"1 SO", "", "half_line").await;
    check_dropped(When::Instead, b"", "", "no_sos").await;
}

#[tokio::test]
async fn a_peer_that_misbehaves_after_its_sos_is_dropped_with_a_reason() {
    let flood: String = (2..200).map(|number| format!("{number} HELLO\n")).collect();
    check_dropped(When::AfterSos, b"what is this\n", "", "malformed").await;
    check_dropped(When::AfterSos, b"1 SHUTDOWN\n", "", "wrong_number").await;
    check_dropped(When::AfterSos, b"3 SHUTDOWN\n", "", "wrong_number").await;
    check_dropped(
        When::AfterSos,
        format!("{SOS}\n").as_bytes(),
        "",
        "wrong_number",
    )
    .await;
    check_dropped(
        When::AfterSos,
        b"2 SOS www.origin.com 1.2.3.4 80 6\n",
        "",
        "out_of_place",
    )
    .await;
    check_dropped(When::AfterSos, b"2 RATE 60\n", "", "out_of_place").await;
    check_dropped(When::AfterSos, b"1 200 OK\n", "", "unexpected_answer").await;
    check_dropped(When::AfterSos, b"2 SHUT", "", "half_line").await;
    check_dropped(When::AfterSos, flood.as_bytes(), "", "too_many_messages").await;
}

#[tokio::test]
async fn a_peer_that_never_answers_a_rate_is_lost() {
    let mut settings = settings();
    settings.session.answer_wait = Duration::from_millis(100);
    let mut stage = Stage::set(settings).await;
    let (mut netcat, link) = stage.greeted().await;
    let rate = rate(60);
    stage.obeys(Output::TellRate {
        link,
        rate,
        carried: None,
    });
    netcat.reads("1 RATE 60\n").await;
    let loss = LinkLoss::Silent;
    stage.hears(Input::LinkLost { link, loss }).await;
    netcat.reads_the_end().await;
    stage.has_refused("no_answer", 1).await;
}

#[tokio::test]
async fn a_peer_that_goes_without_a_word_is_lost_at_once() {
    let mut stage = Stage::set(settings()).await;
    let (netcat, link) = stage.greeted().await;
    drop(netcat);
    let loss = LinkLoss::Closed;
    stage.hears(Input::LinkLost { link, loss }).await;
}

#[tokio::test]
async fn a_shutdown_that_is_not_answered_ends_all_the_same() {
    let mut settings = settings();
    settings.session.closing_wait = Duration::from_millis(100);
    let mut stage = Stage::set(settings).await;
    let (mut netcat, link) = stage.greeted().await;
    stage.obeys(shut_down(link));
    netcat.reads("1 SHUTDOWN\n").await;
    netcat.reads_the_end().await;
    stage.links.finish().await;
}

#[tokio::test]
async fn a_hundred_hostile_connections_do_not_disturb_a_good_link() {
    let mut settings = settings();
    settings.inbound_per_address_max = 8;
    let mut stage = Stage::set(settings).await;
    let (mut good, link) = stage.greeted().await;
    let mut hostile = Vec::new();
    for number in 1..=100_u64 {
        let mut netcat = stage.netcat().await;
        match number % 5 {
            0 => netcat.types_bytes(&[b'x'; 100_000]).await,
            1 => netcat.types_bytes(b"1 SO").await,
            2 => netcat.types_bytes(b"\xFF\x00\n\n\n").await,
            3 => netcat.types_bytes(b"9 SHUTDOWN\n").await,
            _ => {}
        }
        hostile.push(netcat);
        let rate = rate(number);
        stage.obeys(Output::TellRate {
            link,
            rate,
            carried: None,
        });
        good.reads(&format!("{number} RATE {number}\n")).await;
        good.types(&format!("{number} 200 OK\n")).await;
        stage.hears(Input::AnswerReceived { link }).await;
    }
    // Who has something to say gets in, while those who say nothing hold every place.
    let (_second, _) = stage.greeted().await;
    drop(hostile);
    good.types("2 SHUTDOWN\n").await;
    good.reads("2 200 OK\n").await;
    stage.hears(Input::ShutdownReceived { link }).await;
}
