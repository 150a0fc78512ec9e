//! A registry and its links to the others: what its operator sees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TrustStatus;

/// A registry and its mesh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshStatus {
    /// Number that this registry made up when it started.
    pub registry: String,
    /// Version of Levee.
    pub version: String,
    /// Where members reach it.
    pub address: String,
    /// Unix seconds now.
    pub now: f64,
    /// Since it started.
    pub uptime_seconds: f64,
    /// Sites that are registered.
    pub entries: usize,
    /// Most that there may be.
    pub entries_max: usize,
    /// The first thousand of them by name.
    pub sites: Vec<RegisteredSite>,
    /// Open connections of members, and links that others opened.
    pub connections: usize,
    /// Most that there may be.
    pub connections_max: usize,
    /// Connections that were cut off, or never taken: too many, half a line, no registry.
    pub connections_dropped: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Requests that were refused, by the code of the answer.
    pub refused: BTreeMap<String, u64>,
    /// Names that other registries were told of.
    pub told: u64,
    /// Of these, told because sums differed.
    pub told_repairs: u64,
    /// Names that were heard of and were news.
    pub news: u64,
    /// Entries that had been missed and came by comparing, since the start, from all peers.
    pub repaired: u64,
    /// What other registries told and was refused, by the code that a site would have got.
    pub refused_from_peers: BTreeMap<String, u64>,
    /// Bytes of messages.
    pub bytes: MeshBytes,
    /// The other registries.
    pub peers: Vec<PeerStatus>,
    /// The closed community; none in an open one.
    pub trust: Option<TrustStatus>,
}

/// A site that is registered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegisteredSite {
    /// Its name.
    pub site: String,
    /// What it offers, in bytes a second.
    pub free: u64,
    /// Until it is forgotten, unless it registers again.
    pub seconds_left: f64,
}

/// Bytes of messages since the start; those of greetings are the members'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshBytes {
    /// From sites.
    pub from_members: u64,
    /// To sites.
    pub to_members: u64,
    /// From other registries.
    pub from_peers: u64,
    /// To other registries.
    pub to_peers: u64,
}

/// How it stands with another registry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// As it was given, `host:port`.
    pub peer: String,
    /// `linked`, `away` or `self`.
    pub state: String,
    /// Why it is away, in a sentence.
    pub cause: String,
    /// Its number, once it has said so.
    pub registry: String,
    /// `us` or `them`: who opened the link.
    pub opened_by: String,
    /// Since it said anything.
    pub silent_seconds: Option<f64>,
    /// Since it knew the same as we.
    pub agreed_seconds_ago: Option<f64>,
    /// Changes that it has not been told of yet.
    pub owed: usize,
    /// Names told on this link.
    pub told: u64,
    /// Of these, told because it seemed not to know them.
    pub told_repairs: u64,
    /// Names heard on this link that were news.
    pub news: u64,
    /// Of these, ones that had been missed.
    pub repaired: u64,
    /// Names heard that were refused: an address or a stamp that is not permitted here, or no room.
    pub refused: u64,
}

impl MeshStatus {
    /// The peers but for this registry itself.
    pub fn others(&self) -> impl Iterator<Item = &PeerStatus> {
        self.peers.iter().filter(|peer| peer.state != "self")
    }
}
