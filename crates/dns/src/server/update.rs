//! Updates that others send us (RFC 2136): what they expect is checked, then all of it is done.
//!
//! Who may change what is decided by the key that signed. Records of the zone file are the
//! operator's: an update that would take one out is refused. The zone's SOA is ours, since the
//! serial counts changes. A key for a part of the zone may put so much in and no more, so that one
//! member of a community leaves room for the others.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordData, RecordType};
use hickory_proto::serialize::binary::BinEncodable;

use super::records::{Records, Source};
use crate::name::DomainName;

/// Most records that updates may put into a part of a zone: each origin that a member helps has two
/// or three.
const UPDATED_PART_MAX: usize = 1000;
/// Most bytes of one: addresses and the proofs of certificate authorities have less than 400 with
/// the longest of names.
const RECORD_BYTES_MAX: usize = 1024;

/// Makes the change of `request`, signed by a key that may change what lies in `scope`. Gives
/// whether anything changed; where it fails, nothing has.
pub(crate) fn update(
    records: &mut Records,
    request: &Message,
    scope: &DomainName,
) -> Result<bool, ResponseCode> {
    let [zone] = &request.queries[..] else {
        return Err(ResponseCode::FormErr);
    };
    if zone.query_type() != RecordType::SOA {
        return Err(ResponseCode::FormErr);
    }
    if zone.name() != records.apex() || zone.query_class() != DNSClass::IN {
        return Err(ResponseCode::NotAuth);
    }
    expect(records, &request.answers)?;
    for record in &request.authorities {
        scan(records, record)?;
        if !scope.as_name().zone_of(&record.name) {
            return Err(ResponseCode::Refused);
        }
    }
    let mut next = records.clone();
    let mut changed = false;
    for record in &request.authorities {
        changed |= apply(&mut next, record)?;
    }
    if scope.as_name() != records.apex() {
        let in_part = |records: &Records| records.updated_in(scope.as_name());
        // Who has more from an earlier version may still take out.
        if in_part(&next) > in_part(records).max(UPDATED_PART_MAX) {
            return Err(ResponseCode::Refused);
        }
    }
    if changed {
        next.note_change();
        *records = next;
    }
    Ok(changed)
}

/// Whether what is expected is so.
//= RFC 2136 section 3.2
fn expect(records: &Records, expected: &[Record]) -> Result<(), ResponseCode> {
    let mut exact: Vec<&Record> = vec![];
    for record in expected {
        let name = record.name.to_lowercase();
        if record.ttl != 0 {
            return Err(ResponseCode::FormErr);
        }
        if !records.apex().zone_of(&name) {
            return Err(ResponseCode::NotZone);
        }
        let of = record.record_type();
        let (is_there, no, yes) = if of == RecordType::ANY {
            let is_there = records.has_records(&name);
            (is_there, ResponseCode::NXDomain, ResponseCode::YXDomain)
        } else {
            let is_there = records.set(&name, of).is_some();
            (is_there, ResponseCode::NXRRSet, ResponseCode::YXRRSet)
        };
        match (record.dns_class, record.data.is_update()) {
            (DNSClass::ANY, true) if is_there => {}
            (DNSClass::ANY, true) => return Err(no),
            (DNSClass::NONE, true) if is_there => return Err(yes),
            (DNSClass::NONE, true) => {}
            (DNSClass::IN, false) => exact.push(record),
            (_, _) => return Err(ResponseCode::FormErr),
        }
    }
    let is_same_set = |one: &Record, other: &Record| {
        one.name == other.name && one.record_type() == other.record_type()
    };
    for record in &exact {
        let wanted = exact.iter().filter(|other| is_same_set(other, record));
        let set = records.set(&record.name.to_lowercase(), record.record_type());
        let there = set.is_some_and(|set| {
            let has = |wanted: &Record| set.values.iter().any(|entry| entry.data == wanted.data);
            set.values.len() == wanted.clone().count() && wanted.clone().all(|one| has(one))
        });
        if !there {
            return Err(ResponseCode::NXRRSet);
        }
    }
    Ok(())
}

/// Whether `record` can be an update at all.
//= RFC 2136 section 3.4.1
fn scan(records: &Records, record: &Record) -> Result<(), ResponseCode> {
    if !records.apex().zone_of(&record.name) {
        return Err(ResponseCode::NotZone);
    }
    let of = record.record_type();
    let is_meta = [
        RecordType::AXFR,
        RecordType::IXFR,
        RecordType::OPT,
        RecordType::TSIG,
    ]
    .contains(&of);
    let good = match record.dns_class {
        DNSClass::IN => of != RecordType::ANY && !record.data.is_update(),
        DNSClass::ANY => record.ttl == 0 && record.data.is_update(),
        DNSClass::NONE => record.ttl == 0 && of != RecordType::ANY && !record.data.is_update(),
        DNSClass::CH | DNSClass::HS | DNSClass::OPT(_) | DNSClass::Unknown(_) => false,
    };
    match good && !is_meta {
        true => Ok(()),
        false => Err(ResponseCode::FormErr),
    }
}

