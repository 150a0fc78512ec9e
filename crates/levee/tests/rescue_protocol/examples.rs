//! The paper's examples as typed into netcat, and what two servers of ours say beyond them.

use levee_control::{Input, LinkLoss, Output, RescueCall};
use levee_vocab::{FetchKey, Peer};
use tokio::net::TcpListener;

use crate::stage::{Netcat, Stage, accept, call, rescue_call, settings, web};
use crate::{OUT, SOS, rate, reject, shut_down};

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
        ..rescue_call()
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
        tls: Some(8443),
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
