//! Whether the alias of a rescue server leads to it.
//!
//! Visitors go by the name, so who offers a name that leads elsewhere could send a crowd to a
//! bystander. The name is looked up before anybody is sent there, and from time to time after that.
//! One that cannot be looked up leads nobody anywhere: it is not held against its server, which may
//! have entered it a moment ago.

use std::net::IpAddr;
use std::sync::Arc;

use levee_vocab::WebAddress;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::caller::AddressBook;
use super::Names;
use crate::alias_name::{AliasPlace, LOOKUP_PERIOD, leads_to};
use crate::trust::Denied;

/// An alias that is looked up, once and again.
pub(super) struct Lookup {
    pub(super) alias: WebAddress,
    /// Where its rescue server says that it is.
    pub(super) told: IpAddr,
    pub(super) book: Arc<dyn AddressBook>,
    /// Learns what is found, for those who look at what visitors get.
    pub(super) place: Arc<AliasPlace>,
}

impl Lookup {
    /// Looks it up now.
    ///
    /// # Errors
    /// Where it leads, if that is elsewhere.
    ///
    /// Cancel safety: dropped half-way, nothing has happened.
    pub(super) async fn look(&self) -> Result<(), Denied> {
        let found = leads_to(&self.alias, self.told, &*self.book).await;
        self.place.note(&found);
        match found.first() {
            Some(first) if !found.contains(&self.told.to_canonical()) => {
                Err(Denied::AliasElsewhere {
                    alias: self.alias.clone(),
                    told: self.told,
                    found: *first,
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Looks again and again, from now on; ends when an alias that is not just believed leads away.
    /// Needs a tokio runtime.
    pub(super) fn watch(self, names: Names) -> JoinSet<Denied> {
        let mut watching = JoinSet::new();
        watching.spawn(async move {
            if names == Names::Believed {
                // Nobody has looked yet, and nobody is let go for what is found.
                let _ = self.look().await;
            }
            loop {
                sleep(LOOKUP_PERIOD).await;
                match (self.look().await, names) {
                    (Err(elsewhere), Names::LookedUp) => return elsewhere,
                    (Err(_), Names::Believed) | (Ok(()), _) => {}
                }
            }
        });
        watching
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use levee_vocab::{HostName, LinkId};
    use tokio::time::Instant;

    use crate::alias_name::AliasPlaces;

    use super::*;

    const TOLD: [u8; 4] = [192, 0, 2, 7];

    /// Every name leads to `after` from some time on, and to the rescue server until then.
    struct Book {
        after: Vec<IpAddr>,
        from: Instant,
        asked: AtomicUsize,
    }

    impl AddressBook for Book {
        fn address_of<'a>(
            &'a self,
            _: &'a HostName,
        ) -> Pin<Box<dyn Future<Output = Option<IpAddr>> + Send + 'a>> {
            Box::pin(async { None })
        }

        fn leads_to<'a>(
            &'a self,
            name: &'a str,
        ) -> Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send + 'a>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                match (Instant::now() < self.from, name) {
                    (true, _) => vec![TOLD.into()],
                    (false, "new-vh1.alice.test.") => vec![],
                    (false, _) => self.after.clone(),
                }
            })
        }
    }

    impl Book {
        fn leading_to(after: &[&str], from: Instant) -> Arc<Self> {
            let after = after.iter().map(|one| one.parse().expect("an address"));
            Arc::new(Self {
                after: after.collect(),
                from,
                asked: AtomicUsize::new(0),
            })
        }
    }

    const LINK: LinkId = LinkId::Outbound(1);

    fn lookup(host: &str, told: [u8; 4], book: Arc<Book>, places: &AliasPlaces) -> Lookup {
        let host = host.parse().expect("a name");
        Lookup {
            alias: WebAddress { host, port: 8080 },
            told: told.into(),
            book,
            place: places.open(LINK),
        }
    }

    #[tokio::test]
    async fn a_name_leads_home_where_one_of_its_addresses_is_told() {
        let check = async |host: &str, told: [u8; 4], found: &[&str]| {
            let book = Book::leading_to(found, Instant::now());
            let places = AliasPlaces::default();
            lookup(host, told, book, &places).look().await.is_ok()
        };
        assert!(check("www-vh1.alice.test", TOLD, &["192.0.2.7"]).await);
        assert!(check("www-vh1.alice.test", TOLD, &["2001:db8::7", "192.0.2.7"]).await);
        assert!(check("www-vh1.alice.test", TOLD, &["::ffff:192.0.2.7"]).await);
        // Nobody finds it.
        assert!(check("www-vh1.alice.test", TOLD, &[]).await);
        assert!(!check("www.bystander.test", TOLD, &["192.0.2.8"]).await);
        // It was found in a search domain of this machine.
        assert!(check("new-vh1.alice.test", TOLD, &["192.0.2.8"]).await);
        // Browsers do not ask for these.
        assert!(check("www-vh1.localhost", [127, 0, 0, 9], &["127.0.0.1"]).await);
        assert!(!check("www-vh1.localhost", TOLD, &["127.0.0.1"]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_leads_away_later_is_noticed() {
        let book = Book::leading_to(&["192.0.2.8"], Instant::now() + LOOKUP_PERIOD * 10);
        let began = Instant::now();
        let places = AliasPlaces::default();
        let lookup = lookup("www-vh1.alice.test", TOLD, book, &places);
        let mut watching = lookup.watch(Names::LookedUp);
        let found = watching.join_next().await.expect("a task");
        let found = found.expect("no panic");
        assert_eq!(found.cause(), "alias_elsewhere");
        assert!(found.to_string().contains("leads to 192.0.2.8"), "{found}");
        assert!(began.elapsed() >= LOOKUP_PERIOD * 10);
    }

    /// However often one looks at what visitors get.
    #[tokio::test(start_paused = true)]
    async fn what_is_found_is_known_to_others_and_looked_up_once_a_period() {
        let home: IpAddr = TOLD.into();
        let beside: IpAddr = [192, 0, 2, 9].into();
        let later = Instant::now() + LOOKUP_PERIOD * 2;
        let book = Book::leading_to(&["192.0.2.7", "192.0.2.9"], later);
        let places = AliasPlaces::default();
        assert_eq!(places.of(LINK), [] as [IpAddr; 0]);
        let lookup = lookup("www-vh1.alice.test", TOLD, Arc::clone(&book), &places);
        lookup.look().await.expect("it leads home");
        assert_eq!(places.of(LINK), [home]);
        let mut watching = lookup.watch(Names::LookedUp);
        while places.of(LINK) == [home] {
            sleep(LOOKUP_PERIOD / 100).await;
        }
        assert_eq!(places.of(LINK), [home, beside]);
        assert_eq!(book.asked.load(Ordering::Relaxed), 3);
        watching.shutdown().await;
        assert_eq!(places.of(LINK), [] as [IpAddr; 0], "its link is gone");
    }
}
