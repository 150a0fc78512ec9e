//! A zone that a name server keeps for us: signed updates (RFC 2136, RFC 8945).
//!
//! A change is one UPDATE message: what is expected are its prerequisites, so the server applies it
//! whole or not at all. Reads go to the same server, signed too, so that what is read is what will
//! be changed and nobody on the way can lie about it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_proto::op::{Message, OpCode, Query, ResponseCode as Code};
use hickory_proto::rr::rdata::tsig::TsigError;
use hickory_proto::rr::rdata::{A, AAAA, TXT};
use hickory_proto::rr::{self, DNSClass, RData, RecordType, TSigVerifier};

use crate::exchange::exchange;
use crate::key::TsigKey;
use crate::name::DomainName;
use crate::zone::{Cause, Change, Doing, Edit, Expected, Kind, Record, Value, Zone, ZoneError};

/// A server that is asked for a few records answers in milliseconds; one that writes a journal to a
/// slow disk may take longer.
const WAIT: Duration = Duration::from_secs(3);

/// A zone at a name server that takes updates.
#[derive(Clone, Debug)]
pub struct RemoteZone {
    server: SocketAddr,
    zone: DomainName,
    key: TsigKey,
    wait: Duration,
    clock: fn() -> u64,
}

impl RemoteZone {
    /// `zone` at `server`, which knows `key`. Nothing is sent yet.
    pub const fn new(server: SocketAddr, zone: DomainName, key: TsigKey) -> Self {
        Self {
            server,
            zone,
            key,
            wait: WAIT,
            clock: unix_seconds,
        }
    }

    /// The same, but an answer may take `wait`.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The same, but signatures are dated by `clock`, in seconds since 1970.
    #[must_use]
    pub const fn with_clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = clock;
        self
    }

    /// The zone's name.
    pub const fn zone(&self) -> &DomainName {
        &self.zone
    }

    pub(crate) const fn server(&self) -> SocketAddr {
        self.server
    }

    async fn send_change(&self, change: &Change) -> Result<(), Cause> {
        let about = change.names().next().unwrap_or(&self.zone).clone();
        if let Some(name) = change.names().find(|name| !self.zone.contains(name)) {
            let (name, zone) = (name.clone(), self.zone.clone());
            return Err(Cause::NotInZone { name, zone });
        }
        self.ask(update_message(&self.zone, change), &about).await?;
        Ok(())
    }

    pub(crate) async fn send_read(
        &self,
        name: &DomainName,
        kind: Kind,
    ) -> Result<Vec<Value>, Cause> {
        let mut question = Message::query();
        let record_type = record_type(kind);
        question.add_query(Query::query(name.as_name().clone(), record_type));
        let answer = self.ask(question, name).await?;
        if !answer.metadata.authoritative {
            let zone = self.zone.clone();
            return Err(Cause::NotAuthoritative { zone });
        }
        let mut values = vec![];
        for record in &answer.answers {
            if let RData::CNAME(target) = &record.data {
                return Err(Cause::OtherName {
                    name: name.clone(),
                    target: target.0.clone().into(),
                });
            }
            values.extend(value(&record.data));
        }
        Ok(values)
    }

    /// Signs and sends `question` about `name`, and checks what comes back.
    pub(crate) async fn ask(
        &self,
        mut question: Message,
        name: &DomainName,
    ) -> Result<Message, Cause> {
        let garbage = |error: &dyn ToString| Cause::Garbage {
            why: error.to_string(),
        };
        let finalized = question.finalize(self.key.signer(), (self.clock)());
        let verifier = finalized.map_err(|error| garbage(&error))?;
        let bytes = question.to_vec().map_err(|error| garbage(&error))?;
        let bytes = exchange(self.server, &bytes, self.wait).await?;
        let answer = Message::from_vec(&bytes).map_err(|error| garbage(&error))?;
        if answer.metadata.id != question.metadata.id {
            return Err(garbage(&"it answers another question"));
        }
        self.judge(&answer, name)?;
        self.verify(verifier, &bytes)?;
        Ok(answer)
    }

    /// What the server's code means; a NOERROR is believed only with its signature.
    fn judge(&self, answer: &Message, name: &DomainName) -> Result<(), Cause> {
        let key = self.key.name().clone();
        let tsig = answer.signature().and_then(|tsig| tsig.data.error);
        match tsig {
            Some(TsigError::BadKey) => return Err(Cause::BadKey { key }),
            Some(TsigError::BadSig | TsigError::BadTrunc) => {
                return Err(Cause::BadSignature { key });
            }
            Some(TsigError::BadTime) => return Err(Cause::BadTime),
            Some(TsigError::Unknown(0)) | None => {}
            Some(TsigError::Unknown(code)) => return Err(Cause::Code(code)),
        }
        let zone = self.zone.clone();
        let name = name.clone();
        let code = answer.metadata.response_code;
        Err(
            if code == Code::NoError || code == Code::NXDomain && answer.authoritative {
                return Ok(());
            } else if code == Code::Refused {
                Cause::Refused { name }
            } else if code == Code::NotAuth {
                Cause::NotAuthoritative { zone }
            } else if code == Code::NotZone {
                Cause::NotInZone { name, zone }
            } else if code == Code::ServFail {
                Cause::ServerFailed
            } else if code == Code::NotImp {
                Cause::NotUnderstood("NOTIMP")
            } else if code == Code::FormErr {
                Cause::NotUnderstood("FORMERR")
            } else if [Code::NXRRSet, Code::YXRRSet, Code::NXDomain, Code::YXDomain].contains(&code)
            {
                Cause::Conflict { name }
            } else {
                Cause::Code(code.into())
            },
        )
    }

    fn verify(&self, verifier: Option<TSigVerifier>, bytes: &[u8]) -> Result<(), Cause> {
        let verified = verifier.is_some_and(|mut verifier| verifier.verify(bytes).is_ok());
        let key = self.key.name().clone();
        verified.then_some(()).ok_or(Cause::Unsigned { key })
    }

    fn error(&self, cause: Cause) -> ZoneError {
        let server = self.server.to_string();
        ZoneError { server, cause }
    }
}

