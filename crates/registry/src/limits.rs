//! How much a registry takes, and from whom.

use std::net::IpAddr;
use std::time::Duration;

use levee_wire::AddressRange;
use levee_wire::registry::Refusal;

/// Whose address a site may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRule {
    /// Its own: that from which it speaks.
    AskersOwn,
    /// Any; for communities that trust all who can reach the registry.
    Any,
}

/// Whether addresses of inner networks may be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// No: a registry on the internet.
    Refused,
    /// Yes: a registry on one machine or in one network. A site that speaks from a private address
    /// may then also register a public one, because it may stand behind an address translator.
    Permitted,
}

/// How much a registry takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryLimits {
    /// Most entries.
    pub entries_max: usize,
    /// Most entries that one address registers; of IPv6, one network (/64).
    pub entries_per_address_max: usize,
    /// Shortest lifetime that is granted.
    pub lifetime_min: Duration,
    /// Longest lifetime that is granted.
    pub lifetime_max: Duration,
    /// How far the counter of a site may be ahead of the registry's clock.
    pub clock_ahead_max: Duration,
    /// Most entries that one search finds.
    pub found_max: usize,
    /// Most entries that one search looks at: where one domain fills the registry, a search for
    /// diverse ones must not cost all of it.
    pub looked_at_max: usize,
    /// Whose address may be registered.
    pub address_rule: AddressRule,
    /// Whether addresses of inner networks may be registered.
    pub private_addresses: PrivateAddresses,
}

impl Default for RegistryLimits {
    fn default() -> Self {
        Self {
            // Some 4 MB; a community beyond that wants a mesh.
            entries_max: 10_000,
            // Sites of one household or one small provider share an address.
            entries_per_address_max: 64,
            // Below this, registrations alone would keep a thousand sites' registry busy.
            lifetime_min: Duration::from_secs(2),
            // A site that died is offered for at most this long.
            lifetime_max: Duration::from_secs(3600),
            // Clocks that nobody sets are wrong by minutes.
            clock_ahead_max: Duration::from_secs(600),
            found_max: 64,
            looked_at_max: 1024,
            address_rule: AddressRule::AskersOwn,
            private_addresses: PrivateAddresses::Refused,
        }
    }
}

impl RegistryLimits {
    /// Whether `asker` may register `address`.
    ///
    /// # Errors
    /// `AddressRefused` where it may not.
    pub fn check_address(&self, asker: IpAddr, address: IpAddr) -> Result<(), Refusal> {
        let private = self.private_addresses;
        let is_permitted = match (AddressRange::of(address), private) {
            (AddressRange::Public, _) => true,
            (AddressRange::Private, PrivateAddresses::Permitted) => true,
            (AddressRange::Private, PrivateAddresses::Refused) => false,
            (AddressRange::Unusable, _) => false,
        };
        let is_trusted = match self.address_rule {
            AddressRule::Any => true,
            AddressRule::AskersOwn => {
                let is_neighbour = AddressRange::of(asker) == AddressRange::Private;
                asker == address || private == PrivateAddresses::Permitted && is_neighbour
            }
        };
        match is_permitted && is_trusted {
            true => Ok(()),
            false => Err(Refusal::AddressRefused),
        }
    }

    /// Whether a site's counter can be true while the registry's clock shows `clock`, both in
    /// milliseconds since 1970: one from the future would outlast all that the site says later.
    ///
    /// # Errors
    /// `FromTheFuture` where it cannot.
    pub fn check_stamp(&self, stamp: u64, clock: u64) -> Result<(), Refusal> {
        let ahead = u64::try_from(self.clock_ahead_max.as_millis()).unwrap_or(u64::MAX);
        match stamp <= clock.saturating_add(ahead) {
            true => Ok(()),
            false => Err(Refusal::FromTheFuture),
        }
    }
}
