//! The messages between the registries of a community: lines, one way, without answers.
//!
//! ```text
//! 1 MESH 00c0ffee00c0ffee v=1                            I am registry 00c0ffee...
//! 1 200 OK 0123456789abcdef                              and I am this one
//! 2 ENTRY www.a.org 80 5.6.7.8 7401 500 29 stamp=17... left=29120 owner=5.6.7.8
//! 3 GONE www.b.org stamp=17... left=64000
//! 4 SUMMARY 0000000000000000 ...                         32 sums of all I know
//! 5 SUMS 7 0000000000000000 ...                          32 sums of this group
//! 6 WANT 7 00000401                                      tell me what is in these buckets
//! 7 ACCUSE www.a.org www.b.org stamp=17... url=/ seen=... key=... sig=...
//! ```
//!
//! Who opened the connection says the first line, the other one the second; after that both say
//! whatever they have to say. An entry is that of the registry protocol, with what is left of its
//! lifetime in milliseconds and the address that registered it. `repair=1` means that it is told
//! because sums differed, and not because it has just come. Nothing is answered: what is lost is
//! found by the sums. Unknown commands are skipped, so that old and new registries understand each
//! other.

use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use crate::grammar::{Head, ParseError, Words, digits, fill, flag};
use crate::registry::{Accusation, Entry, Farewell, hexadecimal, whole};

/// Sums in a message.
pub const SUMS: usize = 32;

/// Number of a registry, made up when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryId(pub u64);

/// What one registry tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The newest entry of a site.
    Entry(ToldEntry),
    /// A site took its entry back.
    Gone(ToldGone),
    /// The sums of all groups; also a sign of life.
    Summary([u64; SUMS]),
    /// The sums of the buckets of a group.
    Sums {
        /// Less than [`SUMS`].
        group: u8,
        /// One for each bucket.
        sums: [u64; SUMS],
    },
    /// Tell me what is in these buckets.
    Want {
        /// Less than [`SUMS`].
        group: u8,
        /// One bit for each bucket.
        buckets: u32,
    },
    /// What a member says of another one.
    Accusation(Box<Accusation>),
    /// A command that this registry does not know.
    Unknown(String),
}

/// An entry on its way to another registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldEntry {
    /// The entry; what is left of its lifetime in whole milliseconds.
    pub entry: Entry,
    /// The address that registered it.
    pub owner: IpAddr,
    /// Why it is told.
    pub telling: Telling,
}

/// A farewell on its way to another registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldGone {
    /// What the site said.
    pub farewell: Farewell,
    /// How long it is to be remembered; whole milliseconds.
    pub left: Duration,
    /// Why it is told.
    pub telling: Telling,
}

/// Why something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Telling {
    /// It has just come from the site.
    Forwarded,
    /// The other registry seemed not to know it.
    Repaired,
}

/// Reads the first line of a connection, if it is one between registries; none if it is another.
pub fn parse_hello(line: &[u8]) -> Option<Result<(u32, RegistryId), ParseError>> {
    let (number, head, words) = Words::open(line).ok()?;
    let Head::Command(command) = head else {
        return None;
    };
    let is_hello = command.eq_ignore_ascii_case("MESH");
    is_hello.then(|| Ok((number, registry_id(words)?)))
}

/// Appends the first line of a connection to `buffer`.
pub fn encode_hello(id: RegistryId, number: u32, buffer: &mut Vec<u8>) {
    writeln!(buffer, "{number} MESH {id} v=1").expect("writing to memory does not fail");
}

/// The answer to the first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Welcome {
    /// This is registry so-and-so; what follows are messages.
    Open(RegistryId),
    /// This is registry so-and-so, and it has a link to you already, or is yourself.
    Already(RegistryId),
    /// No, with a code from 400 and the reason in its own words.
    Refused {
        /// Three digits.
        code: u16,
        /// For people.
        text: String,
    },
}

/// Reads the answer to the first line.
pub fn parse_welcome(line: &[u8]) -> Result<(u32, Welcome), ParseError> {
    let (number, head, mut words) = Words::open(line)?;
    let welcome = match head {
        Head::Code(code @ (200 | 208)) => {
            let _word_for_people = words.fixed("OK")?;
            let id = registry_id(words)?;
            match code {
                200 => Welcome::Open(id),
                _ => Welcome::Already(id),
            }
        }
        Head::Code(code @ 400..) => {
            let text = words.rest();
            Welcome::Refused { code, text }
        }
        Head::Code(_) | Head::Command(_) => return Err(ParseError::BadCode),
    };
    Ok((number, welcome))
}

impl Welcome {
    /// Appends the answer to the first line to `buffer`.
    pub fn encode(&self, number: u32, buffer: &mut Vec<u8>) {
        writeln!(buffer, "{number} {self}").expect("writing to memory does not fail");
    }
}

impl fmt::Display for Welcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(id) => write!(f, "200 OK {id}"),
            Self::Already(id) => write!(f, "208 OK {id}"),
            Self::Refused { code, text } => write!(f, "{code:03} {text}"),
        }
    }
}

