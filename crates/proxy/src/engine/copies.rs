//! An origin has a copy of an object made here, at its alias or under its name (H3).
//!
//! ```text
//!  PUT /page HTTP/1.1            Host: the alias             levee-fetch: the key of the rescue
//!    Content-Type: message/http                  the response follows, as it would go to a visitor
//!    If-None-Match: "v-relative"                 replaces what is held, unless it is this version
//!    levee-copy: pull                            it is to be fetched, from the object's home first
//! ```
//!
//! Only who shows the key of this very rescue is heard, and only while the rescue lasts; everybody
//! else is told 403, whatever is wrong. A visitor's own PUT is none of these and goes back to the
//! origin as ever.

use std::sync::Arc;

use bytes::Bytes;
use levee_control::{OriginPhase, OriginRoute};

use super::Core;
use super::challenge::is_challenge;
use super::rescue::{Onward, UPLOAD_BYTES, source_of};
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::Kind;
use crate::connection::Connection;
use crate::flight::{Miss, RequestHeaders, Space, body_channel};
use crate::flow::{Tunnel, Upload};
use crate::request::{BodyLength, Request};
use crate::response::Plain;
use crate::router::Route;

/// Says that the object is to be fetched.
const COPY_FIELD: &str = "levee-copy";
/// The type of a response that is a body itself (RFC 9112 section 10.1).
const MESSAGE: &[u8] = b"message/http";

/// How a copy is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Here it is.
    Push,
    /// Fetch it.
    Pull,
}

fn wish(request: &Request<'_, '_>) -> Option<Wish> {
    if request.method != "PUT" {
        return None;
    }
    let mut wish = None;
    request.each("content-type", &mut |value| {
        let kind = value.split(|&byte| byte == b';').next();
        if kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(MESSAGE)) {
            wish = Some(Wish::Push);
        }
    });
    request.each(COPY_FIELD, &mut |value| {
        if value.trim_ascii() == b"pull" {
            wish = Some(Wish::Pull);
        }
    });
    wish
}

/// Whether `request` is for a copy of something of `origin`, and by `origin`.
pub(super) fn is_copy_for(origin: &OriginRoute, request: &Request<'_, '_>) -> bool {
    let shows_key = || match (&origin.key, request.fields.fetch_key) {
        (Some(key), Some(shown)) => key.matches(shown),
        (None, _) | (_, None) => false,
    };
    origin.phase == OriginPhase::Live && wish(request).is_some() && shows_key()
}

/// What a request for a copy gets; none where it is no such request.
pub(super) fn copy_work(route: &Route, request: &Request<'_, '_>, kind: Kind) -> Option<Work> {
    let wish = wish(request)?;
    let origin = match route {
        Route::Rescued(origin) if matches!(kind, Kind::Copy { .. }) => origin,
        Route::Rescued(_) | Route::Restored(_) | Route::Expired(_) => {
            return Some(Work::Plain(Plain::new(403)));
        }
        // Our own application may have a use for it.
        Route::Own(_) | Route::Nobody => return None,
    };
    let is_page = request.target.starts_with('/')
        && !request.target.starts_with("/.levee/")
        && !is_challenge(request);
    Some(match (is_page, wish, request.body) {
        (false, ..) => Work::Plain(Plain::new(409)),
        (true, Wish::Pull, BodyLength::None)
        | (true, Wish::Push, BodyLength::Known(_) | BodyLength::Chunked) => {
            Work::Copy(Arc::clone(origin))
        }
        (true, Wish::Pull, BodyLength::Known(_) | BodyLength::Chunked)
        | (true, Wish::Push, BodyLength::None) => Work::Plain(Plain::new(400)),
    })
}

impl Core {
    /// Begins to take a copy in; the origin is answered when it is known what became of it.
    pub(super) fn take_copy(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        origin: &OriginRoute,
    ) -> Served {
        let Some(fetcher) = self.fetcher.clone() else {
            return self.refuse(connection, request, visit);
        };
        let (upload, body) = match request.body {
            BodyLength::None => (None, None),
            BodyLength::Known(_) | BodyLength::Chunked => {
                let waker = Arc::clone(&self.waker);
                let (sender, receiver) = body_channel(UPLOAD_BYTES, None, waker, visit.token);
                (Some(Upload::new(sender)), Some(receiver))
            }
        };
        let space = Space::Origin(origin.origin.host.clone(), origin.origin.port);
        let copy = Miss {
            key: self.key(connection, request, space),
            method: http::Method::GET,
            headers: headers(request),
            visitor: None,
            source: source_of(origin, visit.kind),
            body,
        };
        let (version, waker) = (version(request), Arc::clone(&self.waker));
        let Ok(waiting) = fetcher.take_copy(copy, version, waker, visit.token) else {
            return self.refuse(connection, request, visit);
        };
        let tunnel = Tunnel::None;
        let to = Onward { upload, tunnel };
        self.begin_flow(connection, request, visit, None, (waiting, to));
        Served::Answered
    }
}

/// The ETag of the version that is pushed, where another one must not stay.
fn version(request: &Request<'_, '_>) -> Option<Bytes> {
    let mut version = None;
    request.each("if-none-match", &mut |value| {
        version = Some(Bytes::copy_from_slice(value.trim_ascii()));
    });
    version
}

/// The fields by which the response was chosen; all others are about the push itself.
fn headers(request: &Request<'_, '_>) -> Vec<(Bytes, Bytes)> {
    let mut headers = Vec::new();
    request.each("accept-encoding", &mut |value| {
        let name = Bytes::from_static(b"accept-encoding");
        headers.push((name, Bytes::copy_from_slice(value)));
    });
    headers
}
