//! Who is a crawler, and what crawlers get.
//!
//! Programs that fetch every page of a site are the commonest overload of today, and no reason to
//! call for help: neighbours would fetch every page once for them, and carry their traffic. So
//! requests of crawlers are never redirected, never count towards calling for help, and get a share
//! of the link that yields to readers; beyond it they are told to come back later.
//!
//! A crawler is recognised by what it says of itself ([`CrawlerNames`]), or by what its block of
//! addresses does ([`CrawlerWatch`]): very many pages that nobody else asks for, once each. When in
//! doubt it is a reader, because an error costs more that way round. What a crawler gets is the
//! Gate's [`Ration`](ration).
//!
//! Servers of the fediverse, chat programs and the like that look at one page because somebody has
//! named it are no crawlers in this sense: together they are the crowd that mutual aid is for.

mod names;
mod ration;
mod shared;
mod watch;

pub use names::{CrawlerNames, Named};
pub(crate) use ration::Ration;
pub use watch::{Block, CrawlerWatch, Noted, PageRequest};

/// Whose request it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visitor {
    /// Somebody who reads, or who is taken for one.
    #[default]
    Reader,
    /// A crawler.
    Crawler(RecognisedBy),
}

/// By what a crawler was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecognisedBy {
    /// It says so in its User-Agent.
    Name,
    /// Its block of addresses asks for pages as only a crawler does.
    Behaviour,
}

impl Visitor {
    /// Whether it is a crawler, however recognised.
    pub const fn is_crawler(self) -> bool {
        matches!(self, Self::Crawler(_))
    }
}
