//! The messages of the rescue protocol (R7; dotslash 4.4.2, figure 7).
//!
//! ```text
//! origin -> rescue   1 SOS www.origin.com 1.2.3.4 8080 600 key=<32 hex> ttl=60 beat=1 v=1
//! rescue -> origin   1 200 OK www-vh1.rescue.com 5.6.7.8 8080 100 beat=1
//! rescue -> origin   1 RATE 60 carried=55
//! origin -> rescue   1 200 OK
//! origin -> rescue   2 PURGE url=/news
//! rescue -> origin   2 200 OK objects=1
//! origin -> rescue   3 PEERS key=<32 hex> of=www-vh1.rescue.com:8080,5.6.7.8,100;...
//! rescue -> origin   3 200 OK
//! origin -> rescue   4 SHUTDOWN
//! rescue -> origin   4 200 OK
//! ```
//!
//! `SHUTDOWN cause=not_a_member` tells a side that it was let go for that, and the other one lives.
//!
//! The fixed parameters are the paper's; everything of ours is `key=value` after them, and each may
//! be missing. A rehearsal says so: `drill=60` in the SOS, for so many seconds, and `drill=1` in
//! its `200 OK`, without which the other side cannot know that it is one. `tls=443` is the port for
//! HTTPS: in the SOS that of the origin, in the `200 OK` that of the alias. Commands are
//! case-insensitive. Of an answer the code counts, its word is for people.

mod sos_proof;

use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::{ByteRate, FetchKey, HostName, Misses, Peers, Purge, WebAddress};

use crate::grammar::{Head, ParseError, Words, digits, fill, flag};
use crate::integrity_words::{Permit, Report, parse_permit, parse_report};
use crate::peers_words::{parse_peers, peers_words};
use crate::purge_words::{parse_purge, purge_words};
use crate::registry::ProofWord;
use sos_proof::ProofWords;
pub use sos_proof::SosProof;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Matches an answer with its request; each side counts its own requests from 1.
    pub number: u32,
    /// What it says.
    pub body: Body,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// It wants an answer.
    Request(Request),
    /// It answers a request of the same number.
    Answer(Answer),
}

/// Something that one side wants of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// An origin server asks for help.
    Sos(Sos),
    /// A rescue server tells D_redi.
    Rate(Rate),
    /// An origin server wants its objects removed, or made old. Not in the paper; who does not know
    /// it answers 501.
    Purge(Purge),
    /// An origin server tells its rescue servers of each other. Not in the paper; who does not know
    /// it answers 501.
    Peers(Peers),
    /// An origin server allows its rescue server to go on without it for a while. Not in the paper;
    /// who does not know it answers 501.
    Permit(Permit),
    /// A rescue server says what another one delivered. Not in the paper; who does not know it
    /// answers 501.
    Report(Report),
    /// Either ends the rescue.
    Shutdown(ShutdownWord),
    /// A command that we do not know; its parameters are not kept.
    Unknown(String),
}

/// `cause`: why a side ends a rescue, as far as the other one has to know. Not in the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShutdownWord {
    /// It does not say, or in a word that we do not know.
    #[default]
    Unsaid,
    /// `not_a_member`: by its member list the other side is none, or none any more.
    NotAMember,
}

/// An origin server's call for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sos {
    /// Its own name and web port.
    pub origin: WebAddress,
    /// Its address, which bypasses round robin.
    pub address: IpAddr,
    /// Idle time after which the rescue server shall end the rescue; whole seconds on the wire.
    pub idle_max: Duration,
    /// `key`: to be shown with each fetch.
    pub key: Option<FetchKey>,
    /// `ttl`: lifetime for objects that state none; whole seconds on the wire.
    pub ttl: Option<Duration>,
    /// `beat`: asks for a RATE in each control interval, even an unchanged one.
    pub beats: bool,
    /// `drill`: this is a rehearsal, and ends at the latest after so long; whole seconds on the
    /// wire.
    pub drill: Option<Duration>,
    /// `dns`: the origin's own name will lead to the rescue server, too, and others may remember it
    /// for so long; whole seconds on the wire.
    pub name_ttl: Option<Duration>,
    /// `pull=0`: the rescue server shall not fetch what it does not hold.
    pub misses: Misses,
    /// `tls`: the port at which it answers by HTTPS, where visitors by HTTPS come back to.
    pub tls: Option<u16>,
    /// `v`: version of these extensions; 0 is the paper's own protocol.
    pub version: u32,
    /// `stamp`, `id`, `sig`: that it is the origin who calls, in a closed community.
    pub proof: Option<SosProof>,
}

