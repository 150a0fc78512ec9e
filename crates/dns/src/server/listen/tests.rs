//! Real connections that hold all places and ask nothing, and who is answered all the same.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;

use super::super::own_zone::OwnZoneSettings;
use super::super::places::{CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX};
use super::*;

/// Long enough for a busy machine; reached only when something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// The secondary, which may have the whole zone.
const SECONDARY: Ipv4Addr = Ipv4Addr::new(127, 0, 2, 1);
const NEWCOMER: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 1);
/// Far more than the buffers between the two ends hold.
const RECORDS: usize = 5000;
/// Of each end; the system doubles it.
const BUFFER_BYTES: u32 = 8192;

/// A zone with so many records beside its few.
fn zone(records: usize) -> OwnZone {
    let mut file = "$TTL 30\n@ IN SOA ns admin 7 60 30 3600 5\n@ IN NS ns\nns IN A 192.0.2.53\n\
                    www IN A 192.0.2.1\n"
        .to_owned();
    let text = "x".repeat(200);
    for number in 0..records {
        file.push_str(&format!("n{number} IN TXT \"{text}\"\n"));
    }
    let zone = OwnZone::new(OwnZoneSettings {
        zone: "example.org".parse().unwrap(),
        file,
        memory: None,
        grants: vec![],
        // Nobody is told of changes there: nothing changes.
        secondaries: vec![(SECONDARY, 53).into()],
        seed: 1,
    });
    zone.unwrap()
}

/// A name server of a large zone, on real sockets.
async fn name_server() -> (SocketAddr, OwnZone) {
    let zone = zone(RECORDS);
    let socket = TcpSocket::new_v4().unwrap();
    // Connections have what their listener has.
    socket.set_send_buffer_size(BUFFER_BYTES).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let tcp = socket.listen(1024).unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    zone.serve(udp, tcp);
    (address, zone)
}

struct Client(TcpStream);

impl Client {
    async fn connects(server: SocketAddr, from: Ipv4Addr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER_BYTES).unwrap();
        socket.bind((from, 0).into()).unwrap();
        Self(socket.connect(server).await.unwrap())
    }

    async fn asks(&mut self, name: &str, of: RecordType) {
        let mut question = Message::query();
        question.add_query(Query::query(Name::from_ascii(name).unwrap(), of));
        let question = question.to_vec().unwrap();
        write_message(&mut self.0, &question).await.unwrap();
    }

    async fn reads(&mut self) -> Message {
        let answer = timeout(PATIENCE, read_message(&mut self.0)).await;
        Message::from_vec(&answer.expect("an answer").unwrap()).unwrap()
    }

    async fn is_answered(&mut self) {
        self.asks("www.example.org.", RecordType::A).await;
        assert_eq!(self.reads().await.answers.len(), 1);
    }

    async fn is_closed(&mut self) {
        let mut rest = Vec::new();
        let end = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        // An end or a reset.
        let _ = end.expect("an end");
        assert!(rest.is_empty());
    }
}

/// Takes so many places, and keeps them without a question under way.
async fn idlers(server: SocketAddr, count: usize) -> Vec<Client> {
    let mut idlers = Vec::new();
    for number in 0..count {
        let host = 1 + number / CONNECTIONS_PER_ADDRESS_MAX;
        let from = Ipv4Addr::new(127, 0, 1, u8::try_from(host).unwrap());
        let mut idler = Client::connects(server, from).await;
        // It has its place, and not only its connection.
        idler.is_answered().await;
        idlers.push(idler);
    }
    idlers
}

#[tokio::test]
async fn who_holds_all_places_and_asks_nothing_keeps_nobody_out() {
    let (server, zone) = name_server().await;
    let mut idlers = idlers(server, CONNECTIONS_MAX).await;
    // This one is as old as the next ones, and has a use for its connection.
    idlers[0].is_answered().await;
    // Half a question is none.
    idlers[1].0.write_all(&[0, 30, 7]).await.unwrap();
    let mut newcomers = Vec::new();
    for gone in [1, 2] {
        let mut newcomer = Client::connects(server, NEWCOMER).await;
        newcomer.is_answered().await;
        newcomers.push(newcomer);
        idlers[gone].is_closed().await;
    }
    assert_eq!(zone.counts().made_way, 2);
    for kept in [0, 3, CONNECTIONS_MAX - 1] {
        idlers[kept].is_answered().await;
    }
}

#[tokio::test]
async fn a_network_that_has_all_its_places_makes_way_for_itself() {
    let (server, zone) = name_server().await;
    let mut idlers = idlers(server, CONNECTIONS_PER_ADDRESS_MAX + 1).await;
    let mut neighbour = idlers.pop().unwrap();
    let mut newcomer = Client::connects(server, Ipv4Addr::new(127, 0, 1, 1)).await;
    newcomer.is_answered().await;
    idlers[0].is_closed().await;
    idlers[1].is_answered().await;
    neighbour.is_answered().await;
    assert_eq!(zone.counts().made_way, 1);
}

#[tokio::test]
async fn a_transfer_that_is_under_way_is_not_cut_off() {
    let (server, zone) = name_server().await;
    let mut secondary = Client::connects(server, SECONDARY).await;
    secondary.is_answered().await;
    let mut idlers = idlers(server, CONNECTIONS_MAX - 1).await;
    secondary.asks("example.org.", RecordType::AXFR).await;
    let mut received = secondary.reads().await.answers;
    assert_eq!(received[0].record_type(), RecordType::SOA);
    // It has been there for longest, and the server waits for it to read on.
    let mut newcomers = Vec::new();
    for idler in idlers.iter_mut().take(3) {
        let mut newcomer = Client::connects(server, NEWCOMER).await;
        newcomer.is_answered().await;
        newcomers.push(newcomer);
        idler.is_closed().await;
    }
    while received.len() < 2 || received.last().unwrap().record_type() != RecordType::SOA {
        received.extend(secondary.reads().await.answers);
    }
    // The zone, and its SOA at both ends.
    assert_eq!(received.len(), RECORDS + 5);
    assert_eq!(zone.counts().made_way, 3);
    secondary.is_answered().await;
}

#[tokio::test]
async fn a_network_of_ipv6_has_no_more_connections_than_one_address() {
    let (zone, open) = (zone(0), Open::default());
    let connect = |network: usize, host: usize| {
        let address = format!("[2001:db8:0:{network}::{host}]:53");
        let place = zone.place(&open, address.parse().unwrap());
        place.filter(|place| place.is_still_ours(Work::UnderWay))
    };
    let most = CONNECTIONS_PER_ADDRESS_MAX;
    let mut places: Vec<_> = (1..=most).map(|host| connect(1, host)).collect();
    assert!(places.iter().all(Option::is_some));
    assert!(connect(1, most + 1).is_none());
    assert_eq!(zone.counts().turned_away, 1);
    assert!(connect(2, 1).is_some());
    places.pop();
    assert!(connect(1, most + 1).is_some());
    assert_eq!(zone.counts().made_way, 0);
}
