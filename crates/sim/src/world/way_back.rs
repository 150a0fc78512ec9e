//! Visitors who are sent back to their origin (H5), by the decisions that the server runs: only the
//! MAC is missing, since nobody here forges anything. A word is the key that it would be signed by.

use levee_control::{Comeback, OriginRoute, Signature, WayBack};
use levee_vocab::{FetchKey, LinkId};

/// What a visitor's URL says of where he has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing.
    None,
    /// Who has this key sent him back.
    Signed(FetchKey),
    /// Somebody without a key did.
    Unsigned,
    /// His origin has redirected him although he came back.
    Marked,
}

impl Word {
    /// What an origin thinks of it whose rescue servers have these keys.
    pub fn at_origin(self, keys: &[(LinkId, FetchKey)]) -> Comeback {
        match self {
            Self::None => Comeback::None,
            Self::Signed(key) if keys.iter().any(|known| known.1 == key) => Comeback::Believed,
            Self::Signed(_) => Comeback::Doubtful,
            Self::Unsigned => Comeback::Unsigned,
            Self::Marked => Comeback::Returned,
        }
    }

    /// With what a visitor who has this word is sent back from an alias; none where he is not.
    pub fn back(self, route: &OriginRoute) -> Option<Self> {
        let comeback = match self {
            Self::None => Comeback::None,
            Self::Signed(_) | Self::Unsigned | Self::Marked => Comeback::Doubtful,
        };
        let signature = match route.key {
            Some(_) => Signature::Possible,
            None => Signature::Impossible,
        };
        match WayBack::of(route.phase, comeback, signature) {
            WayBack::None => None,
            WayBack::Signed => route.key.map(Self::Signed),
            WayBack::Unsigned => Some(Self::Unsigned),
            WayBack::Kept => Some(self),
        }
    }
}
