//! Updates that others send us (RFC 2136): what they expect is checked, then all of it is done.
//!
//! Who may change what is decided by the key that signed. Records of the zone file are the
//! operator's: an update that would take one out is refused. The zone's SOA is ours, since the
//! serial counts changes.

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordData, RecordType};

use super::records::{Records, Source};
use crate::name::DomainName;

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
    if records.is_full() {
        return Err(ResponseCode::Refused);
    }
    Ok(records.put(record, Source::Update))
}
