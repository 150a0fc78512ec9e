//! What a request would get, found out before the Gate is asked and before anything is done.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use levee_control::{Comeback, OriginRoute};
use levee_observe::CacheResult;
use levee_vocab::{LinkId, Timestamp};
use levee_wire::BackWord;

use super::Core;
use super::copies::copy_work;
use super::orphans::{is_own_name, left};
use super::rescue::{Wanting, part_of_cache};
use super::serve::{Served, Visit};
use crate::answer::{Answer, Body, FileHandle, Kind};
use crate::cache::{KeptBy, Stored};
use crate::connection::Connection;
use crate::files::{
    Accepted, Compressed, Conditions, Contents, FileEntry, Found, Job, Judgement, Queued,
    Validators, judge,
};
use crate::redirect::{Return, SiteUrl, write_back};
use crate::request::{Expectation, Request, Version};
use crate::response::{Plain, push_number, push_status};
use crate::router::Route;
use crate::site::Content;

/// See the head of this file.
#[derive(Debug)]
pub(super) enum Work {
    /// A short answer of ours.
    Plain(Plain),
    /// A file, or a part of it.
    File {
        entry: Rc<FileEntry>,
        judgement: Judgement,
        bytes: u64,
    },
    /// An object of the cache, or a part of it.
    Stored {
        stored: Arc<Stored>,
        judgement: Judgement,
        origin: Option<Arc<OriginRoute>>,
        bytes: u64,
    },
    /// What a certificate authority is shown.
    Proof(Arc<str>),
    /// A redirect of the same to HTTPS.
    ToHttps { site: usize, port: u16 },
    /// Something that must be fetched.
    Miss { wanting: Box<Wanting>, bytes: u64 },
    /// A redirect to the origin.
    Back {
        status: u16,
        to: SiteUrl,
        word: Option<BackWord>,
    },
    /// Access-log lines that a rescue server hands over.
    HandOver(LinkId),
    /// Objects are to be purged.
    Purge,
    /// An origin has a copy made here.
    Copy(Arc<OriginRoute>),
}

/// What a short answer weighs, about.
const PLAIN_BYTES: u64 = 220;
/// What Date, Connection and the like add to a head.
const LATE_LINES_BYTES: u64 = 64;
const METHODS: &str = "Allow: GET, HEAD, OPTIONS\r\n";

impl Work {
    /// Size of the whole response.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::Plain(_)
            | Self::Proof(_)
            | Self::Back { .. }
            | Self::ToHttps { .. }
            | Self::HandOver(_)
            | Self::Copy(_)
            | Self::Purge => PLAIN_BYTES,
            Self::File { bytes, .. } | Self::Stored { bytes, .. } | Self::Miss { bytes, .. } => {
                *bytes
            }
        }
    }

    /// Whether it waits its turn when capacity is short.
    pub const fn is_asked(&self) -> bool {
        match self {
            Self::Plain(_) | Self::File { .. } | Self::Stored { .. } | Self::Miss { .. } => true,
            Self::ToHttps { .. } => true,
            Self::Proof(_)
            | Self::Back { .. }
            | Self::HandOver(_)
            | Self::Purge
            | Self::Copy(_) => false,
        }
    }

    /// What part the cache has in it, as far as is known before a fetch.
    fn part_of_cache(&self, now: Timestamp) -> CacheResult {
        match self {
            Self::Stored { stored, .. } => part_of_cache(stored.freshness(now)),
            Self::Plain(_)
            | Self::Proof(_)
            | Self::File { .. }
            | Self::Miss { .. }
            | Self::ToHttps { .. }
            | Self::Back { .. }
            | Self::HandOver(_)
            | Self::Copy(_)
            | Self::Purge => CacheResult::NotAsked,
        }
    }

    /// Whether it is an object of the cache that is not old.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.part_of_cache(now) == CacheResult::Hit
    }

    /// Whether it must be fetched.
    pub const fn is_miss(&self) -> bool {
        match self {
            Self::Miss { .. } => true,
            Self::Plain(_)
            | Self::Proof(_)
            | Self::File { .. }
            | Self::Stored { .. }
            | Self::ToHttps { .. }
            | Self::Back { .. }
            | Self::HandOver(_)
            | Self::Copy(_)
            | Self::Purge => false,
        }
    }

    /// Whether nobody may keep what it needs, as far as is known.
    pub fn is_unkept(&self) -> bool {
        matches!(self, Self::Miss { wanting, .. } if wanting.kept_by == KeptBy::Nobody)
    }

    /// Whether a rescue server could answer it as well, and more than the redirect is saved. What
    /// nobody may keep it would fetch through our link for each visitor: then the redirect is added
    /// and nothing saved.
    pub fn is_shareable(&self) -> bool {
        let is_body = |judgement: &Judgement| match judgement {
            Judgement::Whole | Judgement::Part { .. } | Judgement::Parts(_) => true,
            Judgement::Failed | Judgement::NotModified | Judgement::Unsatisfiable => false,
        };
        match self {
            Self::File { judgement, .. } | Self::Stored { judgement, .. } => is_body(judgement),
            Self::Miss { wanting, .. } => wanting.kept_by == KeptBy::Others,
            Self::Plain(_)
            | Self::Proof(_)
            | Self::ToHttps { .. }
            | Self::Back { .. }
            | Self::HandOver(_)
            | Self::Copy(_)
            | Self::Purge => false,
        }
    }
}

