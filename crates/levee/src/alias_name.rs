//! Where the name of an alias leads those who visit it.
//!
//! A rescue server tells its alias and its address. Visitors go by the name, so the name is what
//! counts for whoever wants to know where they go: before they are sent there, and when one looks
//! at what they get.

use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::WebAddress;
use tokio::time::timeout;

use crate::rescue_link::AddressBook;

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
    let found = timeout(LOOKUP_WAIT, book.leads_to(alias)).await;
    let found = found.unwrap_or_default().into_iter();
    found.map(|address| address.to_canonical()).collect()
}

/// An answer from next door takes milliseconds, and a crowd may wait for this one.
const LOOKUP_WAIT: Duration = Duration::from_millis(300);