/// Reads one line, without its end.
pub fn parse(line: &[u8]) -> Result<Message, ParseError> {
    let (_, head, mut words) = Words::open(line)?;
    let Head::Command(command) = head else {
        return Err(ParseError::BadCommand);
    };
    let command = command.to_ascii_uppercase();
    match command.as_str() {
        "ENTRY" => parse_entry(words).map(Message::Entry),
        "GONE" => parse_gone(words).map(Message::Gone),
        "SUMMARY" => Ok(Message::Summary(parse_sums(words)?)),
        "SUMS" => {
            let group = group(&mut words)?;
            let sums = parse_sums(words)?;
            Ok(Message::Sums { group, sums })
        }
        "WANT" => {
            let group = group(&mut words)?;
            let buckets = bits(words.fixed("buckets")?).ok_or(ParseError::Bad("buckets"))?;
            words.close()?;
            Ok(Message::Want { group, buckets })
        }
        "ACCUSE" => Ok(Message::Accusation(Box::new(Accusation::parse(words)?))),
        _ => Ok(Message::Unknown(command)),
    }
}

impl Message {
    /// Appends the message as a line with its end to `buffer`.
    pub fn encode(&self, number: u32, buffer: &mut Vec<u8>) {
        writeln!(buffer, "{number} {self}").expect("writing to memory does not fail");
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(told) => {
                let ToldEntry { entry, owner, .. } = told;
                let left = entry.lifetime.as_millis();
                write!(f, "ENTRY {entry} left={left} owner={owner}{}", told.telling)
            }
            Self::Gone(told) => {
                let left = told.left.as_millis();
                write!(f, "GONE {} left={left}{}", told.farewell, told.telling)
            }
            Self::Summary(sums) => {
                f.write_str("SUMMARY")?;
                write_sums(f, sums)
            }
            Self::Sums { group, sums } => {
                write!(f, "SUMS {group}")?;
                write_sums(f, sums)
            }
            Self::Want { group, buckets } => write!(f, "WANT {group} {buckets:08x}"),
            Self::Accusation(accusation) => write!(f, "{accusation}"),
            Self::Unknown(command) => f.write_str(command),
        }
    }
}

impl fmt::Display for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forwarded => Ok(()),
            Self::Repaired => f.write_str(" repair=1"),
        }
    }
}

impl fmt::Display for RegistryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

fn registry_id(mut words: Words<'_>) -> Result<RegistryId, ParseError> {
    let id = hexadecimal(words.fixed("registry")?).ok_or(ParseError::Bad("registry"))?;
    words.close()?;
    Ok(RegistryId(id))
}

/// What is said of an entry or a farewell beside itself.
#[derive(Default)]
struct Attributes {
    left: Option<u64>,
    owner: Option<IpAddr>,
    repair: Option<bool>,
}

impl Attributes {
    fn read(words: &Words<'_>) -> Result<Self, ParseError> {
        let mut read = Self::default();
        let named = words.clone().skip_fixed();
        for pair in named.pairs() {
            let (name, value) = pair?;
            match name {
                "left" => fill(&mut read.left, "left", whole(value).filter(is_bounded))?,
                "owner" => fill(&mut read.owner, "owner", value.parse().ok())?,
                "repair" => fill(&mut read.repair, "repair", flag(value))?,
                _ => {}
            }
        }
        Ok(read)
    }

    fn left(&self) -> Result<Duration, ParseError> {
        let left = self.left.ok_or(ParseError::Missing("left"))?;
        Ok(Duration::from_millis(left))
    }

    fn telling(&self) -> Telling {
        match self.repair {
            Some(true) => Telling::Repaired,
            Some(false) | None => Telling::Forwarded,
        }
    }
}

fn parse_entry(words: Words<'_>) -> Result<ToldEntry, ParseError> {
    let attributes = Attributes::read(&words)?;
    let mut entry = Entry::parse(words)?;
    entry.lifetime = attributes.left()?;
    let owner = attributes.owner.ok_or(ParseError::Missing("owner"))?;
    Ok(ToldEntry {
        entry,
        owner: owner.to_canonical(),
        telling: attributes.telling(),
    })
}

fn parse_gone(words: Words<'_>) -> Result<ToldGone, ParseError> {
    let attributes = Attributes::read(&words)?;
    Ok(ToldGone {
        farewell: Farewell::parse(words)?,
        left: attributes.left()?,
        telling: attributes.telling(),
    })
}

fn group(words: &mut Words<'_>) -> Result<u8, ParseError> {
    let group = digits(words.fixed("group")?).and_then(|group| u8::try_from(group).ok());
    let group = group.filter(|&group| usize::from(group) < SUMS);
    group.ok_or(ParseError::Bad("group"))
}

fn parse_sums(mut words: Words<'_>) -> Result<[u64; SUMS], ParseError> {
    let mut sums = [0; SUMS];
    for sum in &mut sums {
        *sum = hexadecimal(words.fixed("sum")?).ok_or(ParseError::Bad("sum"))?;
    }
    words.close()?;
    Ok(sums)
}

fn write_sums(f: &mut fmt::Formatter<'_>, sums: &[u64; SUMS]) -> fmt::Result {
    sums.iter().try_for_each(|sum| write!(f, " {sum:016x}"))
}

fn bits(text: &str) -> Option<u32> {
    let wide = hexadecimal(&format!("{text:0>16}")).filter(|_| text.len() == 8)?;
    u32::try_from(wide).ok()
}

const fn is_bounded(milliseconds: &u64) -> bool {
    *milliseconds <= LEFT_MAX
}

/// A year: longer than any registry keeps anything.
const LEFT_MAX: u64 = 366 * 24 * 3600 * 1000;
