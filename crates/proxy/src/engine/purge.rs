//! The method PURGE: who may use it, what it means, and where the work is done.
//!
//! ```text
//!  PURGE /news HTTP/1.1                the object at this path, all its variants
//!  PURGE / HTTP/1.1                    everything that carries one of these keys
//!  Surrogate-Key: sport weather
//!  Soft-Purge: 1                       made old instead of removed
//! ```
//!
//! The address of the visitor decides. That of a proxy says nothing about who asked, and a browser
//! asks for whatever page it shows, so a request that came through one of them is refused.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use levee_vocab::{Purge, PurgeError, PurgeKind};

use super::Core;
use super::rescue::Onward;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::connection::Connection;
use crate::fetch::Reply;
use crate::flight::RequestHeaders;
use crate::request::Request;
use crate::response::Plain;

/// Carries out the purges that visitors send. Called on a core: must not block.
pub type PurgeInlet =
    Arc<dyn Fn(Purge) -> Pin<Box<dyn Future<Output = Reply> + Send>> + Send + Sync>;

/// Fields that proxies add, and those that browsers add.
const STRANGERS: [&str; 6] = [
    "forwarded",
    "x-forwarded-for",
    "x-real-ip",
    "via",
    "origin",
    "sec-fetch-site",
];

impl Core {
    /// Carries out a purge, or says why not.
    pub(super) fn purge(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
    ) -> Served {
        let refusal = match (&self.purge, self.fetcher.clone()) {
            (None, _) | (_, None) => 405,
            _ if !self.may_purge(self.visitor(connection, request), request) => 403,
            (Some(inlet), Some(fetcher)) => match purge_of(request) {
                Ok(purge) => {
                    let making = inlet(purge);
                    let waker = Arc::clone(&self.waker);
                    let Ok(waiting) = fetcher.aside(making, waker, visit.token) else {
                        return self.refuse(connection, request, visit);
                    };
                    self.begin_flow(connection, request, visit, None, (waiting, Onward::NOTHING));
                    return Served::Answered;
                }
                Err(error) => {
                    tracing::debug!(peer = %connection.peer, %error, "bad purge");
                    400
                }
            },
        };
        self.answer(connection, request, visit, Work::Plain(Plain::new(refusal)))
    }

    fn may_purge(&self, visitor: IpAddr, request: &Request<'_, '_>) -> bool {
        let is_strange = STRANGERS.iter().any(|name| request.has(name));
        !is_strange && self.sites.may_purge(visitor)
    }
}

fn purge_of(request: &Request<'_, '_>) -> Result<Purge, PurgeError> {
    let mut kind = PurgeKind::Hard;
    request.each("soft-purge", &mut |value| {
        if value.trim_ascii() == b"1" {
            kind = PurgeKind::Soft;
        }
    });
    let mut tags = Vec::new();
    request.each("surrogate-key", &mut |value| {
        tags.extend_from_slice(value);
        tags.push(b' ');
    });
    match tags.is_empty() {
        true => Purge::url(request.target, kind),
        false => Purge::tags(std::str::from_utf8(&tags).unwrap_or_default(), kind),
    }
}
