//! The sites that this server itself is: names, and where their pages come from.
//!
//! The table is immutable; a reload makes a new one and the cores swap it, so that a request sees
//! the one or the other.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use levee_vocab::{AddressBlock, HostName, WebAddress};

use crate::crawlers::CrawlerRules;
use crate::files::Folder;
use crate::shared_cookies::SharedCookies;
use crate::upstream::Upstreams;

/// All sites of this server.
#[derive(Debug)]
pub struct SiteTable {
    sites: Vec<Arc<Site>>,
    names: HashMap<HostName, usize, RandomState>,
    unknown: UnknownHost,
    purge_from: Vec<AddressBlock>,
    trusted: Vec<AddressBlock>,
    crawlers: Option<Arc<CrawlerRules>>,
    shared_cookies: SharedCookies,
}

/// One site.
#[derive(Debug)]
pub struct Site {
    /// Its name and the port that visitors use.
    pub name: WebAddress,
    /// Other names that lead to it.
    pub other_names: Vec<HostName>,
    /// Where its pages come from.
    pub content: Content,
}

/// Where pages come from.
#[derive(Debug)]
pub enum Content {
    /// Files of a folder.
    Folder(Arc<Folder>),
    /// An application behind this server.
    Upstream(Upstream),
}

/// An application behind this server.
#[derive(Debug)]
pub struct Upstream {
    /// Where it listens, in one place or several.
    pub servers: Arc<Upstreams>,
    /// What it gets as Host; none for what the visitor sent.
    pub authority: Option<String>,
}

/// What a request for a name that nobody knows gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownHost {
    /// The first site, as a server with one site does.
    Serve,
    /// 421 Misdirected Request.
    Refuse,
}

impl SiteTable {
    /// A table of `sites`. Where two have the same name, the first has it.
    pub fn new(sites: Vec<Site>, unknown: UnknownHost) -> Self {
        let mut names = HashMap::with_hasher(RandomState::default());
        for (index, site) in sites.iter().enumerate() {
            for name in std::iter::once(&site.name.host).chain(&site.other_names) {
                names.entry(name.clone()).or_insert(index);
            }
        }
        Self {
            sites: sites.into_iter().map(Arc::new).collect(),
            names,
            unknown,
            purge_from: Vec::new(),
            trusted: Vec::new(),
            crawlers: None,
            shared_cookies: SharedCookies::default(),
        }
    }

    /// The same table, for sites whose visitors may be redirected with such cookies.
    #[must_use]
    pub fn sharing(mut self, cookies: SharedCookies) -> Self {
        self.shared_cookies = cookies;
        self
    }

    /// Cookies that say nothing about a visitor.
    pub(crate) const fn shared_cookies(&self) -> &SharedCookies {
        &self.shared_cookies
    }

    /// The same table, for whose sites visitors from these addresses may purge; else nobody may.
    #[must_use]
    pub fn with_purge_from(mut self, blocks: Vec<AddressBlock>) -> Self {
        self.purge_from = blocks;
        self
    }

    /// Whether `visitor` may purge.
    pub(crate) fn may_purge(&self, visitor: IpAddr) -> bool {
        self.purge_from.iter().any(|block| block.contains(visitor))
    }

    /// The same table, for sites behind proxies at these addresses: their word on visitors is
    /// believed.
    #[must_use]
    pub fn trusting(mut self, proxies: Vec<AddressBlock>) -> Self {
        self.trusted = proxies;
        self
    }

    /// Whose word on visitors is believed.
    pub(crate) fn trusted(&self) -> &[AddressBlock] {
        &self.trusted
    }

    /// The same table, for sites that tell crawlers from readers by `rules`; else everybody is a
    /// reader.
    #[must_use]
    pub fn rationing(mut self, rules: CrawlerRules) -> Self {
        self.crawlers = Some(Arc::new(rules));
        self
    }

    /// How crawlers are told from readers; none where they are not.
    pub(crate) const fn crawlers(&self) -> Option<&Arc<CrawlerRules>> {
        self.crawlers.as_ref()
    }

    /// All sites, in the order given.
    pub fn sites(&self) -> &[Arc<Site>] {
        &self.sites
    }

    /// The site called `name` (lower case, without port).
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        // Most servers are one site, and to compare costs less than to look up.
        match self.sites.first() {
            Some(first) if first.name.host.as_str() == name => Some(0),
            Some(_) | None => self.names.get(name).copied(),
        }
    }

    /// The site that answers for names that nobody knows.
    pub(crate) fn fallback(&self) -> Option<usize> {
        match self.unknown {
            UnknownHost::Serve if !self.sites.is_empty() => Some(0),
            UnknownHost::Serve | UnknownHost::Refuse => None,
        }
    }
}
