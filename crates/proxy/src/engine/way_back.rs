//! Visitors on their way back (H4, H5): at a rescue server, those whom it cannot answer; at the
//! origin, those who were sent.
//!
//! What may be done to whom is decided by `levee_control::WayBack` and `Comeback`. Here the word in
//! the URL is written and read, and what it teaches is noted. A visitor who cannot be sent back is
//! refused as before.

use std::hash::BuildHasher;

use levee_control::{Block, Comeback, OriginPhase, OriginRoute, Signature, WayBack};
use levee_wire::{BackReason, BackWord, push_back};

use super::Core;
use super::orphans::is_orphan;
use super::serve::{Served, Visit};
use super::work::Work;
use crate::answer::Kind;
use crate::back_keys::Url;
use crate::connection::Connection;
use crate::missing::MarkNote;
use crate::redirect::{Return, SiteUrl, lines_back, write_back};
use crate::request::{LowerName, Request};
use crate::response::Closing;
use crate::router::Route;

/// Whether what a word teaches is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    First,
    /// The request has waited for capacity since it was heard.
    Again,
}

/// A visitor who is turned away.
pub(super) struct Turn<'a> {
    /// Whose visitor he is, where he is one of an origin's.
    pub origin: Option<&'a OriginRoute>,
    pub reason: BackReason,
    /// As what he is counted.
    pub kind: Kind,
}

impl<'a> Turn<'a> {
    /// Who wants what cannot be fetched now.
    pub const fn missing(origin: Option<&'a OriginRoute>) -> Self {
        Self {
            origin,
            reason: BackReason::Missing,
            kind: Kind::Refusal,
        }
    }

    /// For whom there is no room.
    pub fn busy(route: &'a Route, kind: Kind) -> Self {
        Self {
            origin: route.rescued().map(|origin| &**origin),
            reason: BackReason::Busy,
            kind,
        }
    }
}

impl Core {
    /// What `request` says of where it has been. Notes what its word teaches.
    pub(super) fn comeback(
        &mut self,
        connection: &Connection,
        route: &Route,
        request: &Request<'_, '_>,
        hearing: Hearing,
    ) -> Comeback {
        let Some(word) = request.word else {
            return Comeback::None;
        };
        let mut note = None;
        let (comeback, lesson) = match (route, word) {
            (Route::Own(_), BackWord::Signed(token)) => {
                let host = LowerName::of(request.host);
                let url = Url {
                    host: host.as_str(),
                    path: request.path,
                };
                let returned = || self.marking.returned(self.now, &token, url);
                match self.back_keys.signer(self.now, &token, url) {
                    Some(link) => (Comeback::Believed, Some((link, token.reason))),
                    None => match returned() {
                        Some(link) => {
                            note = Some(MarkNote::Returned(link));
                            (Comeback::Returned, None)
                        }
                        None => (Comeback::Doubtful, None),
                    },
                }
            }
            (Route::Own(_), BackWord::Unsigned) => {
                note = Some(MarkNote::Unsigned);
                (Comeback::Unsigned, None)
            }
            (_, BackWord::Signed(_) | BackWord::Unsigned) => (Comeback::Doubtful, None),
        };
        if hearing == Hearing::First {
            self.counters.comebacks.note(comeback);
            if let Some(note) = note {
                self.note_marked(connection, request, note);
            }
            if let Some((link, BackReason::Missing | BackReason::Busy)) = lesson {
                self.missing.note_visitor(link);
            }
            // Copies have no query: another object under the same path may well be missing.
            if let Some((link, BackReason::Missing)) = lesson
                && request.path.len() == request.target.len()
            {
                let host = route.resource_host(&self.sites, request.host);
                self.missing.note(link, host, request.path);
            }
        }
        comeback
    }

    /// Notes what became of a visitor without a signature.
    fn note_marked(&mut self, connection: &Connection, request: &Request<'_, '_>, note: MarkNote) {
        let block = Block::of(self.visitor(connection, request));
        let hash = self.hasher.hash_one((block, note));
        self.missing.note_marked(self.now, hash, note);
    }

    /// The target of a redirect to the rescue server at `index` of the plan, in a buffer of the
    /// pool: with a mark of ours in the place of the word that nobody here believes. None where
    /// there is no such rescue server.
    pub(super) fn marked_target(
        &mut self,
        connection: &Connection,
        request: &Request<'_, '_>,
        index: usize,
    ) -> Option<Vec<u8>> {
        let host = LowerName::of(request.host);
        let url = Url {
            host: host.as_str(),
            path: request.path,
        };
        let (link, token) = self.marking.mark(self.now, index, url)?;
        self.note_marked(connection, request, MarkNote::Sent(link));
        let mut target = self.pool.take();
        push_back(request.target, BackWord::Signed(token), &mut target);
        Some(target)
    }

