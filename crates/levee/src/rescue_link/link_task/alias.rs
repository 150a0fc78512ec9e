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
use crate::alias_name::{LOOKUP_PERIOD, leads_to};
use crate::trust::Denied;

/// Looks up `alias` of a rescue server that says it is at `told`.
///
/// # Errors
/// Where it leads, if that is elsewhere.
///
/// Cancel safety: dropped half-way, nothing has happened.
pub(super) async fn look_up(
    alias: &WebAddress,
    told: IpAddr,
    book: &dyn AddressBook,
) -> Result<(), Denied> {
    let found = leads_to(alias, told, book).await;
    match found.first() {
        Some(first) if !found.contains(&told.to_canonical()) => Err(Denied::AliasElsewhere {
            alias: alias.clone(),
            told,
            found: *first,
        }),
        Some(_) | None => Ok(()),
    }
}

/// Looks again and again, from now on; ends when the alias leads away. Needs a tokio runtime.
pub(super) fn watch(
    alias: WebAddress,
    told: IpAddr,
    book: Arc<dyn AddressBook>,
) -> JoinSet<Denied> {
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        loop {
            sleep(LOOKUP_PERIOD).await;
            if let Err(elsewhere) = look_up(&alias, told, &*book).await {
                return elsewhere;
            }
        }
    });
    watching
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;

    use levee_vocab::HostName;
    use tokio::time::Instant;

    use super::*;

    const TOLD: [u8; 4] = [192, 0, 2, 7];

    /// Every name leads to `after` from some time on, and to the rescue server until then.
    struct Book {
        after: Vec<IpAddr>,
        from: Instant,
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
            Box::pin(async move {
                match (Instant::now() < self.from, name) {
                    (true, _) => vec![TOLD.into()],
                    (false, "new-vh1.alice.test.") => vec![],
                    (false, _) => self.after.clone(),
                }
            })
        }
    }

    fn alias(host: &str) -> WebAddress {
        let host = host.parse().expect("a name");
        WebAddress { host, port: 8080 }
    }

    #[tokio::test]
    async fn a_name_leads_home_where_one_of_its_addresses_is_told() {
        let check = async |host: &str, told: [u8; 4], found: &[&str]| {
            let after = found.iter().map(|one| one.parse().expect("an address"));
            let after = after.collect();
            let from = Instant::now();
            let book = Book { after, from };
            look_up(&alias(host), told.into(), &book).await.is_ok()
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
        let elsewhere: IpAddr = [192, 0, 2, 8].into();
        let book = Book {
            after: vec![elsewhere],
            from: Instant::now() + LOOKUP_PERIOD * 10,
        };
        let began = Instant::now();
        let mut watching = watch(alias("www-vh1.alice.test"), TOLD.into(), Arc::new(book));
        let found = watching.join_next().await.expect("a task");
        let found = found.expect("no panic");
        assert_eq!(found.cause(), "alias_elsewhere");
        assert!(found.to_string().contains("leads to 192.0.2.8"), "{found}");
        assert!(began.elapsed() >= LOOKUP_PERIOD * 10);
    }
}
