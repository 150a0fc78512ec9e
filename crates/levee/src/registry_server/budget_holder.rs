//! Whose a budget is, over all connections that he makes.

use std::net::IpAddr;

use levee_trust::PublicKey;
use levee_vocab::Network;

use crate::trust::Counterpart;

/// Who sends something: two connections of one sender are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BudgetHolder {
    /// In a closed community: who has this key, wherever he speaks from.
    Key(PublicKey),
    /// In an open one, where nobody proves anything: this network.
    Network(Network),
}

impl BudgetHolder {
    /// Who proved to be `other`, and speaks from `address`.
    pub(super) const fn of(other: Counterpart, address: IpAddr) -> Self {
        match other {
            Counterpart::Key(key) => Self::Key(key),
            Counterpart::Anybody => Self::Network(Network::of(address)),
        }
    }
}
