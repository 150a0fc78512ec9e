//! Answers from the cache, and misses: for origins that we rescue, and for an application of our
//! own.

use std::sync::Arc;

use bytes::Bytes;
use levee_control::{Comeback, OriginRoute};
use levee_observe::CacheResult;
use levee_vocab::Misses;

use super::Core;
use super::challenge::is_challenge;
use super::orphans::is_orphan;
use super::serve::{Served, Visit};
use super::visitor::Sent;
use super::way_back::Turn;
use super::work::{Work, cut, knows_chunks, push_range, sent_bytes, unsatisfiable};
use crate::answer::{Answer, Body, FileHandle, Kind};
use crate::cache::{self, Found, Freshness, KeptBy, Stored};
use crate::cacheability::Wish;
use crate::chunked::Incoming;
use crate::connection::Connection;
use crate::connection_fields::welcomes_trailers;
use crate::fetch::HOME_LINE;
use crate::files::{Conditions, Judgement, Validators, judge};
use crate::flight::{
    Company, Miss, ObjectKey, ObjectRef, Place, Purpose, Reading, RequestHeaders, Source, Space,
    SpaceRef, push_hit, tunnel_channel,
};
use crate::flow::{Early, Flow, FlowStart, TagLine, Trailing, Tunnel, Upload, Wanted};
use crate::redirect::SiteUrl;
use crate::request::{BodyLength, Request, Upgrade, Version};
use crate::response::{Plain, push_number, push_status};
use crate::site::{Site, Upstream};

/// Most of a request body that waits for its upstream.
pub(super) const UPLOAD_BYTES: usize = 256 * 1024;
/// What a head weighs beside the lines that came with the object.
const HEAD_BYTES: u64 = 200;

/// What must be fetched.
#[derive(Debug)]
pub(super) struct Wanting {
    pub source: Source,
    /// Whose object it is.
    pub space: Space,
    /// Who may keep it, as far as is known.
    pub kept_by: KeptBy,
    /// The origin that we rescue, where it is one's.
    pub origin: Option<Arc<OriginRoute>>,
}

/// What goes from the visitor to its upstream after the head.
pub(super) struct Onward {
    pub upload: Option<Upload>,
    pub tunnel: Tunnel,
}

impl Onward {
    /// Nothing.
    pub const NOTHING: Self = Self {
        upload: None,
        tunnel: Tunnel::None,
    };
}

impl Core {
    /// What a request at an alias, or by the name of an origin, gets.
    pub(super) fn rescued(
        &mut self,
        origin: &Arc<OriginRoute>,
        request: &Request<'_, '_>,
        (kind, comeback): (Kind, Comeback),
    ) -> Work {
        if request.fields.service_worker.is_some() {
            // It would outlive the rescue, and stand between its visitors and the origin.
            return Work::Plain(Plain::new(403));
        }
        if is_orphan(origin) {
            return self.orphaned(origin, request, kind);
        }
        let is_another = matches!(kind, Kind::Home { .. });
        let needs_origin = !request.is_get_or_head() || request.fields.authorization.is_some();
        let back = || Work::Back {
            status: 307,
            to: SiteUrl::of(origin, request.fields.came_by),
            word: None,
        };
        if needs_origin || request.target == "*" || self.fetcher.is_none() {
            return match is_another {
                // It is never led anywhere else.
                true => Work::Plain(Plain::new(421)),
                false => back(),
            };
        }
        let web = &origin.origin;
        let object = ObjectRef {
            space: SpaceRef::Origin(&web.host, web.port),
            base: b"",
            target: request.target.as_bytes(),
        };
        if let Some(work) = self.cached(object, request, Some(origin))
            && (!is_another || work.is_fresh(self.now))
        {
            return work;
        }
        if is_another && Wish::of(request).only_if_cached {
            return Work::Plain(Plain::new(504));
        }
        if origin.misses == Misses::SendBack
            && let Some(work) = self.sent_back(origin, request, (kind, comeback))
        {
            return work;
        }
        let mut source = source_of(origin, kind);
        if is_challenge(request) {
            // An authority that came here by the origin's name: only the origin has its answer.
            source.company = Company::Alone;
        }
        let wanting = Wanting {
            source,
            space: Space::Origin(web.host.clone(), web.port),
            kept_by: KeptBy::Others,
            origin: Some(Arc::clone(origin)),
        };
        Work::Miss {
            wanting: Box::new(wanting),
            bytes: self.usual_bytes as u64,
        }
    }

