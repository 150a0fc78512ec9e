//! Who a site is, and what it may do in a closed community (M1, M2).
//!
//! [`Identity`] is a site's secret key, [`PublicKey`] its name that cannot be forged. An authority
//! signs a [`MemberList`]; [`Roster`] asks the newest one who somebody is, and [`may`] is the one
//! table of what members may do. [`ReplayWindow`] knows signed messages again. Nothing here reads a
//! clock or a file: the shell says what time it is and carries the texts.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keys;
mod member_list;
mod replay;
mod rights;
mod roster;
mod signed_list;
mod stamp;

pub use keys::{BadSignature, Identity, KeyError, PublicKey, Purpose, Signature};
pub use member_list::{Expelled, ListFull, MEMBERS_MAX, Member, MemberList, REASON_MAX, Role};
pub use replay::{ReplayWindow, STAMPS_PER_KEY_MAX, Stale};
pub use rights::{Deed, may};
pub use roster::{Membership, NotAMember, Roster};
pub use signed_list::{LIST_BYTES_MAX, ListError, SignedList};
pub use stamp::{CLOCK_SKEW_MAX, Stamps, UnixMillis};
