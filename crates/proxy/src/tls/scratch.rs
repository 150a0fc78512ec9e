//! Buffers that all TLS connections of a thread pass their bytes through.
//!
//! What is in them is used or copied before the call returns, so that a connection without anything
//! under way has no buffer at all.

use std::cell::RefCell;

use super::session::{MESSAGE_EXTRA, RECORD, RECORD_EXTRA};

/// Most records encrypted at once: a call of the kernel for each 64 KiB.
pub(super) const RECORDS_MAX: usize = 4;
/// Room for what is read: several records, and for the one that needs most of it.
const INPUT: usize = 4 * (RECORD + 2048);
const OUTPUT: usize = RECORDS_MAX * (RECORD + RECORD_EXTRA) + 2 * MESSAGE_EXTRA;

/// See the head of this file.
pub(super) struct Scratch {
    /// Records as they came.
    pub input: Box<[u8]>,
    /// Plaintext gathered from several places.
    pub plain: Box<[u8]>,
    /// Records to be sent.
    pub output: Box<[u8]>,
}

thread_local! {
    static SCRATCH: RefCell<Option<Box<Scratch>>> = const { RefCell::new(None) };
}

/// Lends the buffers of this thread.
pub(super) fn with<R>(work: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(|scratch| work(scratch.get_or_insert_with(Scratch::new)))
}

impl Scratch {
    fn new() -> Box<Self> {
        let room = |bytes: usize| vec![0; bytes].into_boxed_slice();
        Box::new(Self {
            input: room(INPUT),
            plain: room(RECORDS_MAX * RECORD),
            output: room(OUTPUT),
        })
    }
}
