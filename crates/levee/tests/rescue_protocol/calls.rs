//! Calls for help: how they fail, and whose addresses are believed.

use std::time::Duration;

use levee_control::{Input, LinkLoss, Output, Rejection};
use levee_registry::PrivateAddresses;
use tokio::net::TcpListener;

use crate::stage::{Netcat, Stage, call, settings, web};
use crate::{OUT, SOS};

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

/// Whom we ask for help, or for a rehearsal, offers a name that leads to a bystander.
async fn offers_a_bystander(stage: &Stage, drill: Option<Duration>) -> Netcat {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut order = call(OUT, listener.local_addr().unwrap());
    if let Output::CallForHelp { call, .. } = &mut order {
        call.drill = drill;
    }
    stage.obeys(order);
    let mut netcat = Netcat::over(listener.accept().await.unwrap().0);
    netcat.line().await;
    let answer = "1 200 OK www.bystander.com 5.6.7.8 8080 100 drill=1\n";
    netcat.types(answer).await;
    netcat
}

#[tokio::test]
async fn nobody_is_sent_to_a_name_that_leads_away_from_its_rescue_server() {
    let mut stage = Stage::set(settings()).await;
    let mut netcat = offers_a_bystander(&stage, None).await;
    let (link, rejection) = (OUT, Rejection::Garbage);
    stage.hears(Input::RescueRefused { link, rejection }).await;
    netcat.reads_the_end().await;
    stage.has_refused("alias_elsewhere", 1).await;
}

#[tokio::test]
async fn a_rehearsal_is_there_to_find_such_a_name() {
    let mut stage = Stage::set(settings()).await;
    let _netcat = offers_a_bystander(&stage, Some(Duration::from_secs(60))).await;
    let told = stage.next().await;
    assert!(matches!(told, Input::RescueAccepted { .. }), "{told:?}");
    // Looks go where visitors would, and are told so by the link.
    stage.knows_that_it_leads_to(&["9.9.9.9"]).await;
    let link = OUT;
    stage.obeys(Output::DropLink { link });
    stage.knows_that_it_leads_to(&[]).await;
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