/// What a rescue server takes, and what it has; whole kilobytes a second on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// D_redi.
    pub redirects: ByteRate,
    /// `carried`: d_resc, what it sent to the origin's visitors, also to those whom nobody
    /// redirected to it. Not in the paper; none where it does not say.
    pub carried: Option<ByteRate>,
}

/// What a rescue server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The alias that it gave to the origin, and its web port.
    pub alias: WebAddress,
    /// Its address.
    pub address: IpAddr,
    /// D_redi; whole kilobytes a second on the wire.
    pub rate: ByteRate,
    /// `beat`: promises a RATE in each control interval.
    pub beats: bool,
    /// `drill`: it has understood that this is a rehearsal.
    pub drill: bool,
    /// `tls`: the port at which the alias answers by HTTPS.
    pub tls: Option<u16>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `200 OK` to anything but an SOS.
    Done,
    /// `200 OK` to an SOS.
    Accept(Offer),
    /// `200 OK objects=2` to a PURGE.
    Purged {
        /// Objects that were there.
        objects: u32,
    },
    /// `403 Reject`.
    Reject,
    /// Any other code, with its text for people.
    Other {
        /// Three digits; neither 200 nor 403.
        code: u16,
        /// One space between words.
        text: String,
    },
}

/// See [`ShutdownWord::NotAMember`].
const NOT_A_MEMBER: &str = "not_a_member";

/// Version of the `key=value` extensions that this code speaks.
pub const VERSION: u32 = 1;

/// Code of the answer to a line that is no message.
pub const CODE_MALFORMED: u16 = 400;
/// Code of the answer to a command that is not known.
pub const CODE_UNKNOWN: u16 = 501;

/// Reads one line, without its end.
pub fn parse(line: &[u8]) -> Result<Message, ParseError> {
    let (number, head, words) = Words::open(line)?;
    let body = match head {
        Head::Command(command) => Body::Request(parse_request(command, words)?),
        Head::Code(code) => Body::Answer(parse_answer(code, words)?),
    };
    Ok(Message { number, body })
}

impl Sos {
    /// What the paper's own SOS says, and nothing beyond it.
    pub const fn new(origin: WebAddress, address: IpAddr, idle_max: Duration) -> Self {
        Self {
            origin,
            address,
            idle_max,
            key: None,
            ttl: None,
            beats: false,
            drill: None,
            name_ttl: None,
            misses: Misses::Fetch,
            tls: None,
            version: 0,
            proof: None,
        }
    }

    /// This SOS with the caller's proof. `sign` gives the signature over a text, for the one who is
    /// `asked`.
    #[must_use]
    pub fn proved(
        mut self,
        id: ProofWord,
        stamp: u64,
        asked: &HostName,
        sign: impl FnOnce(&str) -> ProofWord,
    ) -> Self {
        self.proof = None;
        let covered = format!("{self} stamp={stamp} id={id}");
        let signature = sign(&SosProof::signed_text(&covered, asked));
        self.proof = Some(SosProof {
            id,
            stamp,
            signature,
            covered,
        });
        self
    }
}

impl Message {
    /// A request.
    pub const fn request(number: u32, request: Request) -> Self {
        let body = Body::Request(request);
        Self { number, body }
    }

    /// The answer to the request `number`.
    pub const fn answer(number: u32, answer: Answer) -> Self {
        let body = Body::Answer(answer);
        Self { number, body }
    }

    /// Appends the line with its end to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        writeln!(buffer, "{self}").expect("writing to memory does not fail");
    }
}

