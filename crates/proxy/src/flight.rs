//! Flights: how a core asks for an object that is not in its cache, and reads it while it comes.
//!
//! A miss becomes a flight. One fetch task fills it, any number of connections on any core read it,
//! each at its own pace. The fetch belongs to nobody among them: a visitor that leaves takes
//! nothing away from the others.
//!
//! ```text
//!  core: Fetcher::lookup ── hit ──▶ Stored
//!             │ none
//!        Fetcher::ask ──▶ Waiting::read ──▶ Nothing | Head | Body | File | End | Failed
//!                             ▲   │ Nothing: park the connection
//!                  Waker::wake └───┘
//! ```
//!
//! Nothing here blocks and nothing here does I/O; see `fetch` for who fills a flight.

mod buffer;
mod cache_status;
mod error;
mod head;
mod key;
mod reader;
mod source;
mod stream;
mod upload;
mod waiting;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use cache_status::{Forwarding, Why};
pub(crate) use cache_status::{push_forwarded, push_hit};
pub use error::{Fault, FetchError, Overloaded, Retry};
pub use head::{Reading, ResponseHead};
pub use key::{ObjectKey, ObjectRef, RequestHeaders, Space, SpaceRef, Spaces};
pub(crate) use reader::{Asker, FIRST, Kept, NotJoined, Party};
pub use source::{Company, Miss, Place, Purpose, Source};
pub(crate) use stream::Flight;
pub(crate) use upload::UploadWatch;
pub use upload::{BodyReceiver, BodySender, BrokenOff, Pushed, body_channel, tunnel_channel};
pub use waiting::{CacheResult, Progress, Waiting};

/// How the fetch side tells a core that one of its connections can go on. Implemented by the core's
/// mailbox. May be called from any thread, also when nothing new has come; must not block.
pub trait Waker: Send + Sync {
    /// Connection `connection` of this core should read its [`Waiting`] or push its body again.
    fn wake(&self, connection: u64);
}

/// Locks, also where another thread died while it held the lock: what our locks guard is whole
/// between any two statements, and one panic must not spread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
