//! Purges over a rescue link, at both of its ends.

use levee_control::{Input, PurgeOutcome};
use levee_vocab::{LinkId, Purge, PurgeKind};
use tokio::net::TcpListener;

use crate::stage::{Netcat, Stage, call, settings};

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