    /// What a request for an application of our own gets.
    pub(super) fn upstream(
        &self,
        connection: &Connection,
        (site, upstream): (&Site, &Upstream),
        request: &Request<'_, '_>,
    ) -> Work {
        if request.method == "TRACE" {
            return Work::Plain(Plain::with(405, PASSED_ON.into()));
        }
        if self.fetcher.is_none() {
            return Work::Plain(Plain::new(502));
        }
        let site = &site.name.host;
        let mut kept_by = KeptBy::Others;
        if request.is_get_or_head() && request.upgrade == Upgrade::None {
            let hop = self.hop(connection, request);
            let found = hop.with_base(&Sent(request.headers), |base| {
                let object = ObjectRef {
                    space: SpaceRef::Own(site),
                    base,
                    target: request.target.as_bytes(),
                };
                let fetcher = self.fetcher.as_ref();
                fetcher.map(|fetcher| fetcher.look(object, request, self.now))
            });
            match found {
                Some(Found::Object(stored)) => return Self::stored_work(stored, request, None),
                Some(Found::Passes(by)) => kept_by = by,
                Some(Found::Nothing) | None => {}
            }
        }
        //= RFC 9111 section 5.2.1.7: 504 where nothing is stored. It makes no work, so it is done
        //= whatever the settings say of visitors' wishes.
        if Wish::of(request).only_if_cached {
            return Work::Plain(Plain::new(504));
        }
        let authority = upstream.authority.as_deref().unwrap_or(request.authority);
        let source = Source {
            place: Place::Upstreams(Arc::clone(&upstream.servers)),
            authority: authority.to_owned(),
            key: None,
            ttl: std::time::Duration::ZERO,
            purpose: Purpose::Upstream,
            company: Company::Alone,
        };
        let wanting = Wanting {
            source,
            space: Space::Own(site.clone()),
            kept_by,
            origin: None,
        };
        Work::Miss {
            wanting: Box::new(wanting),
            bytes: self.usual_bytes as u64,
        }
    }

    fn cached(
        &self,
        object: ObjectRef<'_>,
        request: &Request<'_, '_>,
        origin: Option<&Arc<OriginRoute>>,
    ) -> Option<Work> {
        let fetcher = self.fetcher.as_ref()?;
        let stored = fetcher.lookup(object, request, self.now)?;
        Some(Self::stored_work(stored, request, origin))
    }

    /// An object that is to be sent, or what of it answers the request.
    pub(super) fn stored_work(
        stored: Arc<Stored>,
        request: &Request<'_, '_>,
        origin: Option<&Arc<OriginRoute>>,
    ) -> Work {
        let judgement = judgement_of(&stored, request);
        let head = stored.head.lines.len() as u64 + HEAD_BYTES;
        Work::Stored {
            bytes: head + sent_bytes(&judgement, stored.body.length(), request),
            judgement,
            stored,
            origin: origin.cloned(),
        }
    }

