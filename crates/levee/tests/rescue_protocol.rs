//! Rescue links over real sockets: the paper's examples as typed into netcat, every kind of
//! misbehaviour, and the limits (R7).
#![allow(clippy::unwrap_used)]

#[path = "rescue_protocol/stage.rs"]
mod stage;

use std::time::Duration;

use levee::rescue_link::Obeyed;
use levee_control::{
    Input, LinkLoss, Output, PurgeOutcome, Reason, Rejection, RescueCall, ShutdownCause,
};
use levee_registry::PrivateAddresses;
use levee_vocab::{ByteRate, FetchKey, LinkId, Peer, Purge, PurgeKind};
use stage::{Netcat, Stage, accept, call, settings, web};
use tokio::net::TcpListener;

const SOS: &str = "1 SOS www.origin.com 1.2.3.4 8080 600";
const OUT: LinkId = LinkId::Outbound(1);

fn rate(kilobytes: u64) -> ByteRate {
    ByteRate::from_kilobytes(kilobytes)
}

fn reject(link: LinkId) -> Output {
    let origin = "www.origin.com".parse().unwrap();
    let why = "for the test";
    let reason = Reason::SosRejected { origin, why };
    Output::RejectSos { link, reason }
}

fn shut_down(link: LinkId) -> Output {
    let cause = ShutdownCause::CompleteRelease;
    Output::ShutDown { link, cause }
}

