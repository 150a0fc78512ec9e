//! The messages between a site and its registry (R11): lines, in the manner of the rescue protocol.
//!
//! ```text
//! site -> registry   1 REGISTER www.rescue.com 8080 5.6.7.8 7401 500 30
//! registry -> site   1 200 OK 30
//! site -> registry   2 SEARCH 5 except=www.origin.com
//! registry -> site   2 210 ENTRY www.rescue.com 8080 5.6.7.8 7401 500 29
//! registry -> site   2 200 OK 1
//! site -> registry   3 QUERY www.rescue.com
//! site -> registry   4 DEREGISTER www.rescue.com
//! site -> registry   5 ACCUSATIONS
//! registry -> site   5 212 ACCUSE www.origin.com www.liar.com stamp=... url=/ seen=... key=...
//! registry -> site   5 200 OK 1
//! ```
//!
//! An entry is name, web port, address, rescue port, free rate in kB/s, lifetime in seconds. It may
//! carry `stamp=`, with a proof `key=` and `sig=`, and `https=1` or `https=0` with `https_sig=`:
//! whether the site's aliases answer by HTTPS. A search may carry `per_domain=`, at most so many of
//! one domain, and `nonce=`, to which an answer is bound where it is signed.
//!
//! A reply is any number of lines with code 210 or 212 and one last line: 200 with a number
//! (seconds granted, entries found, entries removed), or a code from 400 with the reason.
//! [`Request`] and [`Reply`] say nothing of lines or sockets, so SLP or an external store can carry
//! the same requests one day.

mod accusation;
mod entry;
mod list;
mod signed_answer;

use std::fmt;
use std::io::Write;
use std::time::Duration;

use levee_vocab::HostName;

use crate::grammar::{Head, ParseError, Words, digits, fill};

pub use accusation::{ACCUSED_TARGET_MAX, Accusation, AccusationProof, Sight};
pub(crate) use entry::whole;
use entry::whole_seconds;
pub use entry::{Entry, Farewell, NotAProofWord, Proof, ProofWord};
pub use list::{ListLine, encode_list, encode_list_request, parse_list_line, parse_list_request};
pub use signed_answer::{sign_answer, split_answer};

/// Something that a site wants of its registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Keep this entry for its lifetime.
    Register(Entry),
    /// Forget the entry of this site.
    Deregister(Farewell),
    /// The best entries by free rate.
    Search(Search),
    /// The entry of this site.
    Query(HostName),
    /// Tell everybody what a member says of another one, in a closed community.
    Accuse(Box<Accusation>),
    /// What members say of each other.
    Accusations,
    /// A command that the registry does not know.
    Unknown(String),
}

/// The best entries by free rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// How many at most.
    pub count: u32,
    /// Not this one: who searches does not look for itself.
    pub except: Option<HostName>,
    /// How many of one domain ([`HostName::domain`]) at most, while there are others.
    pub per_domain: Option<u32>,
    /// A number that the asker made up, to which a signed answer is bound.
    pub nonce: Option<u64>,
}

/// What a registry answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Registered for this long; whole seconds on the wire.
    Registered(Duration),
    /// What was found, best first; may be none.
    Found(Vec<Entry>),
    /// How many entries were removed.
    Removed(u32),
    /// An accusation was taken: 1 if it was news.
    Noted(u32),
    /// What members say of each other.
    Said(Vec<Accusation>),
    /// No.
    Refused(Refusal),
}

/// Why a registry says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The line is no message.
    Malformed,
    /// The address is not that of the asker, or of a kind that is not permitted here.
    AddressRefused,
    /// Another address holds an entry for this site.
    Taken,
    /// The stamp is not larger than this one, which is known already.
    Stale(u64),
    /// The stamp is later than the registry's clock shows.
    FromTheFuture,
    /// More updates in a short time than one member, or one network, may send.
    TooManyUpdates,
    /// Too many requests in a short time.
    TooMany,
    /// The registry does not know the command.
    UnknownCommand,
    /// The registry, or the asker's part of it, is full.
    Full,
}

/// One line of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyLine {
    /// `210 ENTRY`: more lines follow.
    Entry(Entry),
    /// `212 ACCUSE`: more lines follow.
    Accusation(Box<Accusation>),
    /// `200 OK`: the last line.
    Done(u32),
    /// Any code from 400: the last line.
    Refused {
        /// Three digits.
        code: u16,
        /// For people.
        text: String,
    },
}

/// Reads one request line, without its end.
pub fn parse_request(line: &[u8]) -> Result<(u32, Request), ParseError> {
    let (number, head, mut words) = Words::open(line)?;
    let Head::Command(command) = head else {
        return Err(ParseError::BadCommand);
    };
    let command = command.to_ascii_uppercase();
    let request = match command.as_str() {
        "REGISTER" => Request::Register(Entry::parse(words)?),
        "SEARCH" => parse_search(words)?,
        "QUERY" => {
            let site = words.value("name")?;
            words.close()?;
            Request::Query(site)
        }
        "DEREGISTER" => Request::Deregister(Farewell::parse(words)?),
        "ACCUSE" => Request::Accuse(Box::new(Accusation::parse(words)?)),
        "ACCUSATIONS" => {
            words.close()?;
            Request::Accusations
        }
        _ => Request::Unknown(command),
    };
    Ok((number, request))
}