    /// A cached object on its way out.
    pub(super) fn stored_answer(
        &mut self,
        request: &Request<'_, '_>,
        visit: &Visit,
        stored: &Arc<Stored>,
        judgement: Judgement,
        origin: Option<&OriginRoute>,
    ) -> Answer {
        let size = stored.body.length();
        let (status, start, end) = match judgement {
            Judgement::Whole => (stored.head.status.as_u16(), 0, size),
            Judgement::Part { start, end } => (206, start, end),
            Judgement::Parts(ranges) => {
                let mut lines = Vec::with_capacity(512);
                self.push_stored_lines(request, visit, stored, origin, &mut lines);
                return self.stored_parts(visit, stored, &lines, ranges);
            }
            Judgement::NotModified => (304, 0, 0),
            Judgement::Failed => return self.plain(request, visit, &Plain::new(412)),
            Judgement::Unsatisfiable => return self.plain(request, visit, &unsatisfiable(size)),
        };
        let mut head = self.pool.take();
        push_status(status, &mut head);
        self.push_stored_lines(request, visit, stored, origin, &mut head);
        if !matches!(status, 206 | 304) {
            self.sign_stored(request, visit, stored, &mut head);
        }
        match status {
            206 => push_range(start, end, size, &mut head),
            204 | 304 => {}
            _ => {
                head.extend_from_slice(b"content-length: ");
                push_number(size, &mut head);
                head.extend_from_slice(b"\r\n");
            }
        }
        head.extend_from_slice(visit.closing.line());
        head.extend_from_slice(b"\r\n");
        let body = match &stored.body {
            _ if request.method == "HEAD" || start == end => Body::Empty,
            cache::Body::Memory(bytes) => Body::Memory(cut(bytes, start, end)),
            cache::Body::File { file, .. } => Body::File {
                file: FileHandle::Stored(Arc::clone(file)),
                offset: start,
                left: end - start,
            },
        };
        Answer::new(head, body, visit.kind, status)
    }

    /// The lines of a cached object, but for those that say how it is framed.
    fn push_stored_lines(
        &self,
        request: &Request<'_, '_>,
        visit: &Visit,
        stored: &Stored,
        origin: Option<&OriginRoute>,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&stored.head.lines);
        push_hit(&stored.head, self.now, out);
        out.extend_from_slice(b"age: ");
        push_number(stored.age(self.now).as_secs(), out);
        out.extend_from_slice(b"\r\n");
        push_company_lines(request, visit, origin, out);
        if stored.head.reading == Reading::Unsaid && shows_alias(visit.kind) {
            push_reading_line(request, origin, out);
        }
        match tag_line(visit.kind) {
            TagLine::Shown => stored.head.tags.push_line(out),
            TagLine::Hidden => {}
        }
    }

    /// Begins to fetch what nobody here has.
    pub(super) fn fetch(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        wanting: Wanting,
    ) -> Served {
        let Wanting {
            source,
            space,
            kept_by: _,
            origin,
        } = wanting;
        let origin = origin.as_deref();
        let Some(fetcher) = self.fetcher.clone() else {
            return self.refuse(connection, request, visit);
        };
        let Ok(method) = http::Method::from_bytes(request.method.as_bytes()) else {
            return self.answer(connection, request, visit, Work::Plain(Plain::new(501)));
        };
        let is_upload = source.purpose == Purpose::Upstream && request.body != BodyLength::None;
        let is_tunnel =
            source.purpose == Purpose::Upstream && request.upgrade == Upgrade::WebSocket;
        let mut tunnel = Tunnel::None;
        let (upload, body) = match is_upload {
            false if is_tunnel => {
                let waker = Arc::clone(&self.waker);
                let (sender, receiver) = tunnel_channel(UPLOAD_BYTES, waker, visit.token);
                tunnel = Tunnel::Asked(Upload::new(sender));
                (None, Some(receiver))
            }
            true => {
                let length = match request.body {
                    BodyLength::Known(bytes) => Some(bytes),
                    BodyLength::None | BodyLength::Chunked => None,
                };
                let waker = Arc::clone(&self.waker);
                let (sender, receiver) =
                    crate::flight::body_channel(UPLOAD_BYTES, length, waker, visit.token);
                (Some(Upload::new(sender)), Some(receiver))
            }
            false => (None, None),
        };
        let miss = Miss {
            key: self.key(connection, request, space),
            method,
            headers: self.headers(connection, request, source.purpose),
            visitor: self.addresses(connection, request, &source.place),
            source,
            body,
        };
        let Ok(waiting) = fetcher.ask(miss, Arc::clone(&self.waker), visit.token) else {
            return self.turn_away(connection, request, visit, Turn::missing(origin));
        };
        match waiting.stored() {
            Some(stored) => self.found(connection, request, visit, origin, &stored),
            None => {
                let to = Onward { upload, tunnel };
                self.begin_flow(connection, request, visit, origin, (waiting, to));
            }
        }
        Served::Answered
    }

    /// What the object of `space` that is asked for is called.
    pub(super) fn key(
        &self,
        connection: &Connection,
        request: &Request<'_, '_>,
        space: Space,
    ) -> ObjectKey {
        let base = match space {
            Space::Origin(..) => Bytes::new(),
            Space::Own(_) => {
                let hop = self.hop(connection, request);
                hop.with_base(&Sent(request.headers), Bytes::copy_from_slice)
            }
        };
        ObjectKey {
            space,
            base,
            target: Bytes::copy_from_slice(request.target.as_bytes()),
        }
    }

    /// Answers with an object that is in the cache all the same: it came a moment ago, or it is old
    /// and shown while somebody fetches a newer one.
    fn found(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        origin: Option<&OriginRoute>,
        stored: &Arc<Stored>,
    ) {
        let judgement = judgement_of(stored, request);
        let answer = self.stored_answer(request, visit, stored, judgement, origin);
        let mut record = self.record(connection, request, visit.kind, self.now.since(visit.began));
        if let Some(record) = &mut record {
            record.cache = part_of_cache(stored.freshness(self.now));
        }
        self.begin(connection, answer, visit, record);
    }

    pub(super) fn begin_flow(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        origin: Option<&OriginRoute>,
        (waiting, to): (crate::flight::Waiting, Onward),
    ) {
        let mut lines = Vec::new();
        push_company_lines(request, visit, origin, &mut lines);
        let mut reading = Vec::new();
        if shows_alias(visit.kind) {
            push_reading_line(request, origin, &mut reading);
        }
        let flow = Flow::new(FlowStart {
            waiting,
            reading,
            way_back: origin.and_then(|origin| self.way_back(origin, request, visit)),
            upload: to.upload,
            tunnel: to.tunnel,
            wanted: Wanted::of(request),
            lines,
            closing: visit.closing,
            expectation: request.expectation(),
            is_head: request.method == "HEAD",
            knows_chunks: knows_chunks(request),
            early: match request.version {
                Version::Http10 => Early::Dropped,
                Version::Http11 | Version::Http2 => Early::PassedOn,
            },
            trailing: trailing(request),
            tags: tag_line(visit.kind),
        });
        let mut answer = Answer::new(self.pool.take(), Body::Empty, visit.kind, 0);
        answer.flow = Some(Box::new(flow));
        let record = self.record(connection, request, visit.kind, self.now.since(visit.began));
        self.begin(connection, answer, visit, record);
        if !connection.incoming.is_done() && request.body == BodyLength::None {
            connection.incoming = Incoming::Done;
        }
    }
}

