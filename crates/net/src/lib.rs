//! The operating system, as the rest of Levee sees it: sockets, epoll, clocks, messages between
//! threads, what TCP knows about a connection, what the process may use.
//!
//! Everything here is a thin, safe face over system calls. It decides nothing: no protocol, no
//! limit, no retry. This is the only crate that may contain `unsafe`, and it does so only where
//! neither rustix nor socket2 has a safe call.
#![allow(unsafe_code)]

mod allocations;
mod allocator;
mod clock;
mod glance;
mod inherited;
mod listen_address;
mod listener;
mod mailbox;
mod options;
mod poller;
mod process;
mod shared;
mod socket;
mod socket_file;
mod tcp_info;

pub use allocations::CountingAllocator;
#[cfg(not(fuzzing))]
pub use allocator::Allocator;
pub use allocator::keep_nothing_freed;
pub use clock::Clock;
pub use glance::{local_address, peek, take};
pub use inherited::Inherited;
pub use listen_address::{ListenAddress, ListenAddressError};
pub use listener::{Accepted, Listener, ListenerError, PortSharing};
pub use mailbox::{Mailbox, Sender};
pub use poller::{Poller, Readiness};
pub use process::{cpu_time, raise_open_files, thread_cpu_time};
pub use shared::Shared;
pub use socket::{Sent, Socket};
pub use tcp_info::TcpInfo;
