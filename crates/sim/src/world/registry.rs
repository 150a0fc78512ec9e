//! The registry of a world: the same `Registry` as in `levee registry`.
//!
//! Rates go through the wire's unit, whole kilobytes a second, as they would in a real request.

use std::time::Duration;

use levee_control::Candidate;
use levee_registry::{Asker, Input, Output, PrivateAddresses, Registry, RegistryLimits};
use levee_vocab::{ByteRate, HostName, Timestamp};
use levee_wire::registry::{Entry, Reply, Request, Search};

/// Who offers what, and until when that is believed.
#[derive(Debug)]
pub struct Directory {
    registry: Registry,
}

/// Three times the default period of registration: two may be lost.
const LIFETIME: Duration = Duration::from_secs(30);

impl Default for Directory {
    fn default() -> Self {
        let limits = RegistryLimits {
            // Addresses of a world are from the range for tests.
            private_addresses: PrivateAddresses::Permitted,
            ..RegistryLimits::default()
        };
        Self {
            registry: Registry::new(limits),
        }
    }
}

impl Directory {
    /// A site tells what it offers.
    pub fn register(&mut self, now: Timestamp, offer: Candidate) {
        let asker = offer.rescue.ip();
        let free = on_the_wire(offer.free);
        let entry = Entry {
            https: offer.https,
            ..Entry::new(offer.site, offer.rescue, free, LIFETIME)
        };
        self.ask(now, asker, Request::Register(entry));
    }

    /// The `count` best entries but for the one who asks.
    pub fn search(&mut self, now: Timestamp, count: usize, asker: &Candidate) -> Vec<Candidate> {
        let except: Option<HostName> = Some(asker.site.host.clone());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let request = Request::Search(Search {
            count,
            except,
            ..Search::default()
        });
        let found = match self.ask(now, asker.rescue.ip(), request) {
            Some(Reply::Found(found)) => found,
            Some(
                Reply::Registered(_)
                | Reply::Removed(_)
                | Reply::Noted(_)
                | Reply::Said(_)
                | Reply::Refused(_),
            )
            | None => Vec::new(),
        };
        let candidates = found.into_iter().map(|entry| Candidate {
            site: entry.site,
            rescue: entry.rescue,
            free: entry.free,
            https: entry.https,
        });
        candidates.collect()
    }

    fn ask(
        &mut self,
        now: Timestamp,
        address: std::net::IpAddr,
        request: Request,
    ) -> Option<Reply> {
        let asker = Asker {
            connection: 0,
            address,
            clock: now.as_nanoseconds() / 1_000_000,
        };
        let input = Input::RequestReceived { asker, request };
        let outputs = self.registry.handle(now, input);
        outputs.into_iter().find_map(|output| match output {
            Output::Answer { reply, .. } => Some(reply),
            Output::Announce(_) => None,
        })
    }
}

/// A rate as the other side reads it: whole kilobytes a second, rounded down.
pub fn on_the_wire(rate: ByteRate) -> ByteRate {
    ByteRate::from_kilobytes(rate.as_kilobytes())
}
