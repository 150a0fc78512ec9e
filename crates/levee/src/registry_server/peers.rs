//! The other registries of the mesh: who they are, and which link there is to each.
//!
//! Both ends of a pair may open a link at the same time. Then that of the registry with the smaller
//! number stays, which both can tell without asking.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use levee_registry::{LinkId, Side};
use levee_wire::mesh::RegistryId;
use tokio::sync::mpsc;

/// A link that is open.
#[derive(Debug)]
pub(super) struct OpenLink {
    /// The registry at the other end.
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
    /// Its number, once it has said so.
    pub(super) registry: Option<RegistryId>,
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

    pub(super) fn linked(&mut self, peer: usize, registry: RegistryId) {
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

/// Decides about a link to `registry` of which our end would be `side`.
pub(super) fn admit(
    own: RegistryId,
    registry: RegistryId,
    side: Side,
    links: &BTreeMap<LinkId, OpenLink>,
) -> Admission {
    if registry == own {
        return Admission::Already;
    }
    let Some((id, open)) = links.iter().find(|(_, open)| open.registry == registry) else {
        return Admission::Open(None);
    };
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
                registry,
                side,
                outbox,
                number: 1,
                place: String::new(),
            };
            BTreeMap::from([(LinkId(1), open)])
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
}
