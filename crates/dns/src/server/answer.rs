//! Answers to questions: a message in, a message out, and nothing else.
//!
//! Only what is asked for, from the zone that is kept here. No question is passed on to anybody:
//! what is not ours is refused. Of several addresses each asker gets another first; or, where they
//! have weights, the first by chance in proportion to them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use levee_vocab::Random;

use super::records::{Found, Records, Set};

/// Most bytes of an answer by UDP: what passes every network unbroken.
//= RFC 9715 section 3.2
pub(crate) const UDP_BYTES_MAX: u16 = 1232;
/// Names that lead to names that lead to names: more is a mistake.
const CHAIN_MAX: usize = 8;

/// How much each address of a name can carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Of those that are known, in any unit.
    pub known: BTreeMap<IpAddr, u64>,
    /// Of each other address, such as one that only the zone file has.
    pub others: u64,
}

/// What answers are made of.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) records: Records,
    /// By names in lower case; others take turns.
    pub(crate) weights: BTreeMap<Name, Weights>,
    /// By types: those who ask for A and AAAA in pairs would see every other turn only.
    turns: BTreeMap<RecordType, usize>,
    random: Random,
}

impl Answers {
    pub(crate) fn new(records: Records, seed: u64) -> Self {
        Self {
            records,
            weights: BTreeMap::new(),
            turns: BTreeMap::new(),
            random: Random::from_seed(seed),
        }
    }

    /// The answer to the question in `request`.
    pub(crate) fn answer(&mut self, request: &Message) -> Message {
        let mut response = response_to(request);
        let code = match question(request) {
            Err(code) => code,
            Ok(query) => {
                let name = query.name().to_lowercase();
                let is_ours = query.query_class() == DNSClass::IN
                    && self.records.apex().zone_of(&name)
                    && query.query_type() != RecordType::AXFR;
                match is_ours {
                    true => self.fill(&mut response, name, query.query_type()),
                    false => ResponseCode::Refused,
                }
            }
        };
        response.metadata.response_code = code;
        response
    }

    fn fill(&mut self, response: &mut Message, name: Name, asked: RecordType) -> ResponseCode {
        // Whoever asks for what has changed is told by UDP only that something has.
        let asked = if asked == RecordType::IXFR {
            RecordType::SOA
        } else {
            asked
        };
        response.metadata.authoritative = true;
        if asked == RecordType::SOA && name == *self.records.apex() {
            response.add_answer(self.records.soa().clone());
            return ResponseCode::NoError;
        }
        let mut name = name;
        for _ in 0..CHAIN_MAX {
            let (of, set) = match self.records.find(&name, asked) {
                Found::Set(of, set) => (of, set),
                Found::OtherName(set) => (RecordType::CNAME, set),
                Found::NoData => return self.deny(response, ResponseCode::NoError),
                Found::NoName => return self.deny(response, ResponseCode::NXDomain),
                Found::Delegated(cut, servers) => {
                    response.metadata.authoritative = !response.answers.is_empty();
                    let servers = list(&cut, servers);
                    response.add_additionals(self.glue(&servers));
                    response.add_authorities(servers);
                    return ResponseCode::NoError;
                }
            };
            let mut found = list(&name, set);
            let target = found.first().filter(|_| of != asked);
            let target = target.and_then(|record| target_of(&record.data));
            self.arrange(&name, &mut found);
            response.add_answers(found);
            match target {
                Some(target) if self.records.apex().zone_of(&target) => name = target,
                // The asker looks on elsewhere.
                Some(_) | None => return ResponseCode::NoError,
            }
        }
        ResponseCode::ServFail
    }

    fn deny(&self, response: &mut Message, code: ResponseCode) -> ResponseCode {
        response.add_authority(self.records.soa_of_denial());
        code
    }

    /// Addresses of name servers that lie in this zone: nobody else could tell them.
    fn glue(&self, servers: &[Record]) -> Vec<Record> {
        let mut glue = vec![];
        for server in servers {
            let RData::NS(name) = &server.data else {
                continue;
            };
            let name = name.0.to_lowercase();
            for of in [RecordType::A, RecordType::AAAA] {
                let set = self.records.set(&name, of);
                glue.extend(set.into_iter().flat_map(|set| list(&name, set)));
            }
        }
        glue
    }

    /// Puts the records of a set into the order of this answer.
    fn arrange(&mut self, name: &Name, found: &mut [Record]) {
        let [first, _second, ..] = found else {
            return;
        };
        let Some(weights) = self.weights.get(name) else {
            let turn = self.turns.entry(first.record_type()).or_default();
            *turn = turn.wrapping_add(1);
            let first = *turn % found.len();
            found.rotate_left(first);
            return;
        };
        // The first comes first with a chance in proportion to its weight, and so on among those
        // that are left (Efraimidis and Spirakis, 2006).
        let mut keys: Vec<(f64, Record)> = vec![];
        for record in found.iter() {
            let known = address(&record.data).and_then(|address| weights.known.get(&address));
            let weight = known.copied().unwrap_or(weights.others);
            let chance = -(1.0 - self.random.fraction()).ln();
            let key = match weight {
                0 => f64::INFINITY,
                weight => chance / weight as f64,
            };
            keys.push((key, record.clone()));
        }
        keys.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (place, (_, record)) in found.iter_mut().zip(keys) {
            *place = record;
        }
    }
}

fn address(data: &RData) -> Option<IpAddr> {
    if let RData::A(address) = data {
        Some(address.0.into())
    } else if let RData::AAAA(address) = data {
        Some(address.0.into())
    } else {
        None
    }
}

/// The name that a CNAME leads to, in lower case.
pub(crate) fn target_of(data: &RData) -> Option<Name> {
    if let RData::CNAME(target) = data {
        Some(target.0.to_lowercase())
    } else {
        None
    }
}

fn list(name: &Name, set: &Set) -> Vec<Record> {
    let record = |data: &RData| Record::from_rdata(name.clone(), set.ttl, data.clone());
    set.values.iter().map(|entry| record(&entry.data)).collect()
}

/// The one question of `request`.
fn question(request: &Message) -> Result<&Query, ResponseCode> {
    if request.metadata.op_code != OpCode::Query {
        return Err(ResponseCode::NotImp);
    }
    if request.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
        return Err(ResponseCode::BADVERS);
    }
    match &request.queries[..] {
        [query] => Ok(query),
        _ => Err(ResponseCode::FormErr),
    }
}

/// An answer to `request` that says nothing yet.
pub(crate) fn response_to(request: &Message) -> Message {
    let mut response = Message::response(request.metadata.id, request.metadata.op_code);
    response.metadata.recursion_desired = request.metadata.recursion_desired;
    response.add_queries(request.queries.iter().take(1).cloned());
    if let Some(asked) = &request.edns {
        //= RFC 6891 section 6.1.1
        let mut edns = Edns::new();
        //= RFC 3225 section 3: "The DO bit of the query MUST be copied in the response."
        edns.set_dnssec_ok(asked.flags().dnssec_ok);
        edns.set_max_payload(UDP_BYTES_MAX);
        response.set_edns(edns);
    }
    response
}
