//! One zone of our own: what is asked of it from outside by messages, and from inside as a `Zone`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::RecordType;
use levee_net::{Clock, Shared};
use tokio::sync::watch;

use super::answer::{Answers, UDP_BYTES_MAX, Weights, response_to, target_of};
use super::budget::{Budget, Share};
use super::records::{KeptLine, Records, ZoneFileError};
use super::signature::{Grant, Signature, Signer, check};
use super::transfer::transfer;
use super::update::update;
use crate::name::DomainName;
use crate::remote::{record_type, unix_seconds, update_message, value};
use crate::zone::{Cause, Change, Doing, Kind, Value, Zone, ZoneError};

/// Writes down what is to outlive this run. Called at the start, and for each change before it is
/// in force.
pub type Save = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

/// What outlives a run. Without its serial a zone whose file has one that is ahead of the clock,
/// such as a date, would begin again with that, and secondaries would go on with what they have.
pub struct Memory {
    /// Where it is, for people.
    pub place: String,
    /// What was saved last; empty where nothing was.
    pub text: String,
    /// How it is saved.
    pub save: Save,
    /// What is saved.
    pub keeps: Keeps,
}

impl Memory {
    /// Whether a zone can begin with it.
    ///
    /// # Errors
    /// [`ZoneFileError::Kept`] where a line is none of ours.
    pub fn check(&self) -> Result<(), ZoneFileError> {
        self.lines().map(drop)
    }

    fn lines(&self) -> Result<Vec<KeptLine>, ZoneFileError> {
        let damaged = |line: &str| ZoneFileError::Kept {
            place: self.place.clone(),
            line: line.into(),
        };
        let lines = self.text.lines();
        let read = |line| KeptLine::read(line).ok_or_else(|| damaged(line));
        lines.map(read).collect()
    }
}

/// See [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// The serial alone: whoever puts something in puts it in again. Changes are made even where it
    /// cannot be saved.
    Serial,
    /// The serial, and what updates put in.
    Updates,
}

/// What a zone of our own is made of.
pub struct OwnZoneSettings {
    /// Its name.
    pub zone: DomainName,
    /// Its zone file.
    pub file: String,
    /// What outlives a restart; none where nothing need.
    pub memory: Option<Memory>,
    /// Who may change what.
    pub grants: Vec<Grant>,
    /// Name servers that keep copies.
    pub secondaries: Vec<SocketAddr>,
    /// Seed of choices.
    pub seed: u64,
}

/// What has been asked of a zone since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions answered.
    pub answers: u64,
    /// Answers by UDP held back, or cut to an empty one, because one block of addresses asked for
    /// too many.
    pub held_back: u64,
    /// Updates made.
    pub updates: u64,
    /// Updates, signatures and transfers refused.
    pub refused: u64,
    /// Whole zones given to secondaries.
    pub transfers: u64,
    /// Idle connections by TCP that made way for newcomers.
    pub made_way: u64,
    /// Newcomers by TCP who were turned away, since nobody was idle.
    pub turned_away: u64,
}

/// A zone file that was read and is not in force yet.
pub struct ZoneFile(Records);

/// What a zone file that was read again has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Nothing.
    Unchanged,
    /// Something: the zone has this serial now.
    Changed {
        /// See RFC 1035 section 3.3.13.
        serial: u32,
    },
}

/// A zone of our own. Cheap to clone.
#[derive(Clone)]
pub struct OwnZone(Arc<Inner>);

struct Inner {
    zone: DomainName,
    secondaries: Vec<SocketAddr>,
    keeps: Option<(Keeps, Save)>,
    state: Shared<State>,
    /// Held by whoever makes a change.
    changing: Shared<()>,
    serial: watch::Sender<u32>,
}

struct State {
    answers: Answers,
    grants: Arc<[Grant]>,
    budget: Budget,
    counts: Counts,
}

/// How a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Udp,
    Tcp,
}

