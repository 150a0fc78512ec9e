//! Where the name of an alias leads those who visit it.
//!
//! A rescue server tells its alias and its address. Visitors go by the name, so the name is what
//! counts for whoever wants to know where they go: before they are sent there, and when one looks
//! at what they get. The link to the rescue server looks the name up, once for both.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use levee_net::Shared;
use levee_registry::PrivateAddresses;
use levee_vocab::{LinkId, WebAddress};
use tokio::time::timeout;

use crate::rescue_link::{AddressBook, may_be_at};

/// Where the aliases of our rescue servers lead, as the links to them found last. Cheap to clone,
/// all clones know the same.
#[derive(Clone, Debug, Default)]
pub struct AliasPlaces(Arc<Shared<BTreeMap<LinkId, Weak<AliasPlace>>>>);

/// Where one of them leads. Known for as long as whoever looks it up holds this.
#[derive(Debug, Default)]
pub(crate) struct AliasPlace(Shared<Vec<IpAddr>>);

impl AliasPlaces {
    /// The addresses to which the alias of the rescue server at `link` leads. None where nobody can
    /// tell, or where the link has ended.
    pub fn of(&self, link: LinkId) -> Vec<IpAddr> {
        let place = self.0.with(|places| places.get(&link)?.upgrade());
        place.map_or_else(Vec::new, |place| place.0.with(|found| found.clone()))
    }

    /// The place of the alias that was offered at `link`, not known yet.
    pub(crate) fn open(&self, link: LinkId) -> Arc<AliasPlace> {
        let place = Arc::default();
        self.0.with(|places| {
            places.retain(|_, place| place.strong_count() > 0);
            places.insert(link, Arc::downgrade(&place));
        });
        place
    }
}

impl AliasPlace {
    /// That is where it leads now.
    pub(crate) fn note(&self, found: &[IpAddr]) {
        self.0.with(|known| found.clone_into(known));
    }
}

/// The addresses that visitors of `alias` may come to, where the server behind it says that it is
/// at `told`. None where nobody can tell now, and where the name leads home whatever DNS says.
///
/// Cancel safety: dropped half-way, nothing has happened.
pub(crate) async fn leads_to(
    alias: &WebAddress,
    told: IpAddr,
    book: &dyn AddressBook,
) -> Vec<IpAddr> {
    //= RFC 6761 section 6.3: "Users may assume that IPv4 and IPv6 address queries for localhost
    //= names will always resolve to the respective IP loopback address."
    if alias.host.as_str().ends_with(".localhost") && told.is_loopback() {
        return Vec::new();
    }
    let found = timeout(LOOKUP_WAIT, look_up(alias.host.as_str(), told, book)).await;
    found.unwrap_or_default()
}

async fn look_up(name: &str, told: IpAddr, book: &dyn AddressBook) -> Vec<IpAddr> {
    let found = canonical(book.leads_to(name).await);
    if found.contains(&told.to_canonical()) || name.parse::<IpAddr>().is_ok() {
        return found;
    }
    // A name that is not there yet may have been found in a search domain of this machine
    // (resolv.conf). Visitors have others.
    canonical(book.leads_to(&format!("{name}.")).await)
}

/// The addresses at which one may look, of those to which an alias was `found` to lead. Where the
/// one that was told is not among them, nowhere else: its link ends for that, and it is no liar. A
/// name must not make us ask machines behind us.
pub(crate) fn to_look_at(
    found: Vec<IpAddr>,
    told: IpAddr,
    private: PrivateAddresses,
) -> Vec<IpAddr> {
    if !found.contains(&told.to_canonical()) {
        return vec![told];
    }
    let found = found.into_iter();
    found
        .filter(|address| may_be_at(*address, private))
        .collect()
}

fn canonical(found: Vec<IpAddr>) -> Vec<IpAddr> {
    let found = found.into_iter();
    found.map(|address| address.to_canonical()).collect()
}

/// A name is looked up no more often: resolvers remember a record for about as long, and one that
/// is silent makes whoever asks wait.
pub(crate) const LOOKUP_PERIOD: Duration = Duration::from_secs(30);
/// An answer from next door takes milliseconds, and a crowd may wait for this one.
const LOOKUP_WAIT: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_where_visitors_go_and_never_behind_us() {
        let addresses = |all: &[&str]| {
            let all = all.iter().map(|one| one.parse().expect("an address"));
            all.collect::<Vec<IpAddr>>()
        };
        let told: IpAddr = [9, 9, 9, 9].into();
        let look = |found: &[&str], private| to_look_at(addresses(found), told, private);
        let (refused, permitted) = (PrivateAddresses::Refused, PrivateAddresses::Permitted);
        let both = ["9.9.9.9", "2620:fe::9"];
        assert_eq!(look(&both, refused), addresses(&both));
        // Its records have lapsed, and a parking page has come in their place.
        assert_eq!(look(&["8.8.8.8"], refused), [told]);
        assert_eq!(look(&[], refused), [told]);
        let inside = ["9.9.9.9", "10.0.0.1"];
        assert_eq!(look(&inside, refused), [told]);
        assert_eq!(look(&inside, permitted), addresses(&inside));
    }
}
