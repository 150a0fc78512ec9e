//! The shell's side of the community: carries out what the Brain wants of links and registry.
//!
//! The Brain never waits: a registration or a search is a task of its own that brings its result
//! back as an input. At most one of each is under way; what comes meanwhile is done afterwards with
//! the newest figures, so a registry that hangs cannot pile up work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Input, Output};
use levee_net::Shared;
use levee_observe::{AliasNamesStatus, RegistryStatus};
use levee_vocab::{AliasHttps, ByteRate, WebAddress};
use levee_wire::registry::Entry;
use tokio::sync::mpsc;

use crate::dns::AliasNames;
use crate::https::HttpsPorts;
use crate::registry_client::{Directory, RegistryClient};
use crate::rescue_link::{Obeyed, PurgeLine, RescueLinks, RescueWord};

/// An entry outlives this many missed registrations, so one lost message does not hide a site.
const LIFETIME_PERIODS: u32 = 3;

/// What a site has to do with its community.
#[derive(Debug)]
pub struct Community {
    links: RescueLinks,
    registry: RegistryClient,
    offer: Offer,
    events: mpsc::Sender<Input>,
    under_way: Arc<Shared<UnderWay>>,
    alias_names: Option<AliasNames>,
}

/// What is registered beside d_free.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Name and web port.
    pub site: WebAddress,
    /// Address and port of the rescue protocol.
    pub rescue: SocketAddr,
    /// Time between registrations.
    pub period: Duration,
    /// Where visitors by HTTPS are answered: others are told whether aliases are.
    pub https: HttpsPorts,
}

impl Offer {
    /// What is registered now.
    fn entry(&self, free: ByteRate) -> Entry {
        let lifetime = self.period * LIFETIME_PERIODS;
        let https = match self.https.now().alias {
            Some(_) => AliasHttps::Yes,
            None => AliasHttps::No,
        };
        Entry {
            https,
            ..Entry::new(self.site.clone(), self.rescue, free, lifetime)
        }
    }
}

#[derive(Debug, Default)]
struct UnderWay {
    registering: bool,
    /// What to register when the one under way is done.
    next: Option<ByteRate>,
    searching: bool,
}

impl Community {
    /// Takes over links and registry. `events` brings results to the Brain. Needs a tokio runtime.
    pub fn new(
        links: RescueLinks,
        registry: RegistryClient,
        offer: Offer,
        events: mpsc::Sender<Input>,
    ) -> Self {
        Self {
            links,
            registry,
            offer,
            events,
            under_way: Arc::default(),
            alias_names: None,
        }
    }

    /// The same, but each alias is registered in DNS before it is told.
    #[must_use]
    pub fn registering(mut self, alias_names: Option<AliasNames>) -> Self {
        self.alias_names = alias_names;
        self
    }

    /// Carries out `output` if it concerns the community. Gives what the Brain must be told at
    /// once.
    pub fn obey(&self, output: &Output) -> Option<Input> {
        if let Some(names) = &self.alias_names
            && names.hold(output, || (self.links.speaker(), self.events.clone()))
        {
            return None;
        }
        match self.links.obey(output) {
            Obeyed::Passed => return None,
            Obeyed::Failed(input) => return Some(input),
            Obeyed::NotForLinks => {}
        }
        if let Output::Register { free } = output {
            self.register(*free);
        } else if let Output::SearchRegistry { count } = output {
            self.search(*count);
        }
        None
    }

    /// How to report to origins.
    pub fn word(&self) -> RescueWord {
        self.links.word()
    }

    /// How to have our rescue servers purge.
    pub fn purge_line(&self) -> PurgeLine {
        self.links.purge_line()
    }

    /// Where members tell each other what they have seen.
    pub fn registry(&self) -> RegistryClient {
        self.registry.clone()
    }

    /// How it stands with the registry.
    pub fn registry_status(&self) -> RegistryStatus {
        self.registry.status()
    }

    /// How our aliases are found in DNS.
    pub fn alias_names(&self) -> AliasNamesStatus {
        let names = self.alias_names.as_ref();
        names.map(AliasNames::status).unwrap_or_default()
    }

    /// Rescue messages that were refused.
    pub fn refused(&self) -> u64 {
        self.links.refusals().total()
    }

    /// Takes the offer back and waits until every link has said its last word.
    ///
    /// Cancel safety: dropped half-way, the offer expires and the links close by themselves.
    pub async fn leave(self) {
        // A registration that still waits would come after the farewell, and undo it.
        self.under_way.with(|under_way| under_way.next = None);
        // A registry that is away forgets us by itself.
        let _ = self.registry.deregister(self.offer.site.host.clone()).await;
        self.links.finish().await;
    }

    fn register(&self, free: ByteRate) {
        let busy = self.under_way.with(|under_way| {
            under_way.next = Some(free);
            std::mem::replace(&mut under_way.registering, true)
        });
        if busy {
            return;
        }
        let (registry, offer) = (self.registry.clone(), self.offer.clone());
        let under_way = Arc::clone(&self.under_way);
        tokio::spawn(async move {
            while let Some(free) = under_way.with(|under_way| {
                under_way.registering = under_way.next.is_some();
                under_way.next.take()
            }) {
                if let Err(error) = registry.register(offer.entry(free)).await {
                    tracing::debug!(%error, "not registered");
                }
            }
        });
    }

    fn search(&self, count: usize) {
        if self
            .under_way
            .with(|under_way| std::mem::replace(&mut under_way.searching, true))
        {
            return;
        }
        let (registry, events) = (self.registry.clone(), self.events.clone());
        let under_way = Arc::clone(&self.under_way);
        tokio::spawn(async move {
            let input = match registry.search(count).await {
                Ok(candidates) => Input::CandidatesFound(candidates),
                Err(error) => {
                    tracing::debug!(%error, "no candidates from the registry");
                    Input::SearchFailed
                }
            };
            under_way.with(|under_way| under_way.searching = false);
            // The Brain task is gone only when the server stops.
            let _ = events.send(input).await;
        });
    }
}
