//! Moves the lines of one link between two registries; what they mean is decided by their owner.
//!
//! One batch of lines is under way to the other side at a time. What changes meanwhile is owed, not
//! queued, so a peer that does not read costs nothing but its own link.
//!
//! What the other side says has a budget, which is charged before a signature is verified. Where it
//! is used up, nothing is read until there is more: the other side then tells each name once, as it
//! is by then, so nothing is lost.

use std::io;
use std::sync::Arc;

use levee_net::Clock;
use levee_registry::LinkId;
use levee_trust::Deed;
use levee_wire::mesh::{Message, parse};
use levee_wire::{LINE_MAX, LineReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::budget_holder::BudgetHolder;
use super::tally::Tally;
use super::{Event, HeldBudgets};
use crate::trust::{CommunityStream, Counterpart, Trust};

/// One end of a link after its greeting.
pub(super) struct Pump {
    pub(super) link: LinkId,
    /// Where the other registry is, for people.
    pub(super) place: String,
    pub(super) stream: CommunityStream,
    pub(super) trust: Arc<Trust>,
    pub(super) tally: Arc<Tally>,
    /// Who has proved to be at the other end.
    pub(super) other: Counterpart,
    /// With whatever came behind the greeting.
    pub(super) reader: LineReader,
    pub(super) rest: Vec<u8>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) outbox: mpsc::Receiver<Vec<u8>>,
    /// Of what the other side says.
    pub(super) budget: Budget,
}

/// One of these budgets.
pub(super) type Budget = (BudgetHolder, HeldBudgets);

impl Pump {
    /// Runs until either side ends the link, and says why. Dropped half-way, the link is closed.
    pub(super) async fn run(self) -> String {
        let Self {
            link,
            place,
            stream,
            trust,
            tally,
            other,
            reader,
            rest,
            events,
            outbox,
            budget,
        } = self;
        let (read, write) = split(stream);
        let check = |message: &Message| is_true(&trust, &place, message);
        let why = tokio::select! {
            why = hear((link, &events, &tally), read, (reader, rest), (&budget, check)) => why,
            why = say((link, &events, &tally), write, outbox) => why,
            why = expelled(&trust, other, &place) => why,
        };
        let closed = Event::LinkClosed(link);
        // Fails only when the registry stops.
        let _ = events.send(closed).await;
        why
    }
}

/// Waits until a newer member list says that the other side is no registry any more.
async fn expelled(trust: &Trust, other: Counterpart, place: &str) -> String {
    let mut lists = trust.newer_lists();
    let what = format!("mesh link with {place}");
    // Fails only when the registry stops.
    while lists.changed().await.is_ok() {
        if let Err(why) = trust.permits(other, Deed::SpreadEntries, &what) {
            return why.to_string();
        }
    }
    std::future::pending().await
}

/// Whether the site itself said what is told of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Believed {
    Yes,
    No,
}

/// In a closed community every registry checks what sites have signed, so that one that lies can
/// lie about nobody. What is not believed is counted with all that is refused.
fn is_true(trust: &Trust, place: &str, message: &Message) -> Believed {
    let told_by = || format!("registry at {place}");
    let checked = match message {
        Message::Entry(told) => trust.check_entry(&told.entry, &told_by()),
        Message::Gone(told) => trust.check_farewell(&told.farewell, &told_by()),
        Message::Accusation(accusation) => trust.check_accusation(accusation, &told_by()),
        Message::Summary(_) | Message::Sums { .. } | Message::Want { .. } => return Believed::Yes,
        Message::Unknown(_) => return Believed::No,
    };
    match checked {
        Ok(()) => Believed::Yes,
        Err(_) => Believed::No,
    }
}

async fn hear(
    (link, events, tally): (LinkId, &mpsc::Sender<Event>, &Tally),
    mut stream: ReadHalf<CommunityStream>,
    (mut reader, first): (LineReader, Vec<u8>),
    (budget, check): (&Budget, impl Fn(&Message) -> Believed),
) -> String {
    let mut buffer = first;
    loop {
        let mut rest = buffer.as_slice();
        loop {
            let message = match reader.next_line(&mut rest) {
                Ok(Some(line)) => parse(line),
                Ok(None) => break,
                Err(error) => return error.to_string(),
            };
            let message: Message = match message {
                Ok(message) => message,
                Err(error) => return format!("it says what is no message: {error}"),
            };
            await_turn(budget).await;
            if check(&message) == Believed::No {
                continue;
            }
            let heard = Event::Heard { link, message };
            if events.send(heard).await.is_err() {
                return "this registry stops".to_owned();
            }
        }
        buffer.resize(READ_MAX, 0);
        match stream.read(&mut buffer).await {
            Ok(0) => return "it closed the connection".to_owned(),
            Ok(count) => {
                tally.heard_peer(count);
                buffer.truncate(count);
            }
            Err(error) => return told(&error),
        }
    }
}

/// Until the other side may say one more.
async fn await_turn((holder, budgets): &Budget) {
    while let Err(wait) = budgets.with(|budgets| budgets.take(Clock.now(), holder)) {
        sleep(wait).await;
    }
}

async fn say(
    (link, events, tally): (LinkId, &mpsc::Sender<Event>, &Tally),
    mut stream: WriteHalf<CommunityStream>,
    mut outbox: mpsc::Receiver<Vec<u8>>,
) -> String {
    while let Some(batch) = outbox.recv().await {
        let written = async {
            stream.write_all(&batch).await?;
            stream.flush().await
        };
        if let Err(error) = written.await {
            return told(&error);
        }
        tally.told_peer(batch.len());
        if events.send(Event::LinkReady(link)).await.is_err() {
            break;
        }
    }
    "this registry ended the link".to_owned()
}

fn told(error: &io::Error) -> String {
    // A process that was killed says no farewell. In TLS that is an error, with a long story.
    match error.kind() == io::ErrorKind::UnexpectedEof {
        true => "it closed the connection".to_owned(),
        false => error.to_string(),
    }
}

/// Some twenty messages.
const READ_MAX: usize = 8192;

/// A reader for the lines of a link.
pub(super) const fn reader() -> LineReader {
    LineReader::new(LINE_MAX)
}