    /// The word with which a visitor of `origin` is sent back whom nobody here can answer; none
    /// where he may not be, or where only the origin itself can answer other rescue servers.
    pub(super) fn word_back(
        &self,
        origin: &OriginRoute,
        request: &Request<'_, '_>,
        (kind, comeback): (Kind, Comeback),
        reason: BackReason,
    ) -> Option<BackWord> {
        let is_for_another = matches!(kind, Kind::Home { .. });
        // Who came to us by the origin's own name would come to us again.
        let is_at_alias = !request
            .host
            .eq_ignore_ascii_case(origin.origin.host.as_str());
        if is_for_another || !is_at_alias || !request.is_get_or_head() {
            return None;
        }
        let signature = match self.back_keys.can_sign(origin) {
            true => Signature::Possible,
            false => Signature::Impossible,
        };
        match WayBack::of(origin.phase, comeback, signature) {
            WayBack::None => None,
            WayBack::Signed => {
                let token = self.back_keys.sign(self.now, origin, request.path, reason);
                token.map(BackWord::Signed)
            }
            WayBack::Unsigned => Some(BackWord::Unsigned),
            WayBack::Kept => request.word,
        }
    }

    /// The lines that send a visitor of `origin` back whose fetch failed, where he may be sent.
    pub(super) fn way_back(
        &self,
        origin: &OriginRoute,
        request: &Request<'_, '_>,
        visit: &Visit,
    ) -> Option<String> {
        let sender = (visit.kind, visit.comeback);
        let word = self.word_back(origin, request, sender, BackReason::Missing)?;
        let site = SiteUrl::of(origin, request.fields.came_by);
        Some(lines_back(&site, request.target, word))
    }

    /// Sends a visitor of an origin back; refuses him where he may not be sent.
    pub(super) fn turn_away(
        &mut self,
        connection: &mut Connection,
        request: &Request<'_, '_>,
        visit: &Visit,
        turn: Turn<'_>,
    ) -> Served {
        let Turn {
            origin,
            reason,
            kind,
        } = turn;
        let sender = (visit.kind, visit.comeback);
        let word = origin.and_then(|origin| self.word_back(origin, request, sender, reason));
        let (Some(origin), Some(word)) = (origin, word) else {
            return match origin.is_some_and(is_orphan) {
                true => self.refuse_orphans_visitor(connection, request, visit, kind),
                false => self.refuse_as(connection, request, visit, kind),
            };
        };
        let mut head = self.pool.take();
        let way = Return {
            status: 302,
            site: &SiteUrl::of(origin, request.fields.came_by),
            target: request.target,
            word: Some(word),
        };
        write_back(way, self.date.line(), Closing::Close, &mut head);
        let served = self.refuse_with(connection, request, visit, (kind, head, 302));
        if served == Served::Answered {
            self.counters.sent_back.note(reason);
        }
        served
    }

    /// What a visitor of `origin` gets who wants what is not here, where the origin has said that
    /// nothing is to be fetched. Who cannot go back is worth a fetch, so that nobody is left
    /// without a page.
    pub(super) fn sent_back(
        &self,
        origin: &OriginRoute,
        request: &Request<'_, '_>,
        sender: (Kind, Comeback),
    ) -> Option<Work> {
        let word = self.word_back(origin, request, sender, BackReason::Missing)?;
        self.counters.sent_back.note(BackReason::Missing);
        Some(Work::Back {
            status: 302,
            to: SiteUrl::of(origin, request.fields.came_by),
            word: Some(word),
        })
    }

    /// What a visitor of an alias gets whose origin we rescue no longer, as far as we know.
    pub(super) fn led_back(
        &self,
        origin: &OriginRoute,
        request: &Request<'_, '_>,
        sender: (Kind, Comeback),
    ) -> Work {
        let word = self.word_back(origin, request, sender, BackReason::Missing);
        match (origin.phase, word) {
            // Only a request that is repeated as it is may wait for this.
            (OriginPhase::Restored { until }, None) => {
                Work::Plain(super::work::later(until.since(self.now)))
            }
            (_, word) => {
                self.counters.sent_back.over.add(1);
                Work::Back {
                    status: match request.is_get_or_head() {
                        true => 302,
                        false => 307,
                    },
                    to: SiteUrl::of(origin, request.fields.came_by),
                    word,
                }
            }
        }
    }
}