impl Core {
    /// What `request` would get.
    pub(super) fn work(
        &mut self,
        connection: &Connection,
        route: &Route,
        request: &Request<'_, '_>,
        (kind, comeback): (Kind, Comeback),
    ) -> Work {
        if request.method == "CONNECT" {
            return Work::Plain(Plain::new(501));
        }
        if request.expectation() == Expectation::Odd {
            return Work::Plain(Plain::new(417));
        }
        // We are a home to those who show the key. Whoever else asks is better off with the origin.
        if request.fields.home_key.is_some() && !matches!(kind, Kind::Home { .. }) {
            return Work::Plain(Plain::new(421));
        }
        if let Some(proof) = self.proof(request) {
            return Work::Proof(proof);
        }
        if let Some(work) = copy_work(route, request, kind) {
            return work;
        }
        match route {
            Route::Own(_) if request.target.starts_with("/.levee/") => self.internal(request),
            Route::Own(_) if request.method == "PURGE" => Work::Purge,
            Route::Own(site) => match self.https_port(request, kind) {
                Some(port) => Work::ToHttps { site: *site, port },
                None => self.own(connection, *site, request, kind),
            },
            Route::Rescued(origin) => self.rescued(origin, request, (kind, comeback)),
            Route::Restored(origin) | Route::Expired(origin) => {
                match is_own_name(origin, request) {
                    true => left(),
                    false => self.led_back(origin, request, (kind, comeback)),
                }
            }
            Route::Nobody => Work::Plain(Plain::new(421)),
        }
    }

    fn own(
        &mut self,
        connection: &Connection,
        site: usize,
        request: &Request<'_, '_>,
        kind: Kind,
    ) -> Work {
        if request.target == "*" {
            return Work::Plain(Plain::with(204, METHODS.into()));
        }
        let Some(found) = self.sites.sites().get(site) else {
            return Work::Plain(Plain::new(421));
        };
        match &found.content {
            Content::Upstream(upstream) => self.upstream(connection, (found, upstream), request),
            Content::Folder(_) => self.file(site, request, kind),
        }
    }

    fn file(&mut self, site: usize, request: &Request<'_, '_>, kind: Kind) -> Work {
        match request.method {
            "GET" | "HEAD" => {}
            "OPTIONS" => return Work::Plain(Plain::with(204, METHODS.into())),
            "POST" | "PUT" | "DELETE" | "PATCH" | "TRACE" => {
                return Work::Plain(Plain::with(405, METHODS.into()));
            }
            _ => return Work::Plain(Plain::new(501)),
        }
        let now = self.now;
        let table = self.files.get_mut(site).and_then(Option::as_mut);
        match table.map(|table| table.find(request.path, now)) {
            Some(Found::File(entry)) => {
                let chosen = self.choose(site, entry, request);
                file_work(chosen, request)
            }
            Some(Found::Directory) => Work::Plain(moved(request)),
            Some(Found::Missing) | None => {
                // Counted like any other page: a rescue server must learn of it as well.
                debug_assert!(
                    matches!(kind, Kind::Own | Kind::Fetch | Kind::Look),
                    "a folder is ours"
                );
                Work::Plain(Plain::new(404))
            }
            Some(Found::Forbidden) => Work::Plain(Plain::new(403)),
            Some(Found::Unavailable) => Work::Plain(Plain::new(503)),
        }
    }

