//! Who else helps an origin, as the parameters of a line:
//!
//! ```text
//! key=<32 hex> of=www-vh1.rescue.com:8080,5.6.7.8,100;www-vh4.other.net:80,2001:db8::7,60 tls=443;0
//! ```
//!
//! Each member is its alias with the web port, its address, and its weight in whole kilobytes a
//! second. `tls` has for each of them, in the same order, the port at which its alias answers by
//! HTTPS, or 0; it is missing where none does. Who does not know it passes it over: a fourth part
//! of a member would have spoiled the line for him. Without `of` there is nobody else. Members that
//! do not fit on the line are left out by the sender, the last first, so that all receivers know
//! the same ones; they may still ask those that are named.

use std::fmt;

use levee_vocab::{ByteRate, PEERS_MAX, Peer, Peers, WebAddress};

use crate::grammar::{ParseError, Words, digits, fill};

/// A port for HTTPS, and what separates it from the next.
const PORT_TEXT_MAX: usize = 6;
/// Longest text of the members and their ports: with number, command and key it leaves room on a
/// line.
const TEXT_MAX: usize = 900;

/// The list as it can be sent: as many members as fit on a line, from the first on.
pub fn sendable(mut peers: Peers) -> Peers {
    let words = |member: &Peer| MemberWords(member).to_string().len();
    let length = |member: &Peer| words(member) + 1 + PORT_TEXT_MAX;
    let mut room = TEXT_MAX;
    let fitting = peers.members.iter().take(PEERS_MAX).take_while(|member| {
        let left = room.checked_sub(length(member));
        room = left.unwrap_or(0);
        left.is_some()
    });
    let count = fitting.count();
    peers.members.truncate(count);
    peers
}

/// The parameters, each with a space before it.
pub(crate) const fn peers_words(peers: &Peers) -> PeersWords<'_> {
    PeersWords(peers)
}

pub(crate) struct PeersWords<'a>(&'a Peers);

struct MemberWords<'a>(&'a Peer);

impl fmt::Display for PeersWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " key={}", self.0.key)?;
        for (index, member) in self.0.members.iter().enumerate() {
            f.write_str(if index == 0 { " of=" } else { ";" })?;
            write!(f, "{}", MemberWords(member))?;
        }
        if self.0.members.iter().all(|member| member.tls.is_none()) {
            return Ok(());
        }
        for (index, member) in self.0.members.iter().enumerate() {
            f.write_str(if index == 0 { " tls=" } else { ";" })?;
            write!(f, "{}", member.tls.unwrap_or(0))?;
        }
        Ok(())
    }
}

impl fmt::Display for MemberWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebAddress { host, port } = &self.0.alias;
        let rate = self.0.rate.as_kilobytes();
        write!(f, "{host}:{port},{},{rate}", self.0.address)
    }
}

pub(crate) fn parse_peers(words: Words<'_>) -> Result<Peers, ParseError> {
    let (mut key, mut members, mut ports) = (None, None, None);
    for pair in words.pairs() {
        let (name, value) = pair?;
        match name {
            "key" => fill(&mut key, "key", value.parse().ok())?,
            "of" => fill(&mut members, "of", parse_members(value))?,
            "tls" => fill(&mut ports, "tls", parse_ports(value))?,
            _ => {}
        }
    }
    let mut members: Vec<Peer> = members.unwrap_or_default();
    if let Some(ports) = ports {
        if ports.len() != members.len() {
            return Err(ParseError::Bad("tls"));
        }
        for (member, tls) in members.iter_mut().zip(ports) {
            member.tls = tls;
        }
    }
    Ok(Peers {
        key: key.ok_or(ParseError::Missing("key"))?,
        members,
    })
}

fn parse_members(text: &str) -> Option<Vec<Peer>> {
    let members: Option<Vec<Peer>> = text.split(';').map(parse_member).collect();
    members.filter(|members| members.len() <= PEERS_MAX)
}

/// A port for each member, in their order.
fn parse_ports(text: &str) -> Option<Vec<Option<u16>>> {
    let port = |text| {
        let port = u16::try_from(digits(text)?).ok()?;
        Some((port > 0).then_some(port))
    };
    text.split(';').map(port).collect()
}

fn parse_member(text: &str) -> Option<Peer> {
    let mut parts = text.split(',');
    let (host, port) = parts.next()?.rsplit_once(':')?;
    let port = digits(port).and_then(|port| u16::try_from(port).ok());
    let address: std::net::IpAddr = parts.next()?.parse().ok()?;
    let rate = digits(parts.next()?)?;
    if parts.next().is_some() {
        return None;
    }
    Some(Peer {
        alias: WebAddress {
            host: host.parse().ok()?,
            port: port.filter(|&port| port > 0)?,
        },
        address: address.to_canonical(),
        tls: None,
        rate: ByteRate::from_kilobytes(u64::from(rate)),
    })
}
