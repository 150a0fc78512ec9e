//! One connection to the registry: lines in, answers out, one at a time; until it says that it is
//! another registry, and becomes a link of the mesh.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use levee_net::Clock;
use levee_registry::Side;
use levee_trust::Deed;
use levee_wire::mesh::{RegistryId, Welcome, parse_hello};
use levee_wire::registry::{Refusal, Reply, ReplyLine, Request, parse_list_request, parse_request};
use levee_wire::{LINE_MAX, LineReader, MessageBudget, leading_number};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::budget_holder::BudgetHolder;
use super::gate::{Barred, Gate, told};
use super::peers::Holder;
use super::pump::Pump;
use super::tally::{Reason, Tally};
use super::{
    Event, Greeting, HeldBudgets, Question, RegistryServerSettings, TOO_MANY, TOO_MANY_UPDATES,
};
use crate::trust::{Channel, CommunityStream, Counterpart, Trust};

pub(super) struct Connection {
    stream: CommunityStream,
    address: IpAddr,
    gate: Gate,
    /// Who has proved to be at the other end.
    asker: Counterpart,
    home: Home,
    budget: MessageBudget,
}

/// The registry that was connected to.
pub(super) struct Home {
    pub(super) own: RegistryId,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) trust: Arc<Trust>,
    pub(super) tally: Arc<Tally>,
    /// Of sites.
    pub(super) updates: HeldBudgets,
    /// Of other registries.
    pub(super) messages: HeldBudgets,
    pub(super) settings: RegistryServerSettings,
}

/// Another registry, and what came with its greeting.
struct Hello {
    number: u32,
    registry: RegistryId,
    reader: LineReader,
    rest: Vec<u8>,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    Closed,
    LinkEnded(String),
    Idle,
    /// What it may not do was told where that was found out.
    Refused,
    Dropped(String),
    Panicked,
}

impl Connection {
    /// Talks with who has just connected, after a handshake in a closed community.
    pub(super) async fn hold(stream: TcpStream, peer: SocketAddr, home: Home) -> End {
        let wait = home.settings.write_wait;
        let accepting = timeout(wait, home.trust.accept(stream, Channel::Registry)).await;
        let (stream, asker) = match accepting {
            Ok(Ok(accepted)) => accepted,
            Ok(Err(_)) => return End::Refused,
            Err(_) => return dropped(format!("no handshake within {} s", wait.as_secs())),
        };
        let settings = &home.settings;
        let budget = MessageBudget::new(settings.requests_burst, settings.requests_per_second);
        let mut connection = Self {
            stream,
            address: peer.ip().to_canonical(),
            gate: Gate::new(
                Arc::clone(&home.trust),
                asker,
                peer,
                Arc::clone(&home.updates),
            ),
            asker,
            home,
            budget,
        };
        match connection.converse().await {
            Ok(Some(hello)) => connection.link(hello).await,
            Ok(None) => End::Closed,
            Err(end) => end,
        }
    }

    async fn converse(&mut self) -> Result<Option<Hello>, End> {
        let mut reader = LineReader::new(LINE_MAX);
        let mut buffer = [0; READ_MAX];
        // Whoever makes up a key can say something now and then, for ever.
        let last_at = match self.gate.is_strangers() {
            true => Some(Instant::now() + self.home.settings.stranger_max),
            false => None,
        };
        let mut idle_at = Instant::now() + self.home.settings.idle_max;
        loop {
            let end = last_at.map_or(idle_at, |last| last.min(idle_at));
            let read = timeout_at(end, self.stream.read(&mut buffer)).await;
            let count = match read {
                Err(_) if reader.is_inside_line() => return Err(dropped("half a line")),
                Err(_) => return Err(End::Idle),
                Ok(Ok(0) | Err(_)) => return Ok(None),
                Ok(Ok(count)) => count,
            };
            self.home.tally.heard_member(count);
            let mut rest = &buffer[..count];
            while let Some(line) = reader.next_line(&mut rest).map_err(dropped)? {
                if let Some(hello) = parse_hello(line) {
                    let (number, registry) = hello.map_err(dropped)?;
                    let rest = rest.to_vec();
                    return Ok(Some(Hello {
                        number,
                        registry,
                        reader,
                        rest,
                    }));
                }
                self.take_line(line).await?;
                idle_at = Instant::now() + self.home.settings.idle_max;
            }
        }
    }

