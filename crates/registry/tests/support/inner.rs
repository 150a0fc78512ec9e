//! A registry in a network of its own, with a peer.

use levee_registry::{LinkId, Mesh, MeshInput, MeshRules, PrivateAddresses, RegistryLimits, Side};
use levee_vocab::{Random, Timestamp};

/// It knows nobody yet, and has this link to its peer; `side` is its own.
pub fn linked(link: LinkId, side: Side) -> Mesh {
    let limits = RegistryLimits {
        private_addresses: PrivateAddresses::Permitted,
        ..RegistryLimits::default()
    };
    let mut mesh = Mesh::new(limits, MeshRules::default(), Random::from_seed(1));
    mesh.handle(Timestamp::ZERO, MeshInput::LinkOpened { link, side });
    mesh
}