    /// The representation of a file that the visitor gets; where none is compressed as it takes it,
    /// one is asked for, for those who come later.
    fn choose(&self, site: usize, file: Rc<FileEntry>, request: &Request<'_, '_>) -> Rc<FileEntry> {
        if !file.gains() {
            return file;
        }
        let accepted = Accepted::of(request.fields.accept_encoding);
        if let Some(coding) = file.wish(accepted)
            && let Some(Some(table)) = self.files.get(site)
        {
            let job = Job {
                folder: Arc::clone(table.folder()),
                path: request.path.to_owned(),
                stamp: file.stamp,
                contents: file.contents.clone(),
                coding,
            };
            match self.compressor.ask(job) {
                Queued::Yes => file.note_asked(coding),
                Queued::Full => {}
            }
        }
        FileEntry::representation(&file, accepted)
    }

    /// Takes in a file that was compressed.
    pub fn attach(&mut self, compressed: &Compressed) {
        let tables = self.files.iter_mut().flatten();
        for table in tables.filter(|table| Arc::ptr_eq(table.folder(), &compressed.folder)) {
            table.attach(compressed);
        }
    }

    /// Begins to answer `request` with `work`.
    pub(super) fn answer(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        work: Work,
    ) -> Served {
        let part = work.part_of_cache(self.now);
        let answer = match work {
            Work::Plain(plain) => self.plain(request, visit, &plain),
            Work::File {
                entry, judgement, ..
            } => self.file_answer(request, visit, &entry, judgement),
            Work::Stored {
                stored,
                judgement,
                origin,
                ..
            } => self.stored_answer(request, visit, &stored, judgement, origin.as_deref()),
            Work::Back { status, to, word } => {
                let mut head = self.pool.take();
                let way = Return {
                    status,
                    site: &to,
                    target: request.target,
                    word,
                };
                write_back(way, self.date.line(), visit.closing, &mut head);
                Answer::new(head, Body::Empty, visit.kind, status)
            }
            Work::Proof(proof) => self.proof_answer(request, visit, &proof),
            Work::ToHttps { site, port } => self.redirect_to_https(request, visit, site, port),
            Work::Miss { wanting, .. } => {
                return self.fetch(connection, request, visit, *wanting);
            }
            Work::HandOver(link) => return self.take_over(connection, request, visit, link),
            Work::Purge => return self.purge(connection, request, visit),
            Work::Copy(origin) => return self.take_copy(connection, request, visit, &origin),
        };
        let mut record = self.record(connection, request, visit.kind, self.now.since(visit.began));
        if let Some(record) = &mut record {
            record.cache = part;
        }
        self.begin(connection, answer, visit, record);
        Served::Answered
    }

    /// A short answer.
    pub(super) fn plain(
        &mut self,
        request: &Request<'_, '_>,
        visit: &Visit,
        plain: &Plain,
    ) -> Answer {
        let mut head = self.pool.take();
        let text = plain.write_head(self.date.line(), visit.closing, &mut head);
        if request.method != "HEAD" {
            head.extend_from_slice(text.as_bytes());
        }
        Answer::new(head, Body::Empty, visit.kind, plain.status)
    }

