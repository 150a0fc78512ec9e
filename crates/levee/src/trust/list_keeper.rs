//! Keeps the member list of a closed community the newest there is.
//!
//! Now and then the operator's file is looked at and a registry is asked for a newer list, on a
//! connection of its own: whoever it is that answers, the authority's signature is what counts.
//! They are asked in turn, and when one is away the next at once. So an expulsion reaches every
//! member within two periods, and a site that was away comes back to the newest list. In an open
//! community there is nothing to do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_trust::{LIST_BYTES_MAX, Role};
use levee_wire::registry::{ListLine, encode_list_request, parse_list_line};
use levee_wire::{LINE_MAX, LineReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::status::Standing;
use super::{Channel, Trust};
use crate::community_socket;
use crate::registry_finder::KnownRegistries;

/// Whom to ask for lists, and how often.
#[derive(Clone, Debug)]
pub struct ListSources {
    /// The registries as they are known at the time; asked in turn.
    pub registries: KnownRegistries,
    /// Time between two looks.
    pub period: Duration,
    /// What we want to be by the list; the log says when we are not.
    pub role: Role,
}

/// Looks for newer lists for ever.
///
/// Dropped half-way, the list in force stays.
pub async fn keep_list(trust: Arc<Trust>, mut sources: ListSources) {
    if !trust.is_closed() {
        return;
    }
    let start = Instant::now();
    let mut turn: usize = 0;
    let mut standing = Standing::Member;
    loop {
        let mut trouble = look_at_file(&trust).await.err();
        let mut registries = sources.registries.borrow_and_update().registries.clone();
        if !registries.is_empty() {
            let first = turn % registries.len();
            registries.rotate_left(first);
            turn = first + 1;
        }
        trouble = trouble.or(ask_one_of(&trust, &registries).await.err());
        trust.note_list_trouble(trouble);
        let now = trust.roster(|roster| trust.standing(roster, sources.role));
        tell_standing(&mut standing, now.map(|now| now.after(start.elapsed())));
        tokio::select! {
            () = sleep(sources.period) => {}
            // The first ones may be found a moment after the start.
            Ok(()) = sources.registries.changed() => {}
        }
    }
}

/// Each change once.
fn tell_standing(before: &mut Standing, now: Option<Standing>) {
    let Some(now) = now.filter(|now| now != before) else {
        return;
    };
    match &now {
        Standing::Member => info!("we are a member, and our list is good"),
        Standing::Waiting(cause) => info!("{cause}"),
        Standing::Due(cause) | Standing::Out(cause) => warn!("{cause}"),
    }
    *before = now;
}

async fn look_at_file(trust: &Arc<Trust>) -> Result<(), String> {
    let reader = Arc::clone(trust);
    let read = tokio::task::spawn_blocking(move || reader.read_given()).await;
    tell(read.map_err(|error| error.to_string())??);
    Ok(())
}

/// Asks them in this order until one answers; tells of the first that did not where none does.
async fn ask_one_of(trust: &Arc<Trust>, registries: &[SocketAddr]) -> Result<(), String> {
    let mut failure = None;
    for registry in registries {
        match ask(trust, *registry).await {
            Ok(()) => return Ok(()),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), Err)
}

async fn ask(trust: &Arc<Trust>, registry: SocketAddr) -> Result<(), String> {
    let told = |error: io::Error| format!("no member list from registry {registry}: {error}");
    let fetching = timeout(FETCH_WAIT, fetch(trust, registry)).await;
    let fetched = fetching.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let Some(text) = fetched.map_err(told)? else {
        return Ok(());
    };
    let taker = Arc::clone(trust);
    let no_good = format!("the list of registry {registry} is no good");
    let taken = tokio::task::spawn_blocking(move || {
        let taken = taker.take(&text);
        let newer = taken.map_err(|error| format!("{no_good}: {error}"))?;
        tell(newer);
        newer.map_or(Ok(()), |_| taker.keep(&text))
    });
    taken.await.map_err(|error| error.to_string())?
}

fn tell(taken: Option<u64>) {
    if let Some(serial) = taken {
        info!(serial, "a newer member list is in force");
    }
}

/// The list of a registry, if it has a newer one than we.
///
/// Dropped half-way, the connection is closed.
async fn fetch(trust: &Trust, registry: SocketAddr) -> io::Result<Option<String>> {
    let stream = community_socket::connect(None, registry).await?;
    let (mut stream, _) = trust.connect(stream, Channel::Registry).await?;
    let mut request = Vec::new();
    let serial = trust
        .roster(levee_trust::Roster::serial)
        .unwrap_or_default();
    encode_list_request(NUMBER, serial, &mut request);
    stream.write_all(&request).await?;
    stream.flush().await?;
    let (mut lines, mut text) = (LineReader::new(LINE_MAX), Vec::new());
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = &buffer[..count];
        while let Some(line) = lines.next_line(&mut rest).map_err(io::Error::other)? {
            match parse_list_line(NUMBER, line).map_err(io::Error::other)? {
                ListLine::Piece(piece) if text.len() + piece.len() <= LIST_BYTES_MAX => {
                    text.extend(piece);
                }
                ListLine::Piece(_) => return Err(io::Error::other("the list is too long")),
                ListLine::End(0) => return Ok(None),
                ListLine::End(_) => {
                    return String::from_utf8(text).map(Some).map_err(io::Error::other);
                }
                ListLine::Refused(code, text) => {
                    return Err(io::Error::other(format!("it answers {code} {text}")));
                }
            }
        }
    }
}

/// The only request on its connection.
const NUMBER: u32 = 1;
/// A list of ten thousand members is one megabyte.
const FETCH_WAIT: Duration = Duration::from_secs(10);