#[tokio::test]
async fn the_papers_first_example_byte_for_byte() {
    let mut stage = Stage::set(settings()).await;
    let mut netcat = stage.netcat().await;
    netcat
        .types("1 SOS www.origin.com 1.2.3.4 8080 600\n")
        .await;
    let link = stage.next_call().await.0;
    stage.obeys(accept(link));
    netcat
        .reads("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
        .await;
    for (number, kilobytes) in [(1, 60), (2, 50), (3, 100)] {
        let rate = rate(kilobytes);
        stage.obeys(Output::TellRate {
            link,
            rate,
            carried: None,
        });
        netcat.reads(&format!("{number} RATE {kilobytes}\n")).await;
        netcat.types(&format!("{number} 200 OK\n")).await;
        stage.hears(Input::AnswerReceived { link }).await;
    }
    netcat.types("2 SHUTDOWN\n").await;
    netcat.reads("2 200 OK\n").await;
    stage.hears(Input::ShutdownReceived { link }).await;
    netcat.reads_the_end().await;
    assert_eq!(stage.links.refusals().counts(), []);
}

#[tokio::test]
async fn the_papers_first_example_with_netcat_as_the_rescue_server() {
    let mut stage = Stage::set(settings()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.obeys(call(OUT, listener.local_addr().unwrap()));
    let mut netcat = Netcat::over(listener.accept().await.unwrap().0);
    let sos = netcat.line().await;
    let key = sos.strip_prefix(&format!("{SOS} key=")).unwrap();
    let key = key.strip_suffix(" ttl=60 beat=1 v=1\n").unwrap();
    let key: FetchKey = key.parse().unwrap();
    netcat
        .types("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
        .await;
    stage
        .hears(Input::RescueAccepted {
            tls: None,
            link: OUT,
            alias: web("www-vh1.rescue.com"),
            address: "5.6.7.8".parse().unwrap(),
            rate: rate(100),
            key,
            beats: false,
            drill: false,
        })
        .await;
    for (number, kilobytes) in [(1, 60), (2, 50), (3, 100)] {
        netcat.types(&format!("{number} RATE {kilobytes}\n")).await;
        netcat.reads(&format!("{number} 200 OK\n")).await;
        let rate = rate(kilobytes);
        stage
            .hears(Input::RateReceived {
                link: OUT,
                rate,
                carried: None,
            })
            .await;
    }
    // The figure shows this line twice.
    netcat.types("3 RATE 100\n").await;
    netcat.reads("3 200 OK\n").await;
    stage.obeys(shut_down(OUT));
    netcat.reads("2 SHUTDOWN\n").await;
    netcat.types("2 200 OK\n").await;
    stage.hears(Input::AnswerReceived { link: OUT }).await;
    netcat.reads_the_end().await;
}

#[tokio::test]
async fn the_papers_second_example_byte_for_byte() {
    let mut stage = Stage::set(settings()).await;
    let mut netcat = stage.netcat().await;
    netcat
        .types("1 SOS www.origin.com 1.2.3.4 8080 600\n")
        .await;
    let link = stage.next_call().await.0;
    stage.obeys(reject(link));
    netcat.reads("1 403 Reject\n").await;
    netcat.reads_the_end().await;
    assert_eq!(stage.charged(), "1 403 Reject\n".len() as u64 + 70);
}

#[tokio::test]
async fn two_servers_agree_on_key_lifetime_and_beat() {
    let mut rescue = Stage::set(settings()).await;
    let mut origin = Stage::set(settings()).await;
    origin.obeys(call(OUT, rescue.address));
    let (link, said) = rescue.next_call().await;
    let expected = RescueCall {
        tls: None,
        key: said.key,
        ..stage::rescue_call()
    };
    assert_eq!(said, expected);
    rescue.obeys(accept(link));
    let event = origin.next().await;
    let Input::RescueAccepted { key, beats, .. } = event.clone() else {
        panic!("{event:?}");
    };
    assert_eq!((Some(key), beats), (said.key, true));
    let rate = rate(7);
    rescue.obeys(Output::TellRate {
        link,
        rate,
        carried: None,
    });
    origin
        .hears(Input::RateReceived {
            link: OUT,
            rate,
            carried: None,
        })
        .await;
    rescue.hears(Input::AnswerReceived { link }).await;
    rescue.obeys(shut_down(link));
    origin.hears(Input::ShutdownReceived { link: OUT }).await;
    rescue.hears(Input::AnswerReceived { link }).await;
    rescue.links.finish().await;
    origin.links.finish().await;
}

#[tokio::test]
async fn a_rescue_server_hears_of_the_others_but_for_those_whom_it_must_not_ask() {
    let mut rescue = Stage::set(settings()).await;
    let mut origin = Stage::set(settings()).await;
    origin.obeys(call(OUT, rescue.address));
    let (link, _) = rescue.next_call().await;
    rescue.obeys(accept(link));
    origin.next().await;
    let peer = |alias, address: &str| Peer {
        alias: web(alias),
        address: address.parse().unwrap(),
        rate: rate(9),
    };
    let good = peer("www-vh1.other.example", "203.0.113.9");
    let members = vec![good.clone(), peer("www-vh2.other.example", "0.0.0.0")];
    origin.obeys(Output::TellPeers { link: OUT, members });
    let heard = rescue.next().await;
    let Input::PeersReceived { link: from, peers } = heard else {
        panic!("peers were expected, not {heard:?}");
    };
    assert_eq!((from, peers.members), (link, vec![good]));
    rescue.has_refused("peer_refused", 1).await;
    origin.hears(Input::AnswerReceived { link: OUT }).await;
}

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
async fn who_pipes_one_line_into_netcat_gets_its_answer() {
    let mut stage = Stage::set(settings()).await;
    let mut netcat = stage.netcat().await;
    netcat.types(&format!("{SOS}\n")).await;
    netcat.finishes_typing().await;
    let link = stage.next_call().await.0;
    stage.obeys(accept(link));
    netcat
        .reads("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
        .await;
    let loss = LinkLoss::Closed;
    stage.hears(Input::LinkLost { link, loss }).await;
}

#[tokio::test]
async fn a_call_that_nobody_decides_is_rejected() {
    let mut settings = settings();
    settings.session.decision_wait = Duration::from_millis(100);
    let mut stage = Stage::set(settings).await;
    let mut netcat = stage.netcat().await;
    netcat.types(&format!("{SOS}\n")).await;
    let link = stage.next_call().await.0;
    netcat.reads("1 403 Reject\n").await;
    netcat.reads_the_end().await;
    let loss = LinkLoss::Silent;
    stage.hears(Input::LinkLost { link, loss }).await;
}

/// Whom we called does this, and the Brain hears of it.
async fn check_call(answer: Option<&str>, rejection: Rejection) {
    let mut settings = settings();
    if rejection == Rejection::Unreachable {
        settings.call_wait = Duration::from_millis(300);
    }
    let mut stage = Stage::set(settings).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.obeys(call(OUT, listener.local_addr().unwrap()));
    let mut netcat = Netcat::over(listener.accept().await.unwrap().0);
    netcat.line().await;
    if let Some(answer) = answer {
        netcat.types(answer).await;
    }
    let link = OUT;
    stage.hears(Input::RescueRefused { link, rejection }).await;
    netcat.reads_the_end().await;
}

#[tokio::test]
async fn a_call_for_help_fails_in_each_way_there_is() {
    check_call(Some("1 403 Reject\n"), Rejection::Refused).await;
    check_call(Some("1 503 Busy\n"), Rejection::Refused).await;
    check_call(Some("HTTP/1.1 400 Bad Request\r\n"), Rejection::Garbage).await;
    check_call(
        Some("2 200 OK www-vh1.a.com 5.6.7.8 80 1\n"),
        Rejection::Garbage,
    )
    .await;
    check_call(Some("1 200 OK\n"), Rejection::Garbage).await;
    check_call(
        Some("1 200 OK www.origin.com 5.6.7.8 80 1\n"),
        Rejection::Garbage,
    )
    .await;
    check_call(Some("1 RATE 60\n"), Rejection::Garbage).await;
    check_call(Some("1 200"), Rejection::Unreachable).await;
    check_call(None, Rejection::Unreachable).await;
}

#[tokio::test]
async fn a_candidate_that_is_not_there_or_not_permitted_is_unreachable() {
    let mut stage = Stage::set(settings()).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let (link, rejection) = (OUT, Rejection::Unreachable);
    stage.obeys(call(link, address));
    stage.hears(Input::RescueRefused { link, rejection }).await;
    stage.has_refused("not_connected", 1).await;

    let mut strict = settings();
    strict.private_addresses = PrivateAddresses::Refused;
    let mut stage = Stage::set(strict).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    stage.obeys(call(link, listener.local_addr().unwrap()));
    stage.hears(Input::RescueRefused { link, rejection }).await;
    stage.has_refused("address_refused", 1).await;
}

#[tokio::test]
async fn the_address_in_an_sos_must_be_the_peers_or_the_registered_one() {
    let mut stage = Stage::set(settings()).await;
    for line in [
        "1 SOS www.origin.com 1.2.3.5 8080 600\n",
        "1 SOS www.stranger.com 1.2.3.4 8080 600\n",
        "1 SOS www.origin.com 10.0.0.1 8080 600\n",
        "1 SOS www.origin.com 0.0.0.0 8080 600\n",
    ] {
        let mut netcat = stage.netcat().await;
        netcat.types(line).await;
        netcat.reads("1 403 Reject\n").await;
        netcat.reads_the_end().await;
    }
    stage.has_refused("address_refused", 4).await;
    let mut netcat = stage.netcat().await;
    netcat
        .types("1 SOS www.stranger.com 127.0.0.1 8080 600\n")
        .await;
    let (_, call) = stage.next_call().await;
    assert_eq!(call.origin, web("www.stranger.com"));
    assert!(stage.is_quiet());
}

#[tokio::test]
async fn an_offer_of_a_place_that_must_not_be_spoken_to_is_refused() {
    // The last is a bystander's.
    for address in ["0.0.0.0", "224.0.0.1", "9.9.9.9"] {
        let mut stage = Stage::set(settings()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        stage.obeys(call(OUT, listener.local_addr().unwrap()));
        let mut netcat = Netcat::over(listener.accept().await.unwrap().0);
        netcat.line().await;
        let answer = format!("1 200 OK www-vh1.rescue.com {address} 8080 100\n");
        netcat.types(&answer).await;
        let (link, rejection) = (OUT, Rejection::Garbage);
        stage.hears(Input::RescueRefused { link, rejection }).await;
        netcat.reads_the_end().await;
        stage.has_refused("address_refused", 1).await;
    }
}

#[tokio::test]
async fn private_addresses_need_permission() {
    let mut strict = settings();
    strict.private_addresses = PrivateAddresses::Refused;
    let mut stage = Stage::set(strict).await;
    let mut netcat = stage.netcat().await;
    netcat
        .types("1 SOS www.origin.com 127.0.0.1 8080 600\n")
        .await;
    netcat.reads("1 403 Reject\n").await;
    let mut netcat = stage.netcat().await;
    netcat.types(&format!("{SOS}\n")).await;
    assert_eq!(stage.next_call().await.1.address.to_string(), "1.2.3.4");
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

#[tokio::test]
async fn links_beyond_the_limit_are_closed_at_once() {
    let mut settings = settings();
    settings.inbound_max = 2;
    let mut stage = Stage::set(settings).await;
    let (_first, _) = stage.greeted().await;
    let (_second, _) = stage.greeted().await;
    let mut third = stage.netcat().await;
    third.reads_the_end().await;
    stage.has_refused("too_many_links", 1).await;
}

#[tokio::test]
async fn the_oldest_silent_link_makes_room_for_a_new_one() {
    let mut settings = settings();
    settings.inbound_max = 2;
    let mut stage = Stage::set(settings).await;
    let mut oldest = stage.netcat().await;
    let (_good, _) = stage.greeted().await;
    let (_better, _) = stage.greeted().await;
    oldest.reads_the_end().await;
    stage.has_refused("made_room", 1).await;
}

#[tokio::test]
async fn the_brain_can_drop_a_link_without_a_word() {
    let mut stage = Stage::set(settings()).await;
    let (mut netcat, link) = stage.greeted().await;
    stage.obeys(Output::DropLink { link });
    netcat.reads_the_end().await;
    assert!(stage.is_quiet());
    assert_eq!(stage.links.obey(&Output::SwapPlan), Obeyed::NotForLinks);
}

#[tokio::test]
async fn an_order_for_a_link_that_is_gone_tells_so() {
    let mut stage = Stage::set(settings()).await;
    let link = LinkId::Inbound(99);
    stage.obeys(accept(link));
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
async fn an_origin_purges_its_objects_by_netcat() {
    let mut stage = Stage::set(settings()).await;
    let (mut netcat, link) = stage.greeted().await;
    netcat
        .types("2 PURGE url=/a?b=c\n3 PURGE tags=news soft=1\n4 SHUTDOWN\n")
        .await;
    netcat.reads("2 200 OK objects=1\n").await;
    netcat.reads("3 200 OK objects=2\n").await;
    netcat.reads("4 200 OK\n").await;
    stage.hears(Input::ShutdownReceived { link }).await;
    let origin = || "www.origin.com:8080".to_owned();
    let expected = [(origin(), "/a?b=c".into()), (origin(), "keys news".into())];
    assert_eq!(*stage.purged.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_purge_goes_to_every_rescue_server_and_names_who_did_not_confirm() {
    let mut stage = Stage::set(settings()).await;
    let mut netcats = Vec::new();
    for number in 1..=3 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let link = LinkId::Outbound(number);
        stage.obeys(call(link, listener.local_addr().unwrap()));
        let mut netcat = Netcat::over(listener.accept().await.unwrap().0);
        netcat.line().await;
        netcat
            .types("1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100\n")
            .await;
        assert!(matches!(stage.next().await, Input::RescueAccepted { .. }));
        netcats.push(netcat);
    }
    let line = stage.links.purge_line();
    let purge = Purge::url("/news", PurgeKind::Hard).unwrap();
    let asked = tokio::spawn(async move { line.purge(purge).await });
    for netcat in &mut netcats {
        netcat.reads("2 PURGE url=/news\n").await;
    }
    netcats[0].types("2 200 OK objects=4\n").await;
    // An older version does not know the word; the link goes on.
    netcats[1].types("2 501 Unknown\n").await;
    drop(netcats.pop());
    let outcomes: Vec<PurgeOutcome> = asked.await.unwrap().iter().map(|one| one.outcome).collect();
    let expected = [
        PurgeOutcome::Confirmed { objects: 4 },
        PurgeOutcome::Refused,
        PurgeOutcome::Lost,
    ];
    assert_eq!(outcomes, expected);
    // Who is gone is not asked again, and nobody waits for him.
    let line = stage.links.purge_line();
    let purge = Purge::tags("news", PurgeKind::Soft).unwrap();
    let asked = tokio::spawn(async move { line.purge(purge).await });
    for netcat in &mut netcats {
        netcat.reads("3 PURGE tags=news soft=1\n").await;
        netcat.types("3 200 OK objects=0\n").await;
    }
    assert_eq!(asked.await.unwrap().len(), 2);
}
