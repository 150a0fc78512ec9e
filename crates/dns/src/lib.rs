//! DNS as the first level of load distribution (R10): records that follow the load.
//!
//! A [`Zone`] is where records are changed: [`RemoteZone`] sends signed updates (RFC 2136, TSIG) to
//! a name server, [`OwnZone`] is one. What is to be changed, and when it is tried again, is decided
//! without I/O. Messages and signatures are hickory's. Nothing here resolves names for others.

mod copies;
mod exchange;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keeper;
mod key;
mod name;
mod remote;
mod server;
mod zone;

pub use copies::{Laggard, wait_until_shown};
pub use keeper::{Addresses, Failure, Input, Keeper, KeeperState, KeeperView, KeptName, Output};
pub use key::{TsigKey, TsigKeyError};
pub use name::{DomainName, DomainNameError};
pub use remote::RemoteZone;
pub use server::{
    Counts, Grant, Keeps, Memory, OwnZone, OwnZoneSettings, Renewal, Save, Weights, ZoneFile,
    ZoneFileError,
};
pub use zone::{Cause, Change, Doing, Edit, Expected, Kind, Record, Value, Zone, ZoneError};