    /// Another registry has greeted.
    async fn link(mut self, hello: Hello) -> End {
        let (outbox, inbox) = mpsc::channel(1);
        let (answer, answered) = oneshot::channel();
        let greeting = Greeting {
            registry: hello.registry,
            holder: Holder::of(hello.registry, self.asker),
            side: Side::Acceptor,
            place: self.address.to_string(),
            outbox,
            answer,
        };
        if let Err(text) = self.is_peer().await {
            let end = match self.home.trust.is_closed() {
                true => End::Refused,
                false => dropped(format!("it says that it is a registry, but {text}")),
            };
            let refused = Welcome::Refused { code: 403, text };
            let _ = self.welcome(hello.number, &refused).await;
            return end;
        }
        // The welcome goes before anything that is owed.
        let peer = None;
        let greeted = self
            .home
            .events
            .send(Event::Greeted { greeting, peer })
            .await;
        if greeted.is_err() {
            return End::Closed;
        }
        let Ok(Some(link)) = answered.await else {
            let _ = self
                .welcome(hello.number, &Welcome::Already(self.home.own))
                .await;
            return End::Closed;
        };
        if self
            .welcome(hello.number, &Welcome::Open(self.home.own))
            .await
            .is_err()
        {
            let _ = self.home.events.send(Event::LinkClosed(link)).await;
            return End::Closed;
        }
        let holder = BudgetHolder::of(self.asker, self.address);
        let pump = Pump {
            link,
            stream: self.stream,
            trust: self.home.trust,
            tally: self.home.tally,
            other: self.asker,
            place: self.address.to_string(),
            reader: hello.reader,
            rest: hello.rest,
            events: self.home.events,
            outbox: inbox,
            budget: (holder, self.home.messages),
        };
        End::LinkEnded(pump.run().await)
    }

    /// In a closed community a registry is who the authority says is one; in an open one, who is at
    /// the address of one of our peers.
    async fn is_peer(&self) -> Result<(), String> {
        let what = format!("mesh link from {}", self.address);
        let permitted = self
            .home
            .trust
            .permits(self.asker, Deed::SpreadEntries, &what);
        permitted.map_err(|why| told(&why))?;
        if self.home.trust.is_closed() {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        let address = self.address;
        let asked = Event::IsPeer { address, answer };
        // Both fail only when the registry stops.
        let is_asked = self.home.events.send(asked).await.is_ok();
        match is_asked && answered.await.unwrap_or(false) {
            true => Ok(()),
            false => Err(format!("{address} is no --peer of this registry")),
        }
    }

    async fn welcome(&mut self, number: u32, welcome: &Welcome) -> Result<(), End> {
        let mut bytes = Vec::new();
        welcome.encode(number, &mut bytes);
        self.write_bytes(&bytes).await
    }

    async fn take_line(&mut self, line: &[u8]) -> Result<(), End> {
        let is_within_budget = self.budget.take(Clock.now());
        let Some(number) = leading_number(line) else {
            return Err(dropped("line does not begin with a sequence number"));
        };
        if !is_within_budget {
            self.home.tally.refused(Reason::TooMany);
            self.write(number, &TOO_MANY).await?;
            return Err(dropped("too many requests in a short time"));
        }
        if let Some((number, serial)) = parse_list_request(line) {
            let answer = self.gate.list(number, serial);
            return self.write_bytes(&answer).await;
        }
        match parse_request(line) {
            Ok((number, request)) => self.answer(number, request).await,
            // A person who mistyped learns why and may try again.
            Err(error) => {
                self.home.tally.refused(Reason::Malformed);
                let (code, text) = (Refusal::Malformed.code(), error.to_string());
                let mut bytes = Vec::new();
                ReplyLine::Refused { code, text }.encode(number, &mut bytes);
                self.write_bytes(&bytes).await
            }
        }
    }

    async fn answer(&mut self, number: u32, request: Request) -> Result<(), End> {
        if let Err(barred) = self.gate.check(&request) {
            let why = match barred {
                Barred::Denied(why) => why,
                Barred::OverBudget => {
                    self.home.tally.refused(Reason::TooManyUpdates);
                    return self.write(number, &TOO_MANY_UPDATES).await;
                }
            };
            self.home.tally.refused(Reason::Denied);
            let (code, text) = (Refusal::AddressRefused.code(), told(&why));
            let mut bytes = Vec::new();
            ReplyLine::Refused { code, text }.encode(number, &mut bytes);
            return self.write_bytes(&bytes).await;
        }
        let reply = self.ask(request.clone()).await?;
        let mut bytes = Vec::with_capacity(256);
        reply.encode(number, &mut bytes);
        self.gate.sign(&request, &reply, &mut bytes);
        self.write_bytes(&bytes).await
    }

    async fn ask(&self, request: Request) -> Result<Reply, End> {
        let (answer, answered) = oneshot::channel();
        let address = self.address;
        let question = Question {
            address,
            request,
            answer,
        };
        // Both fail only when the registry stops.
        self.home
            .events
            .send(Event::Asked(question))
            .await
            .map_err(|_| End::Closed)?;
        answered.await.map_err(|_| End::Closed)
    }

    async fn write(&mut self, number: u32, reply: &Reply) -> Result<(), End> {
        let mut bytes = Vec::with_capacity(256);
        reply.encode(number, &mut bytes);
        self.write_bytes(&bytes).await
    }

    async fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), End> {
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout(self.home.settings.write_wait, writing).await {
            Ok(Ok(())) => {
                self.home.tally.told_member(bytes.len());
                Ok(())
            }
            Ok(Err(_)) => Err(End::Closed),
            Err(_) => Err(dropped("it does not take our answers")),
        }
    }
}

fn dropped(why: impl ToString) -> End {
    End::Dropped(why.to_string())
}

/// Requests are short; who sends more waits for its turn.
const READ_MAX: usize = 2048;