/// The line without its end.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.number)?;
        match &self.body {
            Body::Request(request) => write!(f, "{request}"),
            Body::Answer(answer) => write!(f, "{answer}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sos(sos) => write!(f, "{sos}"),
            Self::Rate(rate) => write!(f, "{rate}"),
            Self::Purge(purge) => write!(f, "PURGE{}", purge_words(purge)),
            Self::Peers(peers) => write!(f, "PEERS{}", peers_words(peers)),
            Self::Permit(permit) => write!(f, "PERMIT{permit}"),
            Self::Report(report) => write!(f, "REPORT{report}"),
            Self::Shutdown(ShutdownWord::Unsaid) => f.write_str("SHUTDOWN"),
            Self::Shutdown(ShutdownWord::NotAMember) => {
                write!(f, "SHUTDOWN cause={NOT_A_MEMBER}")
            }
            Self::Unknown(command) => f.write_str(command),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RATE {}", self.redirects.as_kilobytes())?;
        match self.carried {
            None => Ok(()),
            Some(carried) => write!(f, " carried={}", carried.as_kilobytes()),
        }
    }
}

impl fmt::Display for Sos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebAddress { host, port } = &self.origin;
        let idle = self.idle_max.as_secs();
        write!(f, "SOS {host} {} {port} {idle}", self.address)?;
        if let Some(key) = &self.key {
            write!(f, " key={key}")?;
        }
        if let Some(ttl) = &self.ttl {
            write!(f, " ttl={}", ttl.as_secs())?;
        }
        if self.beats {
            f.write_str(" beat=1")?;
        }
        if let Some(drill) = &self.drill {
            write!(f, " drill={}", drill.as_secs())?;
        }
        if let Some(name_ttl) = &self.name_ttl {
            write!(f, " dns={}", name_ttl.as_secs())?;
        }
        match self.misses {
            Misses::Fetch => {}
            Misses::SendBack => f.write_str(" pull=0")?,
        }
        push_tls(self.tls, f)?;
        if self.version != 0 {
            write!(f, " v={}", self.version)?;
        }
        match &self.proof {
            Some(proof) => write!(f, "{proof}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("200 OK"),
            Self::Accept(offer) => {
                let WebAddress { host, port } = &offer.alias;
                let rate = offer.rate.as_kilobytes();
                write!(f, "200 OK {host} {} {port} {rate}", offer.address)?;
                f.write_str(if offer.beats { " beat=1" } else { "" })?;
                f.write_str(if offer.drill { " drill=1" } else { "" })?;
                push_tls(offer.tls, f)
            }
            Self::Purged { objects } => write!(f, "200 OK objects={objects}"),
            Self::Reject => f.write_str("403 Reject"),
            Self::Other { code, text } => write!(f, "{code:03} {text}"),
        }
    }
}

fn parse_request(command: &str, words: Words<'_>) -> Result<Request, ParseError> {
    if command.eq_ignore_ascii_case("SOS") {
        return Ok(Request::Sos(parse_sos(words)?));
    }
    if command.eq_ignore_ascii_case("RATE") {
        return Ok(Request::Rate(parse_rate(words)?));
    }
    if command.eq_ignore_ascii_case("PURGE") {
        return Ok(Request::Purge(parse_purge(words)?));
    }
    if command.eq_ignore_ascii_case("PEERS") {
        return Ok(Request::Peers(parse_peers(words)?));
    }
    if command.eq_ignore_ascii_case("PERMIT") {
        return Ok(Request::Permit(parse_permit(words)?));
    }
    if command.eq_ignore_ascii_case("REPORT") {
        return Ok(Request::Report(parse_report(words)?));
    }
    if command.eq_ignore_ascii_case("SHUTDOWN") {
        return Ok(Request::Shutdown(parse_shutdown(words)?));
    }
    Ok(Request::Unknown(command.to_ascii_uppercase()))
}

fn parse_shutdown(words: Words<'_>) -> Result<ShutdownWord, ParseError> {
    let mut cause = None;
    for pair in words.pairs() {
        let (name, value) = pair?;
        if name == "cause" {
            let word = match value {
                NOT_A_MEMBER => ShutdownWord::NotAMember,
                _ => ShutdownWord::Unsaid,
            };
            fill(&mut cause, "cause", Some(word))?;
        }
    }
    Ok(cause.unwrap_or_default())
}