impl OwnZone {
    /// Reads the zone file. Nothing is served yet.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn new(settings: OwnZoneSettings) -> Result<Self, ZoneFileError> {
        // A serial that begins with the time is greater than that of any earlier start.
        let serial = u32::try_from(unix_seconds()).unwrap_or(u32::MAX);
        let mut records = Records::read(settings.zone.as_name(), &settings.file, serial)?;
        let mut keeps = None;
        if let Some(memory) = settings.memory {
            records.restore(memory.lines()?);
            // A full disk keeps no site from starting; the next change is refused while it lasts.
            let _ = (memory.save)(&kept_text(&records, memory.keeps));
            keeps = Some((memory.keeps, memory.save));
        }
        let (serial, _) = watch::channel(records.serial());
        let state = State {
            answers: Answers::new(records, settings.seed),
            grants: settings.grants.into(),
            budget: Budget::new(settings.seed),
            counts: Counts::default(),
        };
        Ok(Self(Arc::new(Inner {
            zone: settings.zone,
            secondaries: settings.secondaries,
            keeps,
            state: Shared::new(state),
            changing: Shared::new(()),
            serial,
        })))
    }

    /// Its name.
    pub fn zone(&self) -> &DomainName {
        &self.0.zone
    }

    /// Reads a new text of its zone file, and changes nothing yet.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_file(&self, file: &str) -> Result<ZoneFile, ZoneFileError> {
        Records::read(self.0.zone.as_name(), file, 0).map(ZoneFile)
    }

    /// Serves `file` from now on, whole, and what updates have put in beside it; `grants` may
    /// change it. Secondaries are told. Blocks for the changes before it and for its own write.
    ///
    /// # Errors
    /// What updates put in would change and cannot be written down: all is as before then.
    pub fn renew(&self, file: ZoneFile, grants: Vec<Grant>) -> Result<Renewal, ZoneFileError> {
        let renewed = self.0.changing.with(|()| {
            let before = |state: &mut State| state.answers.records.clone();
            let next = self.0.state.with(before).renewed(file.0);
            if let Some(next) = &next {
                self.save(next).map_err(ZoneFileError::NotSaved)?;
            }
            let serial = next.as_ref().map(Records::serial);
            self.0.state.with(|state| {
                state.grants = grants.into();
                if let Some(next) = next {
                    state.answers.records = next;
                }
            });
            Ok(serial)
        });
        Ok(match renewed? {
            None => Renewal::Unchanged,
            Some(serial) => {
                self.0.serial.send_replace(serial);
                Renewal::Changed { serial }
            }
        })
    }

    /// What has been asked of it.
    pub fn counts(&self) -> Counts {
        self.0.state.with(|state| state.counts)
    }

    /// The addresses of `name` come first with a chance in proportion to these weights; with none,
    /// they take turns.
    pub fn set_weights(&self, name: &DomainName, weights: Option<Weights>) {
        self.0.state.with(|state| {
            let all = &mut state.answers.weights;
            match weights {
                None => all.remove(name.as_name()),
                Some(weights) => all.insert(name.as_name().clone(), weights),
            };
        });
    }

    fn save(&self, next: &Records) -> Result<(), String> {
        let Some((keeps, save)) = &self.0.keeps else {
            return Ok(());
        };
        let saved = save(&kept_text(next, *keeps));
        match keeps {
            // A serial that is lost may cost the next run a change; a change that is not made would
            // leave a rescue server that has gone in the name.
            Keeps::Serial => Ok(()),
            Keeps::Updates => saved,
        }
    }

    pub(super) fn secondaries(&self) -> &[SocketAddr] {
        &self.0.secondaries
    }

    /// Tells of each change by the zone's serial.
    pub(super) fn serials(&self) -> watch::Receiver<u32> {
        self.0.serial.subscribe()
    }

    pub(super) fn notification(&self) -> Message {
        let mut message = Message::query();
        message.metadata.op_code = OpCode::Notify;
        message.metadata.authoritative = true;
        let apex = self.0.zone.as_name().clone();
        message.add_query(hickory_proto::op::Query::query(apex, RecordType::SOA));
        let soa = self
            .0
            .state
            .with(|state| state.answers.records.soa().clone());
        message.add_answer(soa);
        message
    }

    /// The messages that answer `bytes` from `asker`; none where nothing is to be said.
    pub(super) fn reply(&self, carrier: Carrier, asker: IpAddr, bytes: &[u8]) -> Vec<Vec<u8>> {
        let share = match carrier {
            Carrier::Tcp => Share::Whole,
            Carrier::Udp => self.0.state.with(|state| {
                let share = state.budget.take(Clock.now(), asker);
                state.counts.held_back += u64::from(share != Share::Whole);
                share
            }),
        };
        if share == Share::None {
            return vec![];
        }
        let Ok(request) = Message::from_vec(bytes) else {
            return malformed(bytes).into_iter().collect();
        };
        // Two servers that answer each other's answers never end.
        if request.metadata.message_type == MessageType::Response {
            return vec![];
        }
        if share == Share::Empty {
            return encoded(&response_to(&request).truncate());
        }
        self.reply_to(carrier, asker, &request, bytes)
    }

    fn reply_to(
        &self,
        carrier: Carrier,
        asker: IpAddr,
        request: &Message,
        bytes: &[u8],
    ) -> Vec<Vec<u8>> {
        let empty = response_to(request);
        let grants = self.0.state.with(|state| Arc::clone(&state.grants));
        let (grant, signer) = match check(&grants, request, bytes, unix_seconds(), &empty) {
            Signature::None => (None, None),
            Signature::Good(grant, signer) => (Some(grant), Some(signer)),
            Signature::Bad(answer) => {
                self.count(|counts| counts.refused += 1);
                return encoded(&answer);
            }
        };
        if request.metadata.op_code == OpCode::Update {
            let mut answer = empty;
            answer.metadata.response_code = self.take_update(request, grant);
            return self.send(answer, signer, usize::from(u16::MAX));
        }
        let asked = request.queries.first().map(|query| query.query_type());
        let wants_all = match asked {
            Some(RecordType::AXFR) => true,
            Some(RecordType::IXFR) => carrier == Carrier::Tcp,
            _ => false,
        };
        if wants_all && request.metadata.op_code == OpCode::Query {
            return self.transfer(carrier, asker, request, (grant, signer));
        }
        let answer = self.0.state.with(|state| {
            state.counts.answers += 1;
            state.answers.answer(request)
        });
        let room = match carrier {
            Carrier::Udp => request.max_payload().min(UDP_BYTES_MAX),
            Carrier::Tcp => u16::MAX,
        };
        self.send(answer, signer, usize::from(room))
    }

    fn send(&self, mut answer: Message, signer: Option<Signer>, room: usize) -> Vec<Vec<u8>> {
        let sign = |answer: &mut Message, signer: Option<Signer>| match signer {
            Some(mut signer) => signer.sign(answer),
            None => answer.to_vec().ok(),
        };
        if answer.to_vec().is_ok_and(|bytes| bytes.len() > room) {
            answer = answer.truncate();
        }
        sign(&mut answer, signer).into_iter().collect()
    }

    fn take_update(&self, request: &Message, grant: Option<&Grant>) -> ResponseCode {
        let Some(grant) = grant else {
            self.count(|counts| counts.refused += 1);
            return ResponseCode::Refused;
        };
        let code = self.make(request, &grant.scope);
        self.count(|counts| match code == ResponseCode::NoError {
            true => counts.updates += 1,
            false => counts.refused += 1,
        });
        code
    }

    /// Makes a change, and has it written down before anybody sees it.
    fn make(&self, request: &Message, scope: &DomainName) -> ResponseCode {
        // One change at a time, while questions are answered from what was before it.
        let made = self.0.changing.with(|()| {
            let before = |state: &mut State| state.answers.records.clone();
            let mut next = self.0.state.with(before);
            if !update(&mut next, request, scope)? {
                return Ok(None);
            }
            self.save(&next).map_err(|_| ResponseCode::ServFail)?;
            let serial = next.serial();
            self.0.state.with(|state| state.answers.records = next);
            Ok(Some(serial))
        });
        match made {
            Ok(Some(serial)) => {
                self.0.serial.send_replace(serial);
                ResponseCode::NoError
            }
            Ok(None) => ResponseCode::NoError,
            Err(code) => code,
        }
    }

    fn transfer(
        &self,
        carrier: Carrier,
        asker: IpAddr,
        request: &Message,
        (grant, signer): (Option<&Grant>, Option<Signer>),
    ) -> Vec<Vec<u8>> {
        let secondary = |one: &SocketAddr| one.ip().to_canonical() == asker.to_canonical();
        let may = grant.is_some() || self.0.secondaries.iter().any(secondary);
        let about = request.queries.first().map(|query| query.name());
        let is_ours = about == Some(self.0.zone.as_name());
        if !may || !is_ours || carrier == Carrier::Udp {
            self.count(|counts| counts.refused += 1);
            let mut answer = response_to(request);
            answer.metadata.response_code = ResponseCode::Refused;
            return self.send(answer, signer, usize::from(u16::MAX));
        }
        let messages = self.0.state.with(|state| {
            state.counts.transfers += 1;
            transfer(&state.answers.records, request)
        });
        let mut signer = signer;
        let sign = |mut message: Message| match &mut signer {
            Some(signer) => signer.sign(&mut message),
            None => message.to_vec().ok(),
        };
        messages.into_iter().filter_map(sign).collect()
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.0.state.with(|state| change(&mut state.counts));
    }

    /// As [`OwnZone::reply`]. A change waits for the disk on a thread that may.
    pub(super) async fn reply_later(
        &self,
        carrier: Carrier,
        asker: IpAddr,
        bytes: &[u8],
    ) -> Vec<Vec<u8>> {
        if !is_update(bytes) {
            return self.reply(carrier, asker, bytes);
        }
        let bytes = bytes.to_vec();
        let made = move |zone: &Self| zone.reply(carrier, asker, &bytes);
        self.clone().off_thread(made).await
    }

    /// `work`, which may change the zone: where that is written down first, it waits for the disk,
    /// and no other task may wait with it.
    ///
    /// Cancel safety: dropped half-way, the work is done all the same.
    async fn off_thread<T: Send + 'static>(
        self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        if self.0.keeps.is_none() {
            return work(&self);
        }
        match tokio::task::spawn_blocking(move || work(&self)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    fn error(&self, cause: Cause) -> ZoneError {
        let server = "here".to_owned();
        ZoneError { server, cause }
    }

    fn read_now(&self, name: &DomainName, kind: Kind) -> Result<Vec<Value>, ZoneError> {
        self.0.state.with(|state| {
            let records = &state.answers.records;
            let other = records.set(name.as_name(), RecordType::CNAME);
            let target = other.and_then(|set| target_of(&set.values.first()?.data));
            if let Some(target) = target {
                let (name, target) = (name.clone(), target.into());
                return Err(self.error(Cause::OtherName { name, target }));
            }
            let set = records.set(name.as_name(), record_type(kind));
            let values = set.into_iter().flat_map(|set| &set.values);
            Ok(values.filter_map(|entry| value(&entry.data)).collect())
        })
    }

    fn change_now(&self, change: &Change) -> Result<(), ZoneError> {
        let names = change.names().cloned().collect::<Vec<_>>();
        if let Some(name) = names.iter().find(|name| !self.0.zone.contains(name)) {
            let (name, zone) = (name.clone(), self.0.zone.clone());
            return Err(self.error(Cause::NotInZone { name, zone }));
        }
        let name = names.first().unwrap_or(&self.0.zone).clone();
        let code = self.make(&update_message(&self.0.zone, change), &self.0.zone);
        let cause = if code == ResponseCode::NoError {
            return Ok(());
        } else if code == ResponseCode::Refused {
            Cause::Refused { name }
        } else if code == ResponseCode::ServFail {
            Cause::ServerFailed
        } else {
            Cause::Conflict { name }
        };
        Err(self.error(cause))
    }
}

