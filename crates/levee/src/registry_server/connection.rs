//! One connection to the registry: lines in, answers out, one at a time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use levee_net::Clock;
use levee_wire::registry::{Refusal, Reply, ReplyLine, Request, parse_list_request, parse_request};
use levee_wire::{LINE_MAX, LineReader, MessageBudget, leading_number};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::gate::{Gate, told};
use super::{Question, RegistryServerSettings, TOO_MANY};
use crate::trust::{Channel, CommunityStream, Denied, Trust};

pub(super) struct Connection {
    stream: CommunityStream,
    address: IpAddr,
    gate: Gate,
    questions: mpsc::Sender<Question>,
    settings: RegistryServerSettings,
    budget: MessageBudget,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    Closed,
    Idle,
    Dropped(String),
    Panicked,
}

impl Connection {
    /// Talks with who has just connected, after a handshake in a closed community.
    pub(super) async fn hold(
        stream: TcpStream,
        peer: SocketAddr,
        trust: Arc<Trust>,
        (questions, settings): (mpsc::Sender<Question>, RegistryServerSettings),
    ) -> End {
        let wait = settings.write_wait;
        let accepting = timeout(wait, trust.accept(stream, Channel::Registry)).await;
        let accepted = accepting.unwrap_or_else(|_| {
            let told = format!("no handshake within {} s", wait.as_secs());
            Err(Denied::NoKey(told))
        });
        let (stream, asker) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => return dropped(why),
        };
        let budget = MessageBudget::new(settings.requests_burst, settings.requests_per_second);
        let mut connection = Self {
            stream,
            address: peer.ip().to_canonical(),
            gate: Gate::new(trust, asker, peer.to_string()),
            questions,
            settings,
            budget,
        };
        match connection.converse().await {
            Ok(()) => End::Closed,
            Err(end) => end,
        }
    }

    async fn converse(&mut self) -> Result<(), End> {
        let mut reader = LineReader::new(LINE_MAX);
        let mut buffer = [0; READ_MAX];
        let mut idle_at = Instant::now() + self.settings.idle_max;
        loop {
            let read = timeout_at(idle_at, self.stream.read(&mut buffer)).await;
            let count = match read {
                Err(_) if reader.is_inside_line() => return Err(dropped("half a line")),
                Err(_) => return Err(End::Idle),
                Ok(Ok(0) | Err(_)) => return Ok(()),
                Ok(Ok(count)) => count,
            };
            let mut rest = &buffer[..count];
            while let Some(line) = reader.next_line(&mut rest).map_err(dropped)? {
                self.take_line(line).await?;
                idle_at = Instant::now() + self.settings.idle_max;
            }
        }
    }

    async fn take_line(&mut self, line: &[u8]) -> Result<(), End> {
        let is_within_budget = self.budget.take(Clock.now());
        let Some(number) = leading_number(line) else {
            return Err(dropped("line does not begin with a sequence number"));
        };
        if !is_within_budget {
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
                let (code, text) = (Refusal::Malformed.code(), error.to_string());
                let mut bytes = Vec::new();
                ReplyLine::Refused { code, text }.encode(number, &mut bytes);
                self.write_bytes(&bytes).await
            }
        }
    }

    async fn answer(&mut self, number: u32, request: Request) -> Result<(), End> {
        if let Err(why) = self.gate.check(&request) {
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
        self.questions
            .send(question)
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
        match timeout(self.settings.write_wait, writing).await {
            Ok(Ok(())) => Ok(()),
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
