//! Whose request it is, as far as one core can tell: a reader's, or a crawler's.
//!
//! What a crawler is, and what it gets, is decided in `levee_control`; here is what a request
//! shows: its User-Agent, the block of addresses that it comes from, and whether it asks for a page
//! or for what pages are made of (`page.rs`). Where the visitor's own address is not known (a proxy
//! that the settings do not trust stands before it, or the whole internet comes from this machine)
//! nothing is concluded from what an address does.

mod memo;
mod page;

use std::net::IpAddr;
use std::sync::Arc;

use levee_control::{
    Block, CrawlerNames, CrawlerWatch, Named, Noted, PageRequest, RecognisedBy, Visitor,
};
use levee_vocab::{AddressBlock, Timestamp};

use memo::Memo;
pub(crate) use page::{is_page, page_query};

/// How crawlers are told from readers; one for all cores.
#[derive(Clone, Debug)]
pub struct CrawlerRules {
    /// What they say of themselves.
    pub names: CrawlerNames,
    /// Whether what they do is looked at as well.
    pub by_behaviour: Behaviour,
    /// Who is a reader whatever he does.
    pub allowed: Vec<AddressBlock>,
    /// Most that one core fetches for crawlers at a time.
    pub fetches_max: usize,
}

/// Whether what a block of addresses does counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It does.
    Watched,
    /// Only names count.
    Ignored,
}

/// What a request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits<'a> {
    pub agent: &'a [u8],
    /// Hash of the User-Agent.
    pub agent_hash: u64,
    pub address: IpAddr,
    pub certainty: Certainty,
    /// What the answer costs the link.
    pub bytes: u64,
}

/// Whether an address is that of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    Known,
    /// It may be that of a proxy, with everybody behind it.
    Doubtful,
}

/// What was concluded about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub visitor: Visitor,
    /// Where he comes from; none where that says nothing about him.
    pub block: Option<Block>,
    /// What his block was given before it was recognised with this request.
    pub before: u64,
}

/// What a core knows.
#[derive(Debug, Default)]
pub(crate) struct Crawlers {
    watch: CrawlerWatch,
    memo: Memo,
    /// Fetches for crawlers that are under way.
    pub fetches: usize,
}

impl Finding {
    const fn of(visitor: Visitor) -> Self {
        Self {
            visitor,
            block: None,
            before: 0,
        }
    }

    /// A reader of whom nothing else is known.
    pub const READER: Self = Self::of(Visitor::Reader);
}

impl Crawlers {
    /// Notes a request and says whose it is. `page` gives the hash of what it asks for, if that is
    /// a page; it is asked only where that counts.
    pub fn find(
        &mut self,
        now: Timestamp,
        rules: &Arc<CrawlerRules>,
        traits: &Traits<'_>,
        page: impl FnOnce() -> Option<u64>,
    ) -> Finding {
        if rules.allowed.iter().any(|one| one.contains(traits.address)) {
            return Finding::READER;
        }
        match self.memo.judge(rules, traits.agent_hash, traits.agent) {
            Named::Crawler => return Finding::of(Visitor::Crawler(RecognisedBy::Name)),
            Named::Allowed => return Finding::READER,
            Named::Nobody => {}
        }
        match (rules.by_behaviour, traits.certainty) {
            (Behaviour::Watched, Certainty::Known) => self.find_by_behaviour(now, traits, page()),
            (Behaviour::Ignored, _) | (Behaviour::Watched, Certainty::Doubtful) => Finding::READER,
        }
    }

    /// What a page is made of is asked for by whoever has the page: it says nothing about a block,
    /// but a crawler's requests for it are a crawler's.
    fn find_by_behaviour(
        &mut self,
        now: Timestamp,
        traits: &Traits<'_>,
        page: Option<u64>,
    ) -> Finding {
        let block = Block::of(traits.address);
        let noted = match page {
            Some(page) => self.watch.note(
                now,
                &PageRequest {
                    page,
                    agent: traits.agent_hash,
                    block,
                    bytes: traits.bytes,
                },
            ),
            None if self.watch.suspects(now, block) => Noted::Crawler,
            None => Noted::Reader,
        };
        let crawler = Visitor::Crawler(RecognisedBy::Behaviour);
        let (visitor, before) = match noted {
            Noted::Reader => (Visitor::Reader, 0),
            Noted::Crawler => (crawler, 0),
            Noted::Recognised { bytes } => (crawler, bytes),
        };
        Finding {
            visitor,
            block: Some(block),
            before,
        }
    }

    /// Whose a request is that waits, and came from `block`: a crawler may have been recognised
    /// since.
    pub fn look_again(
        &mut self,
        now: Timestamp,
        visitor: Visitor,
        block: Option<Block>,
    ) -> Visitor {
        match block {
            Some(block) if self.watch.suspects(now, block) => {
                Visitor::Crawler(RecognisedBy::Behaviour)
            }
            Some(_) | None => visitor,
        }
    }

    /// Blocks of addresses that are taken for crawlers'.
    pub fn blocks(&self, now: Timestamp) -> usize {
        self.watch.crawlers(now)
    }
}

/// Whether a visitor's address says who he is. Not that of this machine: a proxy or a test is
/// there.
pub(crate) fn certainty(address: IpAddr, relayed: Relayed) -> Certainty {
    match relayed {
        Relayed::No if !address.to_canonical().is_loopback() => Certainty::Known,
        Relayed::No | Relayed::Yes => Certainty::Doubtful,
    }
}

/// Whether somebody who is not believed says that the request is not his own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Relayed {
    #[default]
    No,
    Yes,
}

#[cfg(test)]
mod tests;
