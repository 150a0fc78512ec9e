//! The shell's side of the community: carries out what the Brain wants of links and registry.
//!
//! The Brain never waits: a registration or a search is a task of its own that brings its result
//! back as an input. At most one of each is under way; what comes meanwhile is done afterwards with
//! the newest figures, so a registry that hangs cannot pile up work. What we offer may change with
//! each message of a rescue; registries are told of that a few times a second, since each tells all
//! others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use levee_control::{Input, Output};
use levee_net::Shared;
use levee_observe::{AliasNamesStatus, RegistryStatus};
use levee_vocab::{AliasHttps, ByteRate, WebAddress};
use levee_wire::registry::Entry;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::dns::AliasNames;
use crate::https::HttpsPorts;
use crate::registry_client::{Directory, RegistryClient};
use crate::rescue_link::{AliasPlaces, Obeyed, PurgeLine, RescueLinks, RescueWord};

/// An entry outlives this many missed registrations, so one lost message does not hide a site.
const LIFETIME_PERIODS: u32 = 3;
/// From one registration to the next: below the five a second that registries take of a member.
const OFFER_PAUSE: Duration = Duration::from_millis(250);

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

    /// Where the aliases of our rescue servers lead.
    pub fn alias_places(&self) -> AliasPlaces {
        self.links.alias_places()
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
            let mut told_at = None;
            while let Some(free) = next_offer(&under_way, told_at).await {
                told_at = Some(Instant::now());
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
                // The last candidates would stay, and they refuse us as well.
                Err(_) if registry.is_excluded() => Input::CandidatesFound(Vec::new()),
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

/// What to register next, `OFFER_PAUSE` after the last time: the newest figure. None where nothing
/// is new; then nobody registers any more.
///
/// Cancel safety: dropped half-way, nothing is registered any more.
async fn next_offer(under_way: &Shared<UnderWay>, told_at: Option<Instant>) -> Option<ByteRate> {
    if let Some(told_at) = told_at {
        sleep_until(told_at + OFFER_PAUSE).await;
    }
    under_way.with(|under_way| {
        under_way.registering = under_way.next.is_some();
        under_way.next.take()
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_offer_that_changes_all_the_time_is_told_at_once_and_then_four_times_a_second() {
        let under_way = Arc::new(Shared::new(UnderWay::default()));
        let offers = |free| ByteRate::from_kilobytes(free);
        let says = Arc::clone(&under_way);
        says.with(|under_way| under_way.next = Some(offers(0)));
        let changing = tokio::spawn(async move {
            for free in 1..=1000 {
                sleep(Duration::from_millis(10)).await;
                says.with(|under_way| under_way.next = Some(offers(free)));
            }
        });
        let (mut told, mut told_at) = (Vec::new(), None);
        let begun = Instant::now();
        while let Some(free) = next_offer(&under_way, told_at).await {
            told_at = Some(Instant::now());
            told.push((begun.elapsed().as_millis(), free));
        }
        assert!(changing.is_finished());
        assert_eq!(told[0], (0, offers(0)));
        assert_eq!(told[1].0, 250);
        assert!(told.len() <= 42, "{told:?}");
        assert_eq!(told.last().map(|(_, free)| *free), Some(offers(1000)));
        assert!(!under_way.with(|under_way| under_way.registering));
    }
}
