//! Which rescue server was sent which page rewritten, so that it is sent again when it has fetched
//! the page as it is: because its lifetime was over, it was purged, or it gave way to others.
//!
//! That a fetch was seen says only that it has begun. It may wait for its turn on the link, and a
//! push that comes meanwhile joins it, brings nothing, and is answered when it has ended: so it is
//! tried a second time. What fails then is tried again after the next fetch, since it stays known.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use levee_control::CopyOutcome;
use levee_vocab::LinkId;

use super::Member;
use super::push::{Errands, Trouble, target_of};

/// Pages that are known, for all rescue servers together: eight for each of as many as there may
/// be. Others stay as they were fetched.
const PAGES_MAX: usize = 1024;

/// See the file header.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    pages: Mutex<Pages>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sent,
    BeingSentAgain,
}

type Pages = BTreeMap<(LinkId, String), State>;

impl Renewals {
    /// The page at `target` was sent rewritten to the rescue server at `link`.
    pub fn note_sent(&self, link: LinkId, target: &str) {
        let mut pages = self.lock();
        let page = (link, target.to_owned());
        if pages.len() < PAGES_MAX || pages.contains_key(&page) {
            pages.insert(page, State::Sent);
        }
    }

    /// The rescue server at `link` has fetched `target`: whether it is to be sent again.
    pub fn note_fetched(&self, link: LinkId, target: &str) -> bool {
        let mut pages = self.lock();
        match pages.get_mut(&(link, target.to_owned())) {
            Some(state @ State::Sent) => {
                *state = State::BeingSentAgain;
                true
            }
            Some(State::BeingSentAgain) | None => false,
        }
    }

    /// It was sent again, or not: it may be when it is fetched the next time.
    pub fn note_ended(&self, link: LinkId, target: &str) {
        let mut pages = self.lock();
        if let Some(state) = pages.get_mut(&(link, target.to_owned())) {
            *state = State::Sent;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets those who do not rescue us any more.
    pub fn retain(&self, is_known: impl Fn(LinkId) -> bool) {
        self.lock().retain(|(link, _), _| is_known(*link));
    }
}

/// Given back when sending again has ended, whatever came of it.
struct Turn<'a> {
    renewals: &'a Renewals,
    page: (LinkId, &'a str),
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let (link, target) = self.page;
        self.renewals.note_ended(link, target);
    }
}

impl Errands {
    /// Sends a page rewritten once more, in the place of the page as it is.
    ///
    /// Cancel safety: dropped half-way, the rescue server keeps the page as it is.
    pub(super) async fn send_again(&self, url: &str, member: &Member) -> Result<(), Trouble> {
        let target = target_of(url)?;
        let _turn = Turn {
            renewals: &self.renewals,
            page: (member.link, target),
        };
        match self.send_rewritten(target, member).await {
            Err(trouble) if trouble.outcome == CopyOutcome::Failed => {
                self.send_rewritten(target, member).await
            }
            ended => ended,
        }
    }

    async fn send_rewritten(&self, target: &str, member: &Member) -> Result<(), Trouble> {
        match self.rewritten(target, member).await {
            Some(page) => self.push_message(target, member, page).await,
            // Nothing is left to rewrite in it, and as it is the rescue server has it.
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_sent_again_once_for_a_fetch_and_only_where_it_was_sent() {
        let renewals = Renewals::default();
        let [one, other] = [1, 2].map(LinkId::Outbound);
        assert!(!renewals.note_fetched(one, "/a"));
        renewals.note_sent(one, "/a");
        assert!(!renewals.note_fetched(one, "/b"));
        assert!(!renewals.note_fetched(other, "/a"));
        assert!(renewals.note_fetched(one, "/a"));
        assert!(!renewals.note_fetched(one, "/a"), "it is under way");
        let page = (one, "/a");
        drop(Turn {
            renewals: &renewals,
            page,
        });
        assert!(renewals.note_fetched(one, "/a"));
        renewals.retain(|link| link == other);
        renewals.note_ended(one, "/a");
        assert!(!renewals.note_fetched(one, "/a"));
    }

    #[test]
    fn only_so_many_pages_are_known() {
        let renewals = Renewals::default();
        let link = LinkId::Outbound(1);
        for number in 0..=PAGES_MAX {
            renewals.note_sent(link, &format!("/{number}"));
        }
        assert!(renewals.note_fetched(link, "/0"));
        assert!(!renewals.note_fetched(link, &format!("/{PAGES_MAX}")));
    }
}