/// What an application's site passes on; only the application knows which of these it takes.
//= RFC 9110 section 15.5.6: "The origin server MUST generate an Allow header field in a 405
// response"
const PASSED_ON: &str = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n";

/// Whether trailers go on to the visitor.
fn trailing(request: &Request<'_, '_>) -> Trailing {
    let mut welcome = false;
    request.each("te", &mut |value| welcome |= welcomes_trailers(value));
    match request.version {
        // Each response may have them there (RFC 9113 section 8.1).
        Version::Http2 => Trailing::PassedOn,
        Version::Http11 if welcome => Trailing::PassedOn,
        Version::Http11 | Version::Http10 => Trailing::Dropped,
    }
}

/// Where what an origin has is fetched.
pub(super) fn source_of(origin: &OriginRoute, kind: Kind) -> Source {
    Source {
        place: Place::Address(origin.address),
        authority: origin.origin.to_string(),
        key: origin.key,
        ttl: origin.ttl,
        purpose: Purpose::Rescue,
        company: company(origin, kind),
    }
}

/// Who else has a part in answering a request of this kind for an origin.
fn company(origin: &OriginRoute, kind: Kind) -> Company {
    match &origin.homes {
        homes if matches!(kind, Kind::Home { .. }) => Company::ForAnother(homes.clone()),
        Some(homes) => Company::WithHomes(Arc::clone(homes)),
        None => Company::Alone,
    }
}

/// Whether the tags of a response are shown: to those who must know them when we purge.
const fn tag_line(kind: Kind) -> TagLine {
    match kind {
        Kind::Fetch | Kind::Home { .. } => TagLine::Shown,
        Kind::Own
        | Kind::Redirect { .. }
        | Kind::Rescue { .. }
        | Kind::Copy { .. }
        | Kind::Look
        | Kind::Refusal
        | Kind::Withheld
        | Kind::PuttingOff => TagLine::Hidden,
    }
}

