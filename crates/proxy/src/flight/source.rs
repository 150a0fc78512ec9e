//! What is missing, and where it can be had.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use levee_control::Homes;
use levee_vocab::FetchKey;
use levee_wire::ProxiedAddresses;

use super::{BodyReceiver, ObjectKey};
use crate::upstream::Upstreams;

/// Where an object can be had.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where to connect to.
    pub place: Place,
    /// What goes into the Host field.
    pub authority: String,
    /// Secret of the rescue, sent as `levee-fetch`.
    pub key: Option<FetchKey>,
    /// Lifetime of objects that state none (`Purpose::Rescue`).
    pub ttl: Duration,
    /// Why we fetch.
    pub purpose: Purpose,
    /// Who else has a part in it.
    pub company: Company,
}

/// Whether other rescue servers of the same origin have a part in a fetch.
#[derive(Clone, Debug)]
pub enum Company {
    /// None: nobody else helps the origin, or the object is our own.
    Alone,
    /// The object's home is to be asked before the origin.
    WithHomes(Arc<Homes>),
    /// Another asks us as the object's home: for something fresh. We ask the origin, or first for a
    /// copy where the object has lately moved to us.
    ForAnother(Option<Arc<Homes>>),
}

/// Where to connect to.
#[derive(Clone, Debug)]
pub enum Place {
    /// At an address: never looked up by name, so that a name cannot lead us elsewhere.
    Address(SocketAddr),
    /// At one of our own site's upstreams.
    Upstreams(Arc<Upstreams>),
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Address(one), Self::Address(other)) => one == other,
            (Self::Upstreams(one), Self::Upstreams(other)) => Arc::ptr_eq(one, other),
            (Self::Address(_), Self::Upstreams(_)) | (Self::Upstreams(_), Self::Address(_)) => {
                false
            }
        }
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Address(address) => address.hash(hasher),
            Self::Upstreams(upstreams) => Arc::as_ptr(upstreams).hash(hasher),
        }
    }
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
    /// The visitor's headers, without those that its Connection names, and our own word on who it
    /// is. The other fields of the connection, Host and framing are dropped before they are sent.
    pub headers: Vec<(Bytes, Bytes)>,
    /// Where it can be had.
    pub source: Source,
    /// From where to where the visitor came, for an upstream that hears it by the PROXY protocol.
    pub visitor: Option<ProxiedAddresses>,
    /// The request's body, where it has one; or what goes up the tunnel that it asks for.
    pub body: Option<BodyReceiver>,
}
