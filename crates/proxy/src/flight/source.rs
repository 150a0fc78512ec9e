//! What is missing, and where it can be had.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use levee_vocab::FetchKey;

use super::{BodyReceiver, ObjectKey};

/// Where an object can be had.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where to connect to: never looked up by name, so that a name cannot lead us elsewhere.
    pub address: SocketAddr,
    /// What goes into the Host field.
    pub authority: String,
    /// Secret of the rescue, sent as `levee-fetch`.
    pub key: Option<FetchKey>,
    /// Lifetime of objects that state none (`Purpose::Rescue`).
    pub ttl: Duration,
    /// Why we fetch.
    pub purpose: Purpose,
}

/// Why we fetch; decides what is cached and what is stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// For an origin that we rescue. Credentials and cookies pass in neither direction.
    Rescue,
    /// For our own site, from its application.
    Upstream,
}

/// A request that the cache could not answer.
#[derive(Debug)]
pub struct Miss {
    /// Which object.
    pub key: ObjectKey,
    /// The visitor's method.
    pub method: Method,
    /// The visitor's headers. Hop-by-hop fields, Host and framing are dropped before they are sent
    /// on.
    pub headers: Vec<(Bytes, Bytes)>,
    /// Where it can be had.
    pub source: Source,
    /// The request's body, where it has one; or what goes up the tunnel that it asks for.
    pub body: Option<BodyReceiver>,
}