/// What of an object answers `request`.
fn judgement_of(stored: &Stored, request: &Request<'_, '_>) -> Judgement {
    let conditions = Conditions::for_cache(request);
    match stored.head.status.as_u16() {
        // Most ask for the whole, and looking for validators is dear.
        200 if conditions.is_empty() => Judgement::Whole,
        200 => {
            let has = Validators {
                etag: stored.head.header("etag"),
                modified: stored.head.header("last-modified"),
                date: stored.head.header("date"),
            };
            judge(conditions, has, stored.body.length())
        }
        _ => Judgement::Whole,
    }
}

/// What part the cache has in an answer from it.
pub(super) const fn part_of_cache(freshness: Freshness) -> CacheResult {
    match freshness {
        Freshness::Fresh => CacheResult::Hit,
        Freshness::Spared | Freshness::Shown | Freshness::Stale => CacheResult::Stale,
    }
}

/// What an answer for an origin says of itself: to another rescue server that it comes from the
/// object's home, to visitors where the page truly lives.
fn push_company_lines(
    request: &Request<'_, '_>,
    visit: &Visit,
    origin: Option<&OriginRoute>,
    out: &mut Vec<u8>,
) {
    match visit.kind {
        Kind::Home { .. } => out.extend_from_slice(HOME_LINE),
        kind if shows_alias(kind) => push_alias_lines(request, origin, out),
        Kind::Copy { .. }
        | Kind::Look
        | Kind::Own
        | Kind::Fetch
        | Kind::Redirect { .. }
        | Kind::Rescue { .. }
        | Kind::Refusal
        | Kind::Withheld
        | Kind::PuttingOff => {}
    }
}

/// Whether an answer of this kind goes to a visitor, who may have asked by an alias.
const fn shows_alias(kind: Kind) -> bool {
    match kind {
        Kind::Home { .. } | Kind::Copy { .. } | Kind::Look => false,
        Kind::Own
        | Kind::Fetch
        | Kind::Redirect { .. }
        | Kind::Rescue { .. }
        | Kind::Refusal
        | Kind::Withheld
        | Kind::PuttingOff => true,
    }
}

/// Scripts of the origin's own pages may read what they were redirected to: fonts, modules and
/// data are fetched so. Nobody else's may, unless the origin says so itself; above all not those of
/// another origin's alias.
fn push_reading_line(request: &Request<'_, '_>, origin: Option<&OriginRoute>, out: &mut Vec<u8>) {
    let Some(origin) = origin.filter(|origin| is_at_alias(request, origin)) else {
        return;
    };
    out.extend_from_slice(b"access-control-allow-origin: ");
    SiteUrl::of(origin, request.fields.came_by).push(out);
    out.extend_from_slice(b"\r\n");
}

/// Whether a visitor asks for an origin by its alias.
fn is_at_alias(request: &Request<'_, '_>, origin: &OriginRoute) -> bool {
    let own = origin.origin.host.as_str();
    !request.host.eq_ignore_ascii_case(own)
}

/// What a page under an alias says of itself: where it truly lives, and that searchers should look
/// there. By its own name the page is at home.
fn push_alias_lines(request: &Request<'_, '_>, origin: Option<&OriginRoute>, out: &mut Vec<u8>) {
    let Some(origin) = origin.filter(|origin| is_at_alias(request, origin)) else {
        return;
    };
    out.extend_from_slice(b"Link: <");
    SiteUrl::of(origin, request.fields.came_by).push(out);
    for byte in request.target.bytes() {
        // Not allowed in a URL, but sent by some: it must not end the link early.
        match byte {
            b'<' | b'>' | b'"' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
            _ => out.push(byte),
        }
    }
    // Pages of two aliases belong to one site, as browsers count; this keeps them in two processes
    // and out of each other's reach, whatever they make of document.domain.
    out.extend_from_slice(
        b">; rel=\"canonical\"\r\nX-Robots-Tag: noindex\r\nOrigin-Agent-Cluster: ?1\r\n",
    );
}
