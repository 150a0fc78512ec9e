//! The shared words of Levee: time, rates, names, ids, seeded randomness.
//!
//! Every other crate speaks in these types, so that a bare number never has to be guessed at.
//! Nothing here reads a clock, a socket or the operating system's randomness.

mod address_block;
mod alias_https;
mod host;
mod ids;
mod misses;
mod network;
mod peers;
mod purge;
mod random;
mod rate;
mod state;
mod time;

pub use address_block::{AddressBlock, AddressBlockError};
pub use alias_https::AliasHttps;
pub use host::{HostName, HostNameError, WebAddress};
pub use ids::{FetchKey, FetchKeyError, LinkId};
pub use misses::Misses;
pub use network::Network;
pub use peers::{PEERS_MAX, Peer, Peers};
pub use purge::{
    PURGE_TAGS_MAX, Purge, PurgeError, PurgeKind, PurgeScope, PurgeTarget, TAG_BYTES_MAX, Tag,
};
pub use random::Random;
pub use rate::ByteRate;
pub use state::{Resource, ServerState};
pub use time::Timestamp;
