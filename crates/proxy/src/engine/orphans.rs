//! What visitors of an origin get that has died, and that permits us to go on (M3).
//!
//! What we hold is shown, however old it is by now, unless its origin wants to be asked each time.
//! Nothing is fetched: nobody is there, and a dead host would cost each visitor the time that it
//! takes to find that out. What is not held is away for a while, and says so. The limits of our
//! operator bind as before: nobody but we could keep to them now, and there is no origin to which
//! those beyond them could be sent, so they are told to come again.

use std::sync::Arc;

use levee_control::{OriginPhase, OriginRoute};

use super::Core;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::Kind;
use crate::connection::Connection;
use crate::flight::{ObjectRef, SpaceRef};
use crate::request::{LowerName, Request};
use crate::response::{Closing, Plain, push_number, push_status};

/// When to try again, in seconds: an origin that restarts is back within a minute or much later.
const RETRY: &str = "Retry-After: 60\r\nCache-Control: no-store\r\n";
const AWAY: &str = "This site cannot be reached at the moment. Others show what they have of it \
    meanwhile, and this page is not among that. Please try again in a minute.\n";

const CROWDED: &str = "This site cannot be reached at the moment. Others show what they have of it \
    meanwhile, and have no room for more. Please try again in a minute.\n";

const LEFT: &str = "This server no longer carries this site, but its name still leads here. \
    Please try again in a minute.\n";

/// What a visitor gets who comes by the own name of an origin that we rescue no more: to send him
/// to that name would send him here again, and a page of ours is not what he asked for.
pub(super) fn left() -> Work {
    Work::Plain(Plain::saying(503, RETRY.into(), LEFT))
}

/// Whether `request` names the origin itself, not the alias that we gave out for it.
pub(super) fn is_own_name(origin: &OriginRoute, request: &Request<'_, '_>) -> bool {
    LowerName::of(request.host).as_str() == origin.origin.host.as_str()
}

/// Whether nobody is there to be asked.
pub(super) fn is_orphan(origin: &OriginRoute) -> bool {
    match origin.phase {
        OriginPhase::Orphaned { .. } => true,
        OriginPhase::Live
        | OriginPhase::Ending { .. }
        | OriginPhase::Restored { .. }
        | OriginPhase::Expired { .. } => false,
    }
}

impl Core {
    /// What a request for a dead origin gets.
    pub(super) fn orphaned(
        &self,
        origin: &Arc<OriginRoute>,
        request: &Request<'_, '_>,
        kind: Kind,
    ) -> Work {
        let web = &origin.origin;
        let object = ObjectRef {
            space: SpaceRef::Origin(&web.host, web.port),
            base: b"",
            target: request.target.as_bytes(),
        };
        let is_for_all = request.is_get_or_head() && request.fields.authorization.is_none();
        let fetcher = self.fetcher.as_ref().filter(|_| is_for_all);
        let held = fetcher.and_then(|fetcher| fetcher.lookup_held(object, request, self.now));
        match (held, kind) {
            (Some(stored), _) => Self::stored_work(stored, request, Some(origin)),
            // Another rescue server has its own way to say so.
            (None, Kind::Home { .. }) => Work::Plain(Plain::new(504)),
            (None, _) => Work::Plain(Plain::saying(503, RETRY.into(), AWAY)),
        }
    }

    /// What a visitor of a dead origin gets for whom we have no room.
    pub(super) fn refuse_orphans_visitor(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        kind: Kind,
    ) -> Served {
        let mut head = self.pool.take();
        push_status(503, &mut head);
        head.extend_from_slice(RETRY.as_bytes());
        head.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: ");
        push_number(CROWDED.len() as u64, &mut head);
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(self.date.line());
        head.extend_from_slice(Closing::Close.line());
        head.extend_from_slice(b"\r\n");
        if request.method != "HEAD" {
            head.extend_from_slice(CROWDED.as_bytes());
        }
        self.refuse_with(connection, request, visit, (kind, head, 503))
    }
}
