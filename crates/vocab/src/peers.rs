//! The rescue servers of one origin, as each of them knows the others.

use std::net::IpAddr;

use crate::{ByteRate, FetchKey, WebAddress};

/// Most rescue servers of one origin that are told of each other. The paper's largest community has
/// six; a request never waits for more than one of them, however many there are.
pub const PEERS_MAX: usize = 16;

/// All rescue servers of one origin, whoever is told included: all are told the same, so that all
/// find the same home for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// What they show when they ask each other.
    pub key: FetchKey,
    /// None where there is only one.
    pub members: Vec<Peer>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The alias that it gave to the origin, and its web port.
    pub alias: WebAddress,
    /// Where it answers web requests.
    pub address: IpAddr,
    /// The port at which the alias answers by HTTPS, where it does.
    pub tls: Option<u16>,
    /// What it offered when it began to help: its weight. Not what it tells since then, or objects
    /// would move with every change.
    pub rate: ByteRate,
}