fn kept_text(records: &Records, keeps: Keeps) -> String {
    let mut text = records.serial_text();
    match keeps {
        Keeps::Serial => {}
        Keeps::Updates => text.push_str(&records.updated_text()),
    }
    text
}

/// Changes made here need no signature: this process is the server.
impl Zone for OwnZone {
    fn change(&self, change: Change) -> Doing<'_, ()> {
        Box::pin(
            self.clone()
                .off_thread(move |zone| zone.change_now(&change)),
        )
    }

    fn read<'a>(&'a self, name: &'a DomainName, kind: Kind) -> Doing<'a, Vec<Value>> {
        Box::pin(async move { self.read_now(name, kind) })
    }

    fn copies(&self) -> Doing<'_, Vec<SocketAddr>> {
        Box::pin(async move { Ok(self.secondaries().to_vec()) })
    }
}

impl std::fmt::Debug for OwnZone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnZone({})", self.0.zone)
    }
}

/// Longest that an answer by TCP may wait for its reader.
pub(super) const TCP_WAIT: Duration = Duration::from_secs(10);

fn encoded(answer: &Message) -> Vec<Vec<u8>> {
    answer.to_vec().into_iter().collect()
}

/// Whether a message may change the zone, by its operation.
//= RFC 2136 section 1.3
pub(super) fn is_update(bytes: &[u8]) -> bool {
    let flags = bytes.get(2).copied().unwrap_or_default();
    OpCode::from_u8((flags >> 3) & 0x0f) == OpCode::Update
}

/// FORMERR to what has a number and is no answer.
fn malformed(bytes: &[u8]) -> Option<Vec<u8>> {
    let &[high, low, flags, _, ..] = bytes else {
        return None;
    };
    if bytes.len() < 12 || flags & 0x80 != 0 {
        return None;
    }
    let id = u16::from_be_bytes([high, low]);
    Message::error_msg(id, OpCode::Query, ResponseCode::FormErr)
        .to_vec()
        .ok()
}