    fn file_answer(
        &mut self,
        request: &Request<'_, '_>,
        visit: &Visit,
        entry: &FileEntry,
        judgement: Judgement,
    ) -> Answer {
        let mut head = self.pool.take();
        let (status, start, end) = match judgement {
            Judgement::Whole => {
                head.extend_from_slice(&entry.head);
                self.sign_file(request, visit, entry, &mut head);
                (200, 0, entry.size)
            }
            Judgement::Part { start, end } => {
                push_status(206, &mut head);
                head.extend_from_slice(entry.validators_and_type().as_bytes());
                push_range(start, end, entry.size, &mut head);
                (206, start, end)
            }
            Judgement::Parts(ranges) => {
                self.pool.give(head);
                return self.file_parts(visit, entry, ranges);
            }
            Judgement::Failed => {
                self.pool.give(head);
                return self.plain(request, visit, &Plain::new(412));
            }
            Judgement::NotModified => {
                push_status(304, &mut head);
                head.extend_from_slice(entry.validators().as_bytes());
                (304, 0, 0)
            }
            Judgement::Unsatisfiable => {
                self.pool.give(head);
                return self.plain(request, visit, &unsatisfiable(entry.size));
            }
        };
        head.extend_from_slice(self.date.line());
        head.extend_from_slice(visit.closing.line());
        head.extend_from_slice(b"\r\n");
        let body = match &entry.contents {
            _ if request.method == "HEAD" || start == end => Body::Empty,
            Contents::Memory(bytes) => Body::Memory(cut(bytes, start, end)),
            Contents::Disk(file) => Body::File {
                file: FileHandle::Plain(Arc::clone(file)),
                offset: start,
                left: end - start,
            },
        };
        Answer::new(head, body, visit.kind, status)
    }
}

fn file_work(entry: Rc<FileEntry>, request: &Request<'_, '_>) -> Work {
    let has = Validators {
        etag: Some(entry.etag.as_bytes()),
        modified: Some(entry.modified.as_bytes()),
        date: None,
    };
    let judgement = judge(Conditions::of(request), has, entry.size);
    let body = sent_bytes(&judgement, entry.size, request);
    Work::File {
        bytes: entry.head.len() as u64 + LATE_LINES_BYTES + body,
        judgement,
        entry,
    }
}

/// Bytes of the body that are sent.
pub(super) fn sent_bytes(judgement: &Judgement, size: u64, request: &Request<'_, '_>) -> u64 {
    match judgement {
        _ if request.method == "HEAD" => 0,
        Judgement::Whole => size,
        Judgement::Part { start, end } => end - start,
        Judgement::Parts(ranges) => ranges.iter().map(|part| part.end - part.start).sum(),
        Judgement::Failed | Judgement::NotModified | Judgement::Unsatisfiable => 0,
    }
}

/// The lines that say which part of an object follows.
pub(super) fn push_range(start: u64, end: u64, size: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    push_number(end - start, out);
    out.extend_from_slice(b"\r\nContent-Range: bytes ");
    push_number(start, out);
    out.push(b'-');
    push_number(end - 1, out);
    out.push(b'/');
    push_number(size, out);
    out.extend_from_slice(b"\r\n");
}

/// 503, for a visitor who may come again after `wait`.
pub(super) fn later(wait: Duration) -> Plain {
    let seconds = wait.as_secs() + 1;
    Plain::with(
        503,
        format!("Retry-After: {seconds}\r\nCache-Control: no-store\r\n"),
    )
}

/// 416.
pub(super) fn unsatisfiable(size: u64) -> Plain {
    Plain::with(416, format!("Content-Range: bytes */{size}\r\n"))
}

/// A part of a body in memory; shares it.
pub(super) fn cut(bytes: &Bytes, start: u64, end: u64) -> Bytes {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(index(start)..index(end))
}

/// To the same path with its slash. Several slashes at its start are made one: `//other.example/`
/// would be a redirect to another host.
fn moved(request: &Request<'_, '_>) -> Plain {
    let path = request.path;
    let query = &request.target[path.len()..];
    let path = path.trim_start_matches('/');
    Plain::with(301, format!("Location: /{path}/{query}\r\n"))
}

/// Whether a body of unknown length can be sent in chunks.
pub(super) const fn knows_chunks(request: &Request<'_, '_>) -> bool {
    matches!(request.version, Version::Http11)
}