impl Zone for RemoteZone {
    fn change(&self, change: Change) -> Doing<'_, ()> {
        Box::pin(async move {
            let sent = self.send_change(&change).await;
            sent.map_err(|cause| self.error(cause))
        })
    }

    fn read<'a>(&'a self, name: &'a DomainName, kind: Kind) -> Doing<'a, Vec<Value>> {
        Box::pin(async move {
            let read = self.send_read(name, kind).await;
            read.map_err(|cause| self.error(cause))
        })
    }

    fn copies(&self) -> Doing<'_, Vec<SocketAddr>> {
        Box::pin(async move {
            let found = self.find_copies().await;
            found.map_err(|cause| self.error(cause))
        })
    }
}

/// The UPDATE message for `change`.
//= RFC 2136 section 2
pub(crate) fn update_message(zone: &DomainName, change: &Change) -> Message {
    let mut message = Message::query();
    message.metadata.op_code = OpCode::Update;
    message.add_query(Query::query(zone.as_name().clone(), RecordType::SOA));
    for expected in &change.expected {
        message.add_answers(prerequisite(expected));
    }
    message.add_authorities(change.edits.iter().map(edit));
    message
}

//= RFC 2136 section 2.4
fn prerequisite(expected: &Expected) -> Vec<rr::Record> {
    let name = expected.name.as_name();
    if expected.values.is_empty() {
        let mut none = rr::Record::update0(name.clone(), 0, record_type(expected.kind));
        none.dns_class = DNSClass::NONE;
        return vec![none];
    }
    let values = expected.values.iter();
    let record = |value| rr::Record::from_rdata(name.clone(), 0, data(value));
    values.map(record).collect()
}

//= RFC 2136 section 2.5
fn edit(edit: &Edit) -> rr::Record {
    match edit {
        Edit::Clear(name, kind) => {
            let mut all = rr::Record::update0(name.as_name().clone(), 0, record_type(*kind));
            all.dns_class = DNSClass::ANY;
            all
        }
        Edit::Remove(name, value) => {
            let mut one = rr::Record::from_rdata(name.as_name().clone(), 0, data(value));
            one.dns_class = DNSClass::NONE;
            one
        }
        Edit::Add(Record { name, value, ttl }) => {
            let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
            rr::Record::from_rdata(name.as_name().clone(), ttl, data(value))
        }
    }
}

pub(crate) const fn record_type(kind: Kind) -> RecordType {
    match kind {
        Kind::A => RecordType::A,
        Kind::Aaaa => RecordType::AAAA,
        Kind::Text => RecordType::TXT,
    }
}

pub(crate) fn data(value: &Value) -> RData {
    match value {
        Value::Address(std::net::IpAddr::V4(address)) => RData::A(A(*address)),
        Value::Address(std::net::IpAddr::V6(address)) => RData::AAAA(AAAA(*address)),
        // A string of a text has at most 255 bytes; readers join them.
        //= RFC 1035 section 3.3
        Value::Text(text) => RData::TXT(TXT::from_bytes(text.as_bytes().chunks(255).collect())),
    }
}

/// What `data` says, if it is of a kind that is changed here.
pub(crate) fn value(data: &RData) -> Option<Value> {
    if let RData::A(address) = data {
        Some(Value::Address(address.0.into()))
    } else if let RData::AAAA(address) = data {
        Some(Value::Address(address.0.into()))
    } else if let RData::TXT(text) = data {
        let joined = text.txt_data.concat();
        Some(Value::Text(String::from_utf8_lossy(&joined).into_owned()))
    } else {
        None
    }
}

/// What signatures are dated with.
pub(crate) fn unix_seconds() -> u64 {
    // A clock before 1970 is a BADTIME for the other side.
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
