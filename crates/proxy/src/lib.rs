//! Under construction.

mod cache;
mod cacheability;
mod disk;
mod fetch;
mod flight;

pub use cache::{Body, Freshness, Stored};
pub use cacheability::{Credentials, Sharing};
pub use disk::{Disk, DiskError, DiskFull, StoredFile};
pub use fetch::{Clock, DiskSettings, FetchCounters, FetchSettings, Fetcher, SourceCounters};
pub use flight::{
    BodyReceiver, BodySender, BrokenOff, CacheResult, Fault, FetchError, Miss, ObjectKey,
    Overloaded, Progress, Purpose, Pushed, RequestHeaders, ResponseHead, Retry, Source, Space,
    Waiting, Waker, body_channel,
};