/// Reads one line of a reply, without its end.
pub fn parse_reply_line(line: &[u8]) -> Result<(u32, ReplyLine), ParseError> {
    let (number, head, mut words) = Words::open(line)?;
    let Head::Code(code) = head else {
        return Err(ParseError::BadCode);
    };
    let line = match code {
        200 => {
            let _word_for_people = words.fixed("OK")?;
            let count = words.number("count")?;
            words.close()?;
            ReplyLine::Done(count)
        }
        210 => {
            let _word_for_people = words.fixed("ENTRY")?;
            ReplyLine::Entry(Entry::parse(words)?)
        }
        212 => {
            let _word_for_people = words.fixed("ACCUSE")?;
            ReplyLine::Accusation(Box::new(Accusation::parse(words)?))
        }
        400.. => {
            let text = words.rest();
            ReplyLine::Refused { code, text }
        }
        _ => return Err(ParseError::BadCode),
    };
    Ok((number, line))
}

impl Request {
    /// Appends the request as a line with its end to `buffer`.
    pub fn encode(&self, number: u32, buffer: &mut Vec<u8>) {
        writeln!(buffer, "{number} {self}").expect("writing to memory does not fail");
    }
}

impl Reply {
    /// Appends the reply as lines with their ends to `buffer`.
    pub fn encode(&self, number: u32, buffer: &mut Vec<u8>) {
        let done = |count| ReplyLine::Done(count);
        let last = match self {
            Self::Registered(lifetime) => done(whole_seconds(*lifetime)),
            Self::Removed(count) | Self::Noted(count) => done(*count),
            Self::Said(accusations) => {
                for accusation in accusations {
                    ReplyLine::Accusation(Box::new(accusation.clone())).encode(number, buffer);
                }
                done(u32::try_from(accusations.len()).unwrap_or(u32::MAX))
            }
            Self::Found(entries) => {
                for entry in entries {
                    ReplyLine::Entry(entry.clone()).encode(number, buffer);
                }
                done(u32::try_from(entries.len()).unwrap_or(u32::MAX))
            }
            Self::Refused(refusal) => {
                let (code, text) = (refusal.code(), refusal.to_string());
                ReplyLine::Refused { code, text }
            }
        };
        last.encode(number, buffer);
    }
}

impl ReplyLine {
    /// Appends the line with its end to `buffer`.
    pub fn encode(&self, number: u32, buffer: &mut Vec<u8>) {
        writeln!(buffer, "{number} {self}").expect("writing to memory does not fail");
    }
}

impl Refusal {
    /// Its code on the wire.
    pub const fn code(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::AddressRefused => 403,
            Self::Taken => 409,
            Self::Stale(_) => 412,
            Self::FromTheFuture => 422,
            Self::TooManyUpdates => 425,
            Self::TooMany => 429,
            Self::UnknownCommand => 501,
            Self::Full => 503,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "Malformed",
            Self::AddressRefused => "Reject address is not yours or not permitted here",
            Self::Taken => "Taken by another address until its registration ends",
            Self::Stale(newest) => return write!(f, "Stale stamp={newest} is known here"),
            Self::FromTheFuture => "Stamp from the future: set your clock",
            Self::TooManyUpdates => {
                "Too many updates: what you registered stays, say the newest in some seconds"
            }
            Self::TooMany => "Too many requests",
            Self::UnknownCommand => "Unknown",
            Self::Full => "Full",
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(entry) => write!(f, "REGISTER {entry}"),
            Self::Deregister(farewell) => write!(f, "DEREGISTER {farewell}"),
            Self::Search(search) => write!(f, "SEARCH {search}"),
            Self::Query(site) => write!(f, "QUERY {site}"),
            Self::Accuse(accusation) => write!(f, "{accusation}"),
            Self::Accusations => f.write_str("ACCUSATIONS"),
            Self::Unknown(command) => f.write_str(command),
        }
    }
}

impl fmt::Display for ReplyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(entry) => write!(f, "210 ENTRY {entry}"),
            Self::Accusation(accusation) => write!(f, "212 {accusation}"),
            Self::Done(count) => write!(f, "200 OK {count}"),
            Self::Refused { code, text } => write!(f, "{code:03} {text}"),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        if let Some(site) = &self.except {
            write!(f, " except={site}")?;
        }
        if let Some(count) = self.per_domain {
            write!(f, " per_domain={count}")?;
        }
        match self.nonce {
            Some(nonce) => write!(f, " nonce={nonce:016x}"),
            None => Ok(()),
        }
    }
}

fn parse_search(mut words: Words<'_>) -> Result<Request, ParseError> {
    let count = words.number("count")?;
    let (mut except, mut per_domain, mut nonce) = (None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "except" => fill(&mut except, "except", value.parse().ok())?,
            "per_domain" => fill(&mut per_domain, "per_domain", digits(value))?,
            "nonce" => fill(&mut nonce, "nonce", hexadecimal(value))?,
            _ => {}
        }
    }
    Ok(Request::Search(Search {
        count,
        except,
        per_domain,
        nonce,
    }))
}

/// Sixteen digits, so that there is one way to write each number.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = text.len() == 16 && text.bytes().all(is_plain);
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}
