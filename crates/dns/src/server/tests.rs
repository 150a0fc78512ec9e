//! What a zone of our own answers, and what updates do to it, message by message.

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};

use super::answer::{Answers, Weights};
use super::own_zone::{Carrier, Keeps, Memory, OwnZone, OwnZoneSettings};
use super::records::Records;
use super::*;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::zone::{Change, Edit, Expected, Kind, Record, Value, Zone};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ZONE: &str = "$TTL 30\n\
    @ IN SOA ns admin 7 60 30 3600 5\n\
    @ IN NS ns\n\
    ns IN A 192.0.2.53\n\
    www IN A 192.0.2.1\n\
    www IN A 192.0.2.2\n\
    www IN A 192.0.2.3\n\
    blog IN CNAME www\n\
    loop IN CNAME pool\n\
    pool IN CNAME loop\n\
    a.deep IN A 192.0.2.4\n\
    *.vh IN A 192.0.2.5\n\
    here.vh IN TXT \"here\"\n\
    sub IN NS ns.sub\n\
    ns.sub IN A 192.0.2.6\n\
    pairs IN A 192.0.2.7\n\
    pairs IN A 192.0.2.8\n\
    pairs IN AAAA 2001:db8::7\n\
    pairs IN AAAA 2001:db8::8\n";

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn answers() -> Answers {
    Answers::new(Records::read(&name("example.org."), ZONE, 0).unwrap(), 3)
}

fn ask(answers: &mut Answers, asked: &str, of: RecordType) -> Message {
    let mut request = Message::query();
    request.add_query(Query::query(name(asked), of));
    answers.answer(&request)
}

/// What an answer says: its code, its answers, and the types of its authorities.
fn check(asked: &str, of: RecordType, code: ResponseCode, said: &[&str], authority: &[RecordType]) {
    let answer = ask(&mut answers(), asked, of);
    let mut found: Vec<String> = answer
        .answers
        .iter()
        .map(|record| format!("{} {}", record.name, record.data))
        .collect();
    found.sort();
    assert_eq!(answer.metadata.response_code, code, "{asked} {of}");
    assert_eq!(found, said, "{asked} {of}");
    let types: Vec<RecordType> = answer
        .authorities
        .iter()
        .map(|one| one.record_type())
        .collect();
    assert_eq!(types, authority, "{asked} {of}");
}

#[test]
fn questions_get_what_the_zone_has_and_denials_its_soa() {
    use RecordType as Type;
    use ResponseCode as Code;
    let soa = &[Type::SOA][..];
    let three = [
        "www.example.org. 192.0.2.1",
        "www.example.org. 192.0.2.2",
        "www.example.org. 192.0.2.3",
    ];
    check("WWW.Example.ORG.", Type::A, Code::NoError, &three, &[]);
    check("www.example.org.", Type::AAAA, Code::NoError, &[], soa);
    check("nobody.example.org.", Type::A, Code::NXDomain, &[], soa);
    check("example.org.", Type::A, Code::NoError, &[], soa);
    // Nothing of its own, but something below it.
    check("deep.example.org.", Type::A, Code::NoError, &[], soa);
    let chain = ["blog.example.org. www.example.org."];
    let chained: Vec<&str> = chain.iter().chain(&three).copied().collect();
    check("blog.example.org.", Type::A, Code::NoError, &chained, &[]);
    check("blog.example.org.", Type::CNAME, Code::NoError, &chain, &[]);
    check("www.example.com.", Type::A, Code::Refused, &[], &[]);
    let any = ask(&mut answers(), "www.example.org.", Type::ANY);
    assert_eq!(any.answers.len(), 3);
    let endless = ask(&mut answers(), "loop.example.org.", Type::A);
    assert_eq!(endless.metadata.response_code, Code::ServFail);
}

