//! Whether an address in a message may be believed.
//!
//! An SOS makes a rescue server fetch from the address that it names. If anybody could name any
//! address, a rescue server could be sent against a bystander, or into its own network. So the
//! address must be that of the peer or stand in the registry under the caller's name, and addresses
//! of inner networks need the operator's permission.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use levee_registry::PrivateAddresses;
use levee_vocab::HostName;
use levee_wire::AddressRange;
use thiserror::Error;
use tokio::net::lookup_host;
use tokio::time::timeout;

/// Knows the registered addresses of sites.
pub trait AddressBook: Send + Sync + 'static {
    /// The address that `site` has registered; none if it has none or nobody can tell now.
    fn address_of<'a>(
        &'a self,
        site: &'a HostName,
    ) -> Pin<Box<dyn Future<Output = Option<IpAddr>> + Send + 'a>>;

    /// Where visitors of `name` go, by the resolver of this machine; nowhere if it has no address
    /// or nobody can tell now. Set a deadline.
    fn leads_to<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send + 'a>> {
        Box::pin(async move {
            let found = lookup_host((name, 0)).await;
            let found = found.into_iter().flatten();
            found.map(|address| address.ip()).collect()
        })
    }
}

/// Why an address is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum AddressRefusal {
    #[error("{0} is no address that a server can have")]
    Unusable(IpAddr),
    #[error("{0} is of a private network, and community.allow_private is off")]
    Private(IpAddr),
    #[error("{0} is neither the address of the peer nor the registered one of the site")]
    Foreign(IpAddr),
}

/// Whether a server may be at `address` at all.
pub(super) fn check_range(
    address: IpAddr,
    private: PrivateAddresses,
) -> Result<(), AddressRefusal> {
    match (AddressRange::of(address), private) {
        (AddressRange::Public, _) => Ok(()),
        (AddressRange::Private, PrivateAddresses::Permitted) => Ok(()),
        (AddressRange::Private, PrivateAddresses::Refused) => Err(AddressRefusal::Private(address)),
        (AddressRange::Unusable, _) => Err(AddressRefusal::Unusable(address)),
    }
}

/// Whether anybody of the community may be at `address`.
pub(crate) fn may_be_at(address: IpAddr, private: PrivateAddresses) -> bool {
    check_range(address, private).is_ok()
}

/// Whether the caller `site`, which speaks from `peer`, may be at `address`.
///
/// Asks the address book only when the addresses differ, and not for long. Dropped half-way,
/// nothing has happened.
pub(super) async fn check_caller(
    site: &HostName,
    address: IpAddr,
    peer: IpAddr,
    private: PrivateAddresses,
    book: &dyn AddressBook,
) -> Result<(), AddressRefusal> {
    check_range(address, private)?;
    if address.to_canonical() == peer.to_canonical() {
        return Ok(());
    }
    match timeout(LOOKUP_WAIT, book.address_of(site)).await {
        Ok(Some(known)) if known.to_canonical() == address.to_canonical() => Ok(()),
        Ok(_) | Err(_) => Err(AddressRefusal::Foreign(address)),
    }
}

/// The caller waits two seconds for its answer in all.
const LOOKUP_WAIT: Duration = Duration::from_secs(1);
