//! What a cached object is called, and what a request may be given from the cache.
//!
//! Objects of different origins and of different sites never mix: the space is part of every key,
//! so two with the same path on one server cannot see each other's pages.
//!
//! An application of our own may answer each Host differently (a redirect to its main name, links
//! to itself), and a visitor can send any. It may answer each scheme differently as well: one that
//! sends visitors of HTTP to HTTPS must not have this redirect shown to those who followed it. So
//! scheme and Host, as the application is told them, are part of the name of its objects. A rescued
//! origin gets the one Host that its objects are kept under, and hears of no scheme.

use std::fmt;

use bytes::Bytes;
use levee_vocab::HostName;

use crate::disk::DiskOwner;

/// Whose objects these are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// A site of our own, by its name, fetched from its upstream.
    Own(HostName),
    /// An origin that we rescue: its name and the port of its web server.
    Origin(HostName, u16),
}

/// A space whose name lies somewhere else, so that a look-up copies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpaceRef<'a> {
    /// As [`Space::Own`].
    Own(&'a HostName),
    /// As [`Space::Origin`].
    Origin(&'a HostName, u16),
}

/// Which spaces something is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spaces {
    /// All sites of our own.
    Own,
    /// This one.
    One(Space),
}

impl Space {
    /// The same, without a copy.
    pub const fn borrowed(&self) -> SpaceRef<'_> {
        match self {
            Self::Own(site) => SpaceRef::Own(site),
            Self::Origin(host, port) => SpaceRef::Origin(host, *port),
        }
    }

    /// Whose room on the disk its objects take.
    pub(crate) const fn disk_owner(&self) -> DiskOwner {
        match self {
            Self::Own(_) => DiskOwner::Own,
            Self::Origin(..) => DiskOwner::Another,
        }
    }
}

impl Spaces {
    /// Whether `space` is one of them.
    pub fn include(&self, space: &Space) -> bool {
        match (self, space) {
            (Self::Own, Space::Own(_)) => true,
            (Self::Own, Space::Origin(..)) => false,
            (Self::One(one), space) => one == space,
        }
    }
}

/// `own` and the site's name, or the origin's name and port.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(site) => write!(f, "own {site}"),
            Self::Origin(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// Name of an object. Which of its variants (Vary) a request gets is found from the request's
/// headers, because only a stored response tells by which headers it varies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Whose object.
    pub space: Space,
    /// Scheme and Host as an application of our own is told them; empty for an origin's.
    pub base: Bytes,
    /// Path and query exactly as sent.
    pub target: Bytes,
}

/// The name of an object that lies somewhere else, so that a look-up copies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef<'a> {
    /// As [`ObjectKey::space`].
    pub space: SpaceRef<'a>,
    /// As [`ObjectKey::base`].
    pub base: &'a [u8],
    /// As [`ObjectKey::target`].
    pub target: &'a [u8],
}

impl ObjectKey {
    /// The same, without a copy.
    pub fn borrowed(&self) -> ObjectRef<'_> {
        ObjectRef {
            space: self.space.borrowed(),
            base: &self.base,
            target: &self.target,
        }
    }
}

/// The headers of a request, wherever they lie. The engine implements it for its parsed head, so
/// that a cache hit copies nothing.
pub trait RequestHeaders {
    /// Calls `visit` with the value of each field called `name` (in lower case), in order.
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8]));

    /// Whether there is a field called `name` (in lower case).
    fn has(&self, name: &str) -> bool {
        let mut found = false;
        self.each(name, &mut |_| found = true);
        found
    }
}

impl RequestHeaders for [(Bytes, Bytes)] {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for (field, value) in self {
            if field.eq_ignore_ascii_case(name.as_bytes()) {
                visit(value);
            }
        }
    }
}

impl RequestHeaders for Vec<(Bytes, Bytes)> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.as_slice().each(name, visit);
    }
}