//= RFC 2136 section 3.4.2
fn apply(records: &mut Records, record: &Record) -> Result<bool, ResponseCode> {
    let name = record.name.to_lowercase();
    let of = record.record_type();
    if of == RecordType::SOA {
        return Ok(false);
    }
    if record.dns_class == DNSClass::IN {
        return put(records, record, &name);
    }
    let all = record.dns_class == DNSClass::ANY;
    let goes = |other: RecordType, data: &RData| match all {
        true => of == RecordType::ANY || other == of,
        false => other == of && *data == record.data,
    };
    let is_the_files = records.all_of(&name).any(|(other, entry)| {
        entry.source == Source::File && other != RecordType::SOA && goes(other, &entry.data)
    });
    // `Clear` before `Add` is how a set is replaced: what the file has of it simply stays.
    if is_the_files && !all {
        return Err(ResponseCode::Refused);
    }
    Ok(records.take(&name, goes))
}

fn put(records: &mut Records, record: &Record, name: &Name) -> Result<bool, ResponseCode> {
    let has_other_name = records.set(name, RecordType::CNAME).is_some();
    let is_other_name = record.record_type() == RecordType::CNAME;
    // A name that leads to another has nothing else: such updates are ignored.
    if is_other_name != has_other_name && (has_other_name || records.has_records(name)) {
        return Ok(false);
    }
    if is_other_name && has_other_name {
        records.take(name, |of, _| of == RecordType::CNAME);
    }
    let is_short = |bytes: &Vec<u8>| bytes.len() <= RECORD_BYTES_MAX;
    if records.is_full() || !record.to_bytes().as_ref().is_ok_and(is_short) {
        return Err(ResponseCode::Refused);
    }
    Ok(records.put(record, Source::Update))
}

#[cfg(test)]
mod tests {
    use hickory_proto::op::{OpCode, Query};
    use hickory_proto::rr::rdata::{A, TXT};

    use super::*;

    const ZONE: &str = "$TTL 30\n@ IN SOA ns admin 7 60 30 3600 5\n@ IN NS ns\n\
        ns IN A 192.0.2.53\n";
    const MESSAGE: usize = 500;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn records() -> Records {
        Records::read(&name("aliases.test."), ZONE, 0).unwrap()
    }

    fn request(records: impl IntoIterator<Item = Record>) -> Message {
        let mut request = Message::query();
        request.metadata.op_code = OpCode::Update;
        request.add_query(Query::query(name("aliases.test."), RecordType::SOA));
        request.add_authorities(records);
        request
    }

    /// So many aliases of `member`, counted from `first`.
    fn aliases(member: &str, first: usize, count: usize) -> Message {
        let alias = |number| name(&format!("a{number}.{member}.aliases.test."));
        let address = RData::A(A::new(192, 0, 2, 1));
        request((first..first + count).map(|n| Record::from_rdata(alias(n), 30, address.clone())))
    }

    fn part(member: &str) -> DomainName {
        format!("{member}.aliases.test").parse().unwrap()
    }

    #[test]
    fn one_member_fills_its_own_part_and_no_more() {
        let (mut records, liar) = (records(), part("liar"));
        for first in (0..UPDATED_PART_MAX).step_by(MESSAGE) {
            let made = update(&mut records, &aliases("liar", first, MESSAGE), &liar);
            assert_eq!(made, Ok(true));
        }
        let serial = records.serial();
        let one_more = aliases("liar", UPDATED_PART_MAX, 1);
        let refused = Err(ResponseCode::Refused);
        assert_eq!(update(&mut records, &one_more, &liar), refused);
        assert_eq!(records.serial(), serial);
        // The others have their room, and so has the key of the whole zone.
        let honest = aliases("honest", 0, MESSAGE);
        assert_eq!(update(&mut records, &honest, &part("honest")), Ok(true));
        let whole = "aliases.test".parse().unwrap();
        assert_eq!(update(&mut records, &one_more, &whole), Ok(true));
        // It may take out what is too much, and put nothing in before that.
        let mut gone = aliases("liar", 0, 1).authorities;
        gone[0].dns_class = DNSClass::NONE;
        gone[0].ttl = 0;
        assert_eq!(update(&mut records, &request(gone), &liar), Ok(true));
        let more = aliases("liar", UPDATED_PART_MAX + 1, 1);
        assert_eq!(update(&mut records, &more, &liar), refused);
    }

    #[test]
    fn a_record_is_no_store_for_anything() {
        let text = |pieces: usize| {
            let data = RData::TXT(TXT::new(vec!["x".repeat(250); pieces]));
            request([Record::from_rdata(name("a.aliases.test."), 30, data)])
        };
        let (mut records, whole) = (records(), "aliases.test".parse().unwrap());
        assert_eq!(update(&mut records, &text(3), &whole), Ok(true));
        let refused = Err(ResponseCode::Refused);
        assert_eq!(update(&mut records, &text(4), &whole), refused);
    }
}
