//! The other registries of the mesh: who they are, and which link there is to each.
//!
//! Both ends of a pair may open a link at the same time. Then that of the registry with the smaller
//! number stays, which both can tell without asking.
//!
//! A number is what a registry says of itself. In a closed community it counts for nothing by
//! itself: a link belongs to who has proved a key, and each key has one. So one that says another's
//! number ends nobody's link, and one that says many numbers has no more links than others.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use levee_registry::{LinkId, Side};
use levee_trust::PublicKey;
use levee_wire::mesh::RegistryId;
use tokio::sync::mpsc;

use crate::trust::Counterpart;

/// Whose a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// In an open community: who says this number.
    Number(RegistryId),
    /// In a closed one: who has this key, whatever number it says.
    Key(PublicKey),
}

impl Holder {
    /// Who says that it is `registry`, at the other end of a connection.
    pub(super) const fn of(registry: RegistryId, other: Counterpart) -> Self {
        match other {
            Counterpart::Anybody => Self::Number(registry),
            Counterpart::Key(key) => Self::Key(key),
        }
    }
}

/// A link that is open.
#[derive(Debug)]
pub(super) struct OpenLink {
    /// Whose it is.
    pub(super) holder: Holder,
    /// The number that the registry at the other end says.
    pub(super) registry: RegistryId,
    /// Which end is ours.
    pub(super) side: Side,
    /// Where what is to be said goes. The link ends when this is dropped.
    pub(super) outbox: mpsc::Sender<Vec<u8>>,
    /// Number of the next message.
    pub(super) number: u32,
    /// Where it is, for people.
    pub(super) place: String,
}

/// A registry that was named on the command line.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// `host:port` as it was given.
    pub(super) name: String,
    /// What the name stands for, as far as it is known.
    pub(super) addresses: Vec<IpAddr>,
    /// Its number, once it has said so, and whose links are its own.
    pub(super) registry: Option<(RegistryId, Holder)>,
    /// Why there is no link, in a sentence; empty while there is one.
    pub(super) trouble: String,
}

/// All registries that were named on the command line.
#[derive(Clone, Debug)]
pub(super) struct Peers(Vec<Peer>);

impl Peers {
    pub(super) fn new(names: &[String]) -> Self {
        let peers = names.iter().map(|name| Peer {
            name: name.clone(),
            // An address needs no looking up, so that who is faster than we is not turned away.
            addresses: name
                .parse::<SocketAddr>()
                .map(|address| address.ip().to_canonical())
                .into_iter()
                .collect(),
            registry: None,
            trouble: "not tried yet".to_owned(),
        });
        Self(peers.collect())
    }

    pub(super) fn all(&self) -> &[Peer] {
        &self.0
    }

    /// Whether one of them is at `address`.
    pub(super) fn are_at(&self, address: IpAddr) -> bool {
        self.0.iter().any(|peer| peer.addresses.contains(&address))
    }

    pub(super) fn found(&mut self, peer: usize, addresses: Vec<IpAddr>) {
        let canonical = addresses.iter().map(IpAddr::to_canonical);
        self.0[peer].addresses = canonical.collect();
    }

    pub(super) fn away(&mut self, peer: usize, trouble: String) {
        self.0[peer].trouble = trouble;
    }

    pub(super) fn linked(&mut self, peer: usize, registry: (RegistryId, Holder)) {
        self.0[peer].registry = Some(registry);
        self.0[peer].trouble.clear();
    }
}

/// Whether a link may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Yes; this one has to go for it.
    Open(Option<LinkId>),
    /// There is one that stays.
    Already,
}

/// Decides about a link of `holder`, who says that it is `registry`, of which our end would be
/// `side`.
pub(super) fn admit(
    own: RegistryId,
    (registry, holder): (RegistryId, Holder),
    side: Side,
    links: &BTreeMap<LinkId, OpenLink>,
) -> Admission {
    if registry == own {
        return Admission::Already;
    }
    let Some((id, open)) = links.iter().find(|(_, open)| open.holder == holder) else {
        return Admission::Open(None);
    };
    // It was restarted, and its end of the old link is gone.
    if open.registry != registry {
        return Admission::Open(Some(*id));
    }
    let stays = match own < registry {
        true => Side::Opener,
        false => Side::Acceptor,
    };
    // Of two that are alike the older one is dead, and its end has not been noticed here yet.
    match open.side == stays && side != stays {
        true => Admission::Already,
        false => Admission::Open(Some(*id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_keep_the_same_link() {
        let (outbox, _inbox) = mpsc::channel(1);
        let links = |registry, side| {
            let outbox = outbox.clone();
            let open = OpenLink {
                holder: Holder::Number(registry),
                registry,
                side,
                outbox,
                number: 1,
                place: String::new(),
            };
            BTreeMap::from([(LinkId(1), open)])
        };
        let admit = |own, registry, side, links: &BTreeMap<LinkId, OpenLink>| {
            super::admit(own, (registry, Holder::Number(registry)), side, links)
        };
        let (small, large) = (RegistryId(1), RegistryId(2));
        let replaced = Admission::Open(Some(LinkId(1)));
        // The small one has opened a link, and now the large one opens another.
        let at_small = links(large, Side::Opener);
        assert_eq!(
            admit(small, large, Side::Acceptor, &at_small),
            Admission::Already
        );
        assert_eq!(admit(small, large, Side::Opener, &at_small), replaced);
        let at_large = links(small, Side::Acceptor);
        assert_eq!(
            admit(large, small, Side::Opener, &at_large),
            Admission::Already
        );
        assert_eq!(admit(large, small, Side::Acceptor, &at_large), replaced);
        // The large one has opened a link, and now the small one opens another.
        let at_large = links(small, Side::Opener);
        assert_eq!(admit(large, small, Side::Acceptor, &at_large), replaced);
        let at_small = links(large, Side::Acceptor);
        assert_eq!(admit(small, large, Side::Opener, &at_small), replaced);
        assert_eq!(
            admit(small, small, Side::Opener, &at_small),
            Admission::Already
        );
    }

    #[test]
    fn who_says_anothers_number_has_only_a_link_of_its_own() {
        let (outbox, _inbox) = mpsc::channel(1);
        let key = |byte| Holder::Key(PublicKey::from_bytes([byte; 32]));
        let (own, honest, other) = (RegistryId(1), RegistryId(2), RegistryId(3));
        let open = OpenLink {
            holder: key(2),
            registry: honest,
            side: Side::Acceptor,
            outbox,
            number: 1,
            place: String::new(),
        };
        let links = BTreeMap::from([(LinkId(1), open)]);
        for side in [Side::Opener, Side::Acceptor] {
            let liar = admit(own, (honest, key(3)), side, &links);
            assert_eq!(liar, Admission::Open(None));
            // Each key has one link, whatever numbers it says.
            let restarted = admit(own, (other, key(2)), side, &links);
            assert_eq!(restarted, Admission::Open(Some(LinkId(1))));
        }
    }
}
