//! Answers of several parts, of files and of cached objects.

use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::Core;
use super::serve::Visit;
use crate::answer::{Answer, Body, FileHandle};
use crate::cache::{self, Stored};
use crate::files::{Contents, FileEntry};
use crate::flow::{Flow, Parts, Whole};
use crate::response::push_status;

impl Core {
    /// Parts of a file.
    pub(super) fn file_parts(
        &mut self,
        visit: &Visit,
        entry: &FileEntry,
        ranges: Box<[Range<u64>]>,
    ) -> Answer {
        let whole = match &entry.contents {
            Contents::Memory(bytes) => Whole::Memory(bytes.clone()),
            Contents::Disk(file) => Whole::File(FileHandle::Plain(Arc::clone(file))),
        };
        let mut lines = entry.validators_and_type().into_bytes();
        lines.extend_from_slice(self.date.line());
        self.parts(visit, &lines, (whole, entry.size), ranges)
    }

    /// Parts of a cached object, which has these header lines.
    pub(super) fn stored_parts(
        &mut self,
        visit: &Visit,
        stored: &Stored,
        lines: &[u8],
        ranges: Box<[Range<u64>]>,
    ) -> Answer {
        let whole = match &stored.body {
            cache::Body::Memory(bytes) => Whole::Memory(bytes.clone()),
            cache::Body::File { file, .. } => Whole::File(FileHandle::Stored(Arc::clone(file))),
        };
        self.parts(visit, lines, (whole, stored.body.length()), ranges)
    }

    fn parts(
        &mut self,
        visit: &Visit,
        lines: &[u8],
        (whole, size): (Whole, u64),
        ranges: Box<[Range<u64>]>,
    ) -> Answer {
        let parts = Parts::new(whole, size, ranges, lines, &RandomState::default());
        let mut head = self.pool.take();
        push_status(206, &mut head);
        parts.push_lines(lines, &mut head);
        head.extend_from_slice(visit.closing.line());
        head.extend_from_slice(b"\r\n");
        let mut answer = Answer::new(head, Body::Empty, visit.kind, 206);
        answer.flow = Some(Box::new(Flow::of_parts(parts, visit.closing)));
        answer
    }
}
