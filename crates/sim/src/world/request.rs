//! The requests that are under way, and what became of those that are not.

use std::time::Duration;

use levee_control::{Redirectability, Visitor};
use levee_vocab::{HostName, Timestamp};

use crate::world::SiteId;
use crate::world::way_back::Word;

/// Number of a request while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub usize);

/// Number of a crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrowdId(pub usize);

/// What a visitor asks for next when this request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Single,
    /// The rest of the crowd's page, from wherever the first object came: relative links stay
    /// there.
    Page,
    /// The rest of the crowd's page, by the origin's own name.
    Probe,
}

/// One request of a visitor, through all its redirects.
#[derive(Clone, Debug)]
pub struct Request {
    /// The crowd that it belongs to.
    pub crowd: CrowdId,
    /// The site whose object it is.
    pub origin: SiteId,
    /// Number of the file there.
    pub file: usize,
    /// Bytes of the whole response.
    pub bytes: u64,
    /// Whose it is.
    pub visitor: Visitor,
    /// Whether a rescue server may answer it.
    pub redirectability: Redirectability,
    /// What follows.
    pub role: Role,
    /// The name that it asks for now.
    pub host: HostName,
    /// When the visitor began.
    pub started: Timestamp,
    /// When he leaves if he has not been answered.
    pub patience: Duration,
    /// When the site put it aside to wait for capacity.
    pub parked: Option<Timestamp>,
    /// Redirects followed so far.
    pub hops: u8,
    /// What its URL says of them.
    pub word: Word,
}

/// How a response looks to the visitor.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The object.
    Whole,
    /// Ask this name instead, with this word.
    Redirect(HostName, Word),
    /// 503: come back later.
    Refused,
    /// Any other error.
    Broken,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Answered in time.
    Answered,
    /// Refused with 503.
    Refused,
    /// Answered with an error, or not at all, or too late.
    Failed,
}

/// All requests under way.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Option<Request>>,
    free: Vec<usize>,
}

impl Requests {
    /// Takes in a request.
    pub fn begin(&mut self, request: Request) -> RequestId {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(request);
                RequestId(slot)
            }
            None => {
                self.slots.push(Some(request));
                RequestId(self.slots.len() - 1)
            }
        }
    }

    /// The request, if it lives.
    pub fn find(&self, id: RequestId) -> Option<&Request> {
        self.slots.get(id.0)?.as_ref()
    }

    /// The request, if it lives, to change it.
    pub fn find_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slots.get_mut(id.0)?.as_mut()
    }

    /// Takes out a request whose fate is known.
    pub fn end(&mut self, id: RequestId) -> Option<Request> {
        let request = self.slots.get_mut(id.0)?.take()?;
        self.free.push(id.0);
        Some(request)
    }

    /// Requests under way.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
