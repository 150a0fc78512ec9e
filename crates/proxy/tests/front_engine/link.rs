//! The outbound link under load, by its own clock.

use levee_vocab::ByteRate;

use crate::support::{Setup, get};

#[test]
fn all_bytes_and_connections_are_charged_and_no_second_is_over_the_rate() {
    let rate = ByteRate::from_kilobytes(400);
    let setup = Setup {
        link: Some(rate),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("a", vec![b'a'; 30_000]);
    let mut clients: Vec<_> = (0..10).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
    }
    for client in &mut clients {
        assert_eq!(client.receive().body.len(), 30_000);
    }
    // Fifteen pieces of 2000 bytes, each a segment of its own here, and the first is paid for.
    let heads = 10 * (358 + 14 * 70);
    let sample = running.sample_until(|sample| {
        sample
            .link
            .is_some_and(|link| link.carried == sample.bytes + heads && link.backlog == 0.0)
    });
    let link = sample.link.unwrap();
    assert!(link.peak <= rate.as_bytes(), "{link:?}");
    assert!(link.peak > 200_000, "{link:?}");
}

#[test]
fn later_responses_of_a_connection_cost_what_tcp_says() {
    let setup = Setup {
        link: Some(ByteRate::from_kilobytes(1000)),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("a", "aa");
    let mut client = running.connect();
    for _ in 0..10 {
        client.send(get("/a"));
        client.receive();
    }
    let sample = running.sample_until(|sample| sample.link.is_some_and(|link| link.backlog == 0.0));
    let overhead = sample.link.unwrap().carried - sample.bytes;
    // 358 for opening, closing and the first; then a segment each and few more, less the one for an
    // acknowledgement that the first answer carried itself.
    assert!(
        (358 + 8 * 70..358 + 9 * 210).contains(&overhead),
        "{overhead}"
    );
}

#[test]
fn a_slow_visitor_on_a_fast_link_gets_everything() {
    let setup = Setup {
        link: Some(ByteRate::from_kilobytes(500_000)),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("big", vec![7; 30_000_000]);
    let mut client = running.connect();
    client.send(get("/big"));
    // Until the buffers between us are full, and nothing moves any more.
    running.look_until(|sample| sample.held_up == 1);
    assert_eq!(client.receive().body.len(), 30_000_000);
}

#[test]
fn several_cores_share_one_link() {
    let rate = ByteRate::from_kilobytes(400);
    let mut setup = Setup {
        link: Some(rate),
        ..Setup::default()
    };
    setup.settings.cores = 3;
    let running = setup.start();
    running.write("a", vec![b'a'; 10_000]);
    let mut clients: Vec<_> = (0..30).map(|_| running.connect()).collect();
    for client in &mut clients {
        client.send(get("/a"));
    }
    for client in &mut clients {
        assert_eq!(client.receive().body.len(), 10_000);
    }
    let heads = 30 * (358 + 4 * 70);
    let sample = running.sample_until(|sample| {
        sample
            .link
            .is_some_and(|link| link.carried == sample.bytes + heads && link.backlog == 0.0)
    });
    assert!(sample.link.unwrap().peak <= rate.as_bytes());
}

#[test]
fn what_a_visitor_does_not_take_is_no_load_on_the_link() {
    let setup = Setup {
        link: Some(ByteRate::from_kilobytes(20_000)),
        ..Setup::default()
    };
    let running = setup.start();
    running.write("film", vec![b'f'; 60_000_000]);
    let mut reader = running.connect();
    reader.send(get("/film"));
    // Three seconds of the link were admitted; what fits into the kernel leaves, and then nobody
    // waits for the rest.
    running.look_until(|sample| {
        let link = sample.link.unwrap();
        sample.held_up == 1 && link.carried > 100_000 && link.backlog == 0.0
    });
    // It still comes when it is wanted.
    assert_eq!(reader.receive().body.len(), 60_000_000);
}
