//! Zone files and messages to a name server of ours, for `crate::fuzzing`.

use std::net::{IpAddr, Ipv4Addr};

use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::{Name, RecordType};

use super::answer::UDP_BYTES_MAX;
use super::own_zone::{Carrier, OwnZone, OwnZoneSettings};
use super::records::{KeptLine, Records};
use super::update::update;
use crate::name::DomainName;

const ZONE: &str = "$TTL 30\n\
    @ IN SOA ns admin 7 60 30 3600 5\n\
    @ IN NS ns\n\
    ns IN A 192.0.2.53\n\
    www IN A 192.0.2.1\n\
    www IN A 192.0.2.2\n\
    blog IN CNAME www\n\
    *.vh IN A 192.0.2.5\n\
    sub IN NS ns.sub\n\
    ns.sub IN A 192.0.2.6\n";

/// A message by UDP and by TCP: no answer to an answer, none that is longer than what asked for it
/// permits, and each is a message that belongs to the question. Who signs nothing changes nothing;
/// and what an update of one who may does can be written down and read again.
pub fn fuzzed_message(data: &[u8]) {
    let zone: DomainName = "example.org".parse().expect("a name");
    let own = OwnZone::new(OwnZoneSettings {
        zone: zone.clone(),
        file: ZONE.to_owned(),
        memory: None,
        grants: vec![],
        secondaries: vec![],
        seed: 1,
    });
    let own = own.expect("a good zone");
    let asker = IpAddr::from(Ipv4Addr::LOCALHOST);
    let request = Message::from_vec(data);
    let is_answer = |request: &Message| request.metadata.message_type == MessageType::Response;
    for (carrier, most) in [(Carrier::Udp, UDP_BYTES_MAX), (Carrier::Tcp, u16::MAX)] {
        let answers = own.reply(carrier, asker, data);
        assert!(answers.is_empty() || !request.as_ref().is_ok_and(is_answer));
        for bytes in answers {
            assert!(bytes.len() <= usize::from(most), "{}", bytes.len());
            let answer = Message::from_vec(&bytes).expect("what we say is a message");
            assert_eq!(answer.metadata.message_type, MessageType::Response);
            assert_eq!(&bytes[..2], &data[..2], "whose answer is it?");
        }
    }
    assert_eq!(own.counts().updates + own.counts().transfers, 0);
    if let Ok(request) = &request {
        updates(request, &zone);
    }
}

fn updates(request: &Message, zone: &DomainName) {
    let apex: &Name = zone.as_name();
    let fresh = || Records::read(apex, ZONE, 7).expect("a good zone");
    let mut records = fresh();
    if update(&mut records, request, zone) != Ok(true) {
        return;
    }
    assert!(records.serial() != 7 && records.set(apex, RecordType::NS).is_some());
    let text = records.updated_text();
    let mut again = fresh();
    let kept = text.lines().map(KeptLine::read);
    again.restore(kept.collect::<Option<_>>().expect("we wrote it"));
    assert_eq!(again.updated_text(), text);
}

/// A zone file is refused, or served: each of its records lies in the zone, and is found by its
/// name unless the name leads elsewhere.
pub fn fuzzed_zone(data: &[u8]) {
    let apex = Name::from_ascii("example.org.").expect("a name");
    let text = String::from_utf8_lossy(data);
    let Ok(records) = Records::read(&apex, &text, 1) else {
        return;
    };
    assert!(records.set(&apex, RecordType::NS).is_some());
    for record in records.all() {
        assert!(apex.zone_of(&record.name), "{}", record.name);
        let _found = records.find(&record.name.to_lowercase(), record.record_type());
    }
    assert_eq!(
        records
            .updated_text()
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count(),
        0
    );
}