#[test]
fn a_wildcard_stands_for_names_that_are_not_there() {
    use RecordType as Type;
    let given = ["www-vh1.vh.example.org. 192.0.2.5"];
    check(
        "www-vh1.vh.example.org.",
        Type::A,
        ResponseCode::NoError,
        &given,
        &[],
    );
    let soa = &[Type::SOA][..];
    check(
        "here.vh.example.org.",
        Type::A,
        ResponseCode::NoError,
        &[],
        soa,
    );
    check(
        "x.here.vh.example.org.",
        Type::A,
        ResponseCode::NXDomain,
        &[],
        soa,
    );
}

#[test]
fn whoever_asks_for_what_others_keep_is_told_who() {
    for asked in ["sub.example.org.", "www.sub.example.org."] {
        let answer = ask(&mut answers(), asked, RecordType::A);
        assert!(!answer.metadata.authoritative);
        assert_eq!(answer.authorities.len(), 1);
        assert_eq!(answer.additionals.len(), 1, "the address of their server");
    }
}

#[test]
fn addresses_take_turns() {
    let mut answers = answers();
    let mut firsts: Vec<String> = (0..3)
        .map(|_| {
            ask(&mut answers, "www.example.org.", RecordType::A).answers[0]
                .data
                .to_string()
        })
        .collect();
    firsts.sort();
    assert_eq!(firsts, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
}

/// As whoever asks for addresses of both kinds does, each time.
#[test]
fn a_question_of_another_type_takes_nobodys_turn() {
    let mut answers = answers();
    let mut first = |of| {
        ask(&mut answers, "pairs.example.org.", of).answers[0]
            .data
            .to_string()
    };
    let mut firsts: Vec<String> = (0..2)
        .flat_map(|_| [first(RecordType::A), first(RecordType::AAAA)])
        .collect();
    firsts.sort();
    assert_eq!(
        firsts,
        ["192.0.2.7", "192.0.2.8", "2001:db8::7", "2001:db8::8"]
    );
}

#[test]
fn addresses_with_weights_come_first_in_proportion_to_them() {
    let mut answers = answers();
    let weight = |last: u8, weight: u64| (IpAddr::from([192, 0, 2, last]), weight);
    let weights = Weights {
        known: [weight(1, 700), weight(3, 0)].into(),
        // The zone file has an address that nobody else knows.
        others: 300,
    };
    answers.weights.insert(name("www.example.org."), weights);
    let mut firsts = [0; 4];
    for _ in 0..10_000 {
        let answer = ask(&mut answers, "www.example.org.", RecordType::A);
        assert_eq!(answer.answers.len(), 3);
        let first = answer.answers[0].data.to_string();
        firsts[usize::from(first.as_bytes()[first.len() - 1] - b'0')] += 1;
    }
    assert!((6800..7200).contains(&firsts[1]), "{firsts:?}");
    assert_eq!(firsts[3], 0, "{firsts:?}");
}

#[test]
fn a_zone_file_that_cannot_be_served_is_told() {
    let read = |text: &str| {
        Records::read(&name("example.org."), text, 0)
            .map(|_| ())
            .unwrap_err()
    };
    let soa = "$TTL 5\n@ IN SOA ns admin 7 60 30 3600 5\n";
    assert!(matches!(read("x y z"), ZoneFileError::Text { line: 1, .. }));
    assert!(matches!(
        read("$TTL 5\n@ IN NS ns\n"),
        ZoneFileError::Soa { .. }
    ));
    assert!(matches!(read(soa), ZoneFileError::NameServer { .. }));
    let foreign = format!("{soa}@ IN NS ns\nwww.example.com. IN A 192.0.2.1\n");
    assert!(matches!(read(&foreign), ZoneFileError::Foreign { .. }));
    let two = format!("{soa}@ IN NS ns\nb IN CNAME c\nb IN A 192.0.2.1\n");
    assert!(matches!(read(&two), ZoneFileError::OtherName { .. }));
}

fn zone() -> OwnZone {
    zone_of(ZONE, None)
}

fn zone_of(file: &str, memory: Option<Memory>) -> OwnZone {
    OwnZone::new(OwnZoneSettings {
        zone: "example.org".parse().unwrap(),
        file: file.into(),
        memory,
        grants: vec![],
        secondaries: vec![],
        seed: 1,
    })
    .unwrap()
}

/// What was written down, for this run and the next.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<String>>);

impl Paper {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn memory(&self, keeps: Keeps) -> Option<Memory> {
        let paper = self.clone();
        Some(Memory {
            place: "paper".into(),
            text: self.text(),
            save: Arc::new(move |text| {
                *paper.0.lock().unwrap() = text.to_owned();
                Ok(())
            }),
            keeps,
        })
    }
}

#[test]
fn a_zone_file_is_read_again_while_the_zone_is_served() {
    let zone = zone();
    let mut serials = zone.serials();
    let before = *serials.borrow_and_update();
    let added = Change {
        expected: vec![],
        edits: vec![Edit::Add(record("www.example.org", address(9)))],
    };
    now(zone.change(added)).unwrap();
    let key = || "new.:hmac-sha256:c2VjcmV0".parse().unwrap();
    let grant = || Grant {
        key: key(),
        scope: "example.org".parse().unwrap(),
    };
    let same = zone.read_file(ZONE).unwrap();
    assert_eq!(zone.renew(same, vec![]).unwrap(), Renewal::Unchanged);
    let edited = ZONE.replace("www IN A 192.0.2.3\n", "new IN A 192.0.2.7\n");
    let file = zone.read_file(&edited).unwrap();
    let serial = before + 2;
    let changed = zone.renew(file, vec![grant()]).unwrap();
    assert_eq!(changed, Renewal::Changed { serial });
    assert!(serials.has_changed().unwrap());
    let read = |host: &str| now(zone.read(&host.parse().unwrap(), Kind::A)).unwrap();
    assert_eq!(
        read("www.example.org"),
        [address(1), address(2), address(9)]
    );
    assert_eq!(read("new.example.org"), [address(7)]);
    // The key that is new may ask for all of it.
    let mut all = Message::query();
    all.add_query(Query::query(name("example.org."), RecordType::AXFR));
    let unsigned = reply(&zone, Carrier::Tcp, &all);
    assert_eq!(unsigned[0].metadata.response_code, ResponseCode::Refused);
    let signer = key().signer().clone();
    all.finalize(&signer, crate::remote::unix_seconds())
        .unwrap();
    let signed = reply(&zone, Carrier::Tcp, &all);
    assert_eq!(signed[0].metadata.response_code, ResponseCode::NoError);
}

fn record(name: &str, value: Value) -> Record {
    Record {
        name: name.parse().unwrap(),
        value,
        ttl: Duration::from_secs(5),
    }
}

fn address(last: u8) -> Value {
    Value::Address(IpAddr::from([192, 0, 2, last]))
}

fn now<T>(doing: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(doing)
}

#[test]
fn changes_from_inside_follow_the_same_rules_and_the_files_records_stay() {
    let zone = zone();
    let serial = zone.serials();
    let before = *serial.borrow();
    let www: crate::DomainName = "www.example.org".parse().unwrap();
    now(zone.add(record("www.example.org", address(9)))).unwrap();
    assert_eq!(*serial.borrow(), before + 1);
    assert_eq!(now(zone.read(&www, Kind::A)).unwrap().len(), 4);
    let kept = now(zone.remove(www.clone(), address(1))).unwrap_err();
    assert!(matches!(kept.cause, crate::Cause::Refused { .. }), "{kept}");
    let wrong = Change {
        expected: vec![Expected {
            name: www.clone(),
            kind: Kind::A,
            values: vec![address(1)],
        }],
        edits: vec![Edit::Remove(www.clone(), address(9))],
    };
    let conflict = now(zone.change(wrong)).unwrap_err();
    assert!(
        matches!(conflict.cause, crate::Cause::Conflict { .. }),
        "{conflict}"
    );
    now(zone.remove(www.clone(), address(9))).unwrap();
    assert_eq!(now(zone.read(&www, Kind::A)).unwrap().len(), 3);
    let foreign = now(zone.add(record("www.example.com", address(1)))).unwrap_err();
    assert!(
        matches!(foreign.cause, crate::Cause::NotInZone { .. }),
        "{foreign}"
    );
    let blog = "blog.example.org".parse().unwrap();
    let other = now(zone.read(&blog, Kind::A)).unwrap_err();
    assert!(
        matches!(other.cause, crate::Cause::OtherName { .. }),
        "{other}"
    );
}

#[test]
fn what_updates_put_in_outlives_a_restart_and_can_still_be_taken_out() {
    let text = Value::Text("a \"b\" \\ c; d".into());
    let paper = Paper::default();
    let zone = zone_of(ZONE, paper.memory(Keeps::Updates));
    let one = now(zone.replace(
        "_t.example.org".parse().unwrap(),
        Kind::Text,
        vec![text.clone()],
        Duration::from_secs(3),
    ));
    one.unwrap();
    now(zone.add(record("new.example.org", address(8)))).unwrap();
    *paper.0.lock().unwrap() += "rubbish\n";
    let damaged = paper.memory(Keeps::Updates).unwrap().check().unwrap_err();
    assert_eq!(
        damaged.to_string(),
        "paper is damaged: `rubbish`; mend or delete the file"
    );
    let mended = paper.text().replace("rubbish\n", "");
    *paper.0.lock().unwrap() = mended;
    let again = zone_of(ZONE, paper.memory(Keeps::Updates));
    let name = "_t.example.org".parse().unwrap();
    assert_eq!(now(again.read(&name, Kind::Text)).unwrap(), [text]);
    let new: crate::DomainName = "new.example.org".parse().unwrap();
    now(again.remove(new.clone(), address(8))).unwrap();
    assert_eq!(now(again.read(&new, Kind::A)).unwrap(), []);
}

/// A serial of a date is ahead of the clock until 2034: time alone does not make it greater than
/// that of the run before, which updates had counted up.
#[test]
fn each_run_begins_behind_the_serial_of_the_one_before() {
    let file = ZONE.replace(" 7 ", " 2026112101 ");
    let (paper, mut last) = (Paper::default(), 0);
    for _run in 0..3 {
        let zone = zone_of(&file, paper.memory(Keeps::Serial));
        let begun = *zone.serials().borrow();
        assert!(begun > last, "{begun} after {last}");
        assert_eq!(
            now(zone.read(&"new.example.org".parse().unwrap(), Kind::A)),
            Ok(vec![])
        );
        now(zone.add(record("new.example.org", address(8)))).unwrap();
        last = *zone.serials().borrow();
        assert_eq!(last, begun + 1);
        assert_eq!(paper.text(), format!("; serial {last}\n"));
    }
    assert_eq!(last, 2_026_112_106);
}

#[test]
fn serials_go_round() {
    let file = ZONE.replace(" 7 ", " 4294967295 ");
    let paper = Paper::default();
    let zone = zone_of(&file, paper.memory(Keeps::Serial));
    now(zone.add(record("new.example.org", address(8)))).unwrap();
    assert_eq!(*zone.serials().borrow(), 0);
    let again = zone_of(&file, paper.memory(Keeps::Serial));
    assert_eq!(*again.serials().borrow(), 1);
}

#[test]
fn a_disk_that_is_full_at_the_start_keeps_nobody_from_starting() {
    let made = |keeps| {
        let memory = Memory {
            place: "paper".into(),
            text: String::new(),
            save: Arc::new(|_| Err("no space left".into())),
            keeps,
        };
        let zone = zone_of(ZONE, Some(memory));
        now(zone.add(record("new.example.org", address(8))))
    };
    assert!(made(Keeps::Updates).is_err(), "it would be lost");
    assert!(made(Keeps::Serial).is_ok(), "a name follows its rescue");
}

/// A disk that is written to when the test says so: who comes to it, and what lets them through.
fn slow_disk(grants: Vec<Grant>) -> (OwnZone, UnboundedReceiver<()>, std::sync::mpsc::Sender<()>) {
    let (came, coming) = unbounded_channel();
    let (open, gate) = std::sync::mpsc::channel();
    // At the start nobody else waits.
    open.send(()).unwrap();
    let gate = Mutex::new(gate);
    let save = move |_: &str| {
        came.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Ok(())
    };
    let memory = Memory {
        place: "disk".into(),
        text: String::new(),
        save: Arc::new(save),
        keeps: Keeps::Updates,
    };
    let settings = OwnZoneSettings {
        zone: "example.org".parse().unwrap(),
        file: ZONE.into(),
        memory: Some(memory),
        grants,
        secondaries: vec![],
        seed: 1,
    };
    (OwnZone::new(settings).unwrap(), coming, open)
}

#[tokio::test]
async fn a_slow_disk_holds_up_the_change_and_nobody_else() {
    let key = || "new.:hmac-sha256:c2VjcmV0".parse().unwrap();
    let scope = "example.org".parse().unwrap();
    let (zone, mut coming, open) = slow_disk(vec![Grant { key: key(), scope }]);
    coming.recv().await.unwrap();
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = tokio::net::UdpSocket::bind(address).await.unwrap();
    zone.serve(udp, tcp);
    let remote = crate::RemoteZone::new(address, "example.org".parse().unwrap(), key());
    let new: crate::DomainName = "new.example.org".parse().unwrap();
    let serials = zone.serials();
    for (nth, changed) in [(8, &zone as &dyn Zone), (9, &remote)] {
        let before = *serials.borrow();
        let there = zone.read(&new, Kind::A).await.unwrap();
        let change = changed.add(record("new.example.org", self::address(nth)));
        let meanwhile = async {
            coming.recv().await.unwrap();
            // Nothing is told before it is on disk.
            assert_eq!(*serials.borrow(), before);
            assert_eq!(remote.read(&new, Kind::A).await.unwrap(), there);
            open.send(()).unwrap();
        };
        let (made, ()) = tokio::join!(change, meanwhile);
        made.unwrap();
        assert_eq!(*serials.borrow(), before + 1);
    }
}

#[tokio::test]
async fn questions_by_udp_are_answered_while_updates_by_udp_wait_for_the_disk() {
    let key: crate::TsigKey = "new.:hmac-sha256:c2VjcmV0".parse().unwrap();
    let grant = Grant {
        key: key.clone(),
        scope: "example.org".parse().unwrap(),
    };
    let (zone, mut coming, open) = slow_disk(vec![grant]);
    coming.recv().await.unwrap();
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    zone.serve(tokio::net::UdpSocket::bind(address).await.unwrap(), tcp);
    let asker = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    asker.connect(address).await.unwrap();
    let mut buffer = [0; 4096];
    let mut numbers = vec![];
    for nth in [8, 9] {
        let added = Change {
            expected: vec![],
            edits: vec![Edit::Add(record("new.example.org", self::address(nth)))],
        };
        let mut update = crate::remote::update_message(zone.zone(), &added);
        update
            .finalize(key.signer(), crate::remote::unix_seconds())
            .unwrap();
        numbers.push(update.metadata.id);
        asker.send(&update.to_vec().unwrap()).await.unwrap();
    }
    coming.recv().await.unwrap();
    let mut question = Message::query();
    question.add_query(Query::query(name("www.example.org."), RecordType::A));
    asker.send(&question.to_vec().unwrap()).await.unwrap();
    let patience = Duration::from_secs(20);
    let answered = tokio::time::timeout(patience, asker.recv(&mut buffer)).await;
    let length = answered.expect("both updates wait").unwrap();
    let answer = Message::from_vec(&buffer[..length]).unwrap();
    assert_eq!(answer.metadata.id, question.metadata.id);
    assert_eq!(answer.answers.len(), 3);
    for _ in [8, 9] {
        open.send(()).unwrap();
        let length = asker.recv(&mut buffer).await.unwrap();
        let done = Message::from_vec(&buffer[..length]).unwrap();
        assert_eq!(done.metadata.response_code, ResponseCode::NoError);
        numbers.retain(|number| *number != done.metadata.id);
    }
    assert!(numbers.is_empty(), "each is told of its own: {numbers:?}");
}

fn reply(zone: &OwnZone, carrier: Carrier, request: &Message) -> Vec<Message> {
    let bytes = request.to_vec().unwrap();
    let replies = zone.reply(carrier, IpAddr::from([127, 0, 0, 1]), &bytes);
    let read = |bytes: &Vec<u8>| Message::from_vec(bytes).unwrap();
    replies.iter().map(read).collect()
}

#[test]
fn unsigned_updates_and_transfers_to_strangers_are_refused() {
    let zone = zone();
    let change = Change::of(vec![Edit::Add(record("x.example.org", address(1)))]);
    let update = crate::remote::update_message(zone.zone(), &change);
    let answer = &reply(&zone, Carrier::Tcp, &update)[0];
    assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
    let mut all = Message::query();
    all.add_query(Query::query(name("example.org."), RecordType::AXFR));
    for carrier in [Carrier::Udp, Carrier::Tcp] {
        let answer = &reply(&zone, carrier, &all)[0];
        assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
        assert!(answer.answers.is_empty());
    }
    assert_eq!(zone.counts().refused, 3);
}

#[test]
fn an_answer_that_does_not_fit_is_cut_and_asked_for_by_tcp() {
    let zone = zone();
    for last in 1..=90 {
        now(zone.add(record("many.example.org", address(last)))).unwrap();
    }
    let mut request = Message::query();
    request.add_query(Query::query(name("many.example.org."), RecordType::A));
    let cut = &reply(&zone, Carrier::Udp, &request)[0];
    assert!(cut.metadata.truncation && cut.answers.is_empty());
    let whole = &reply(&zone, Carrier::Tcp, &request)[0];
    assert_eq!(whole.answers.len(), 90);
    let mut edns = Edns::new();
    edns.set_max_payload(60_000);
    request.set_edns(edns.clone());
    let bounded = &reply(&zone, Carrier::Udp, &request)[0];
    assert!(bounded.metadata.truncation, "1440 bytes are more than 1232");
    assert!(bounded.edns.is_some());
    edns.set_version(1);
    request.set_edns(edns);
    let newer = &reply(&zone, Carrier::Udp, &request)[0];
    // The code of BADVERS and BADSIG is the same, 16.
    assert_eq!(u16::from(newer.metadata.response_code), 16);
}

#[test]
fn whether_signatures_are_wanted_is_said_back() {
    let zone = zone();
    for wanted in [false, true] {
        let mut request = Message::query();
        request.add_query(Query::query(name("example.org."), RecordType::SOA));
        let mut edns = Edns::new();
        edns.set_dnssec_ok(wanted);
        request.set_edns(edns);
        let answer = &reply(&zone, Carrier::Udp, &request)[0];
        assert_eq!(answer.edns.as_ref().unwrap().flags().dnssec_ok, wanted);
    }
}

#[test]
fn what_is_no_question_gets_an_error_or_nothing() {
    let zone = zone();
    let asker = IpAddr::from([127, 0, 0, 1]);
    let garbage = [7, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1];
    let answer = Message::from_vec(&zone.reply(Carrier::Udp, asker, &garbage)[0]).unwrap();
    assert_eq!(answer.metadata.response_code, ResponseCode::FormErr);
    assert!(zone.reply(Carrier::Udp, asker, &garbage[..11]).is_empty());
    let mut response = Message::query();
    response.metadata.message_type = hickory_proto::op::MessageType::Response;
    assert!(reply(&zone, Carrier::Udp, &response).is_empty());
    let two = Message::query();
    assert_eq!(
        reply(&zone, Carrier::Udp, &two)[0].metadata.response_code,
        ResponseCode::FormErr
    );
}