fn parse_rate(mut words: Words<'_>) -> Result<Rate, ParseError> {
    let redirects = kilobytes(words.number("rate")?);
    let mut carried = None;
    for pair in words.pairs() {
        let (name, value) = pair?;
        if name == "carried" {
            fill(&mut carried, "carried", digits(value).map(kilobytes))?;
        }
    }
    Ok(Rate { redirects, carried })
}

fn parse_sos(mut words: Words<'_>) -> Result<Sos, ParseError> {
    let mut proof = ProofWords::new(&words);
    let host: HostName = words.value("name")?;
    let address: IpAddr = words.value("address")?;
    let port = words.port("port")?;
    let idle = words.number("idle time")?;
    let (mut key, mut ttl, mut beats) = (None, None, None);
    let (mut drill, mut name_ttl, mut pulls) = (None, None, None);
    let (mut tls, mut version) = (None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "key" => fill(&mut key, "key", value.parse().ok())?,
            "ttl" => fill(&mut ttl, "ttl", digits(value).map(seconds))?,
            "beat" => fill(&mut beats, "beat", flag(value))?,
            "drill" => fill(&mut drill, "drill", digits(value).map(seconds))?,
            "dns" => fill(&mut name_ttl, "dns", digits(value).map(seconds))?,
            "pull" => fill(&mut pulls, "pull", flag(value))?,
            "tls" => fill(&mut tls, "tls", tls_port(value))?,
            "v" => fill(&mut version, "v", digits(value))?,
            _ => proof.take(name, value)?,
        }
    }
    Ok(Sos {
        origin: WebAddress { host, port },
        address: address.to_canonical(),
        idle_max: seconds(idle),
        key,
        ttl,
        beats: beats.unwrap_or(false),
        drill,
        name_ttl,
        misses: match pulls {
            Some(false) => Misses::SendBack,
            Some(true) | None => Misses::Fetch,
        },
        tls,
        version: version.unwrap_or(0),
        proof: proof.proof()?,
    })
}

fn parse_answer(code: u16, mut words: Words<'_>) -> Result<Answer, ParseError> {
    match code {
        200 => {
            let _word_for_people = words.optional();
            match words.optional() {
                Some(alias) => parse_offer(alias, words).map(Answer::Accept),
                None => parse_done(words),
            }
        }
        403 => Ok(Answer::Reject),
        code => {
            let text = words.rest();
            Ok(Answer::Other { code, text })
        }
    }
}

fn parse_done(words: Words<'_>) -> Result<Answer, ParseError> {
    let mut objects = None;
    for pair in words.pairs() {
        let (name, value) = pair?;
        if name == "objects" {
            fill(&mut objects, "objects", digits(value))?;
        }
    }
    Ok(objects.map_or(Answer::Done, |objects| Answer::Purged { objects }))
}

fn parse_offer(alias: &str, mut words: Words<'_>) -> Result<Offer, ParseError> {
    let host: HostName = alias.parse().map_err(|_| ParseError::Bad("alias"))?;
    let address: IpAddr = words.value("address")?;
    let port = words.port("port")?;
    let rate = kilobytes(words.number("rate")?);
    let (mut beats, mut drill, mut tls) = (None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "beat" => fill(&mut beats, "beat", flag(value))?,
            "drill" => fill(&mut drill, "drill", flag(value))?,
            "tls" => fill(&mut tls, "tls", tls_port(value))?,
            _ => {}
        }
    }
    Ok(Offer {
        alias: WebAddress { host, port },
        address: address.to_canonical(),
        rate,
        beats: beats.unwrap_or(false),
        drill: drill.unwrap_or(false),
        tls,
    })
}

fn push_tls(port: Option<u16>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match port {
        Some(port) => write!(f, " tls={port}"),
        None => Ok(()),
    }
}

/// A port that somebody can listen at.
fn tls_port(value: &str) -> Option<u16> {
    let port = u16::try_from(digits(value)?).ok()?;
    (port > 0).then_some(port)
}

fn kilobytes(number: u32) -> ByteRate {
    ByteRate::from_kilobytes(u64::from(number))
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(u64::from(number))
}
