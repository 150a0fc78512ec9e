//! The part of a body that has come, as far as it is still held.
//!
//! ```text
//!   0 ........ file_end=start ........ tail ... received
//!   |  in a file  |  pieces in memory  |  tail  |
//! ```
//!
//! Readers keep their own positions, so any number of them share one buffer. Small pieces are
//! gathered in a tail, so that a source that sends byte by byte does not cost us an allocation
//! each.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::disk::StoredFile;

/// Pieces below this size are gathered. One memory page: the bookkeeping of a piece is 1 % of it.
const PIECE_MIN: usize = 4096;

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    File {
        file: Arc<StoredFile>,
        offset: u64,
        length: u64,
    },
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    file: Option<Arc<StoredFile>>,
    file_end: u64,
    start: u64,
    /// Each with the position of its end.
    pieces: VecDeque<(u64, Bytes)>,
    tail: BytesMut,
    received: u64,
}

impl Buffer {
    /// How much of the body has come.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How much of it is held in memory.
    pub fn held(&self) -> u64 {
        self.received - self.start
    }

    /// Whether a reader at the very beginning still finds everything.
    pub fn is_whole(&self) -> bool {
        self.start == self.file_end
    }

    /// Adds what has come.
    pub fn push(&mut self, piece: Bytes) {
        self.received += piece.len() as u64;
        if piece.len() < PIECE_MIN {
            // Copied, because a small piece may hold a large network buffer alive.
            self.tail.extend_from_slice(&piece);
            if self.tail.len() >= PIECE_MIN {
                self.close_tail();
            }
        } else {
            self.close_tail();
            self.pieces.push_back((self.received, piece));
        }
    }

    /// What a reader at `position` can have now.
    pub fn read(&self, position: u64) -> Option<Piece> {
        if position < self.file_end {
            let file = self.file.as_ref()?;
            return Some(Piece::File {
                file: Arc::clone(file),
                offset: position,
                length: self.file_end - position,
            });
        }
        assert!(
            position >= self.start,
            "no reader is left behind what is held"
        );
        let index = self.pieces.partition_point(|(end, _)| *end <= position);
        if let Some((end, piece)) = self.pieces.get(index) {
            let left = usize::try_from(end - position).ok()?;
            return Some(Piece::Bytes(piece.slice(piece.len() - left..)));
        }
        let left = usize::try_from(self.received - position).ok()?;
        (left > 0)
            .then(|| Piece::Bytes(Bytes::copy_from_slice(&self.tail[self.tail.len() - left..])))
    }

    /// Everything that is in memory, for the disk.
    pub fn pieces(&mut self) -> Vec<Bytes> {
        self.close_tail();
        self.pieces.iter().map(|(_, piece)| piece.clone()).collect()
    }

    /// `file` holds everything that came before `end`; memory lets go of it.
    pub fn hand_to_file(&mut self, file: &Arc<StoredFile>, end: u64) {
        self.file = Some(Arc::clone(file));
        self.file_end = end;
        self.forget_before(end);
    }

    /// No reader will ask for anything before `position` again.
    pub fn forget_before(&mut self, position: u64) {
        if position >= self.received {
            self.close_tail();
        }
        while let Some((end, _)) = self.pieces.front()
            && *end <= position
        {
            self.start = *end;
            self.pieces.pop_front();
        }
    }

    /// The whole body in one piece of its exact size, where all of it is in memory.
    pub fn gather(&mut self) -> Option<Bytes> {
        if self.file_end > 0 || self.start > 0 {
            return None;
        }
        self.close_tail();
        let mut whole = Vec::with_capacity(usize::try_from(self.received).ok()?);
        for (_, piece) in &self.pieces {
            whole.extend_from_slice(piece);
        }
        Some(whole.into())
    }

    fn close_tail(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let begin = self.pieces.back().map_or(self.start, |(end, _)| *end);
        // An exact copy: what the tail has grown to is not what the body weighs.
        let piece = Bytes::copy_from_slice(&self.tail);
        self.tail.clear();
        self.pieces.push_back((begin + piece.len() as u64, piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(buffer: &Buffer, mut position: u64) -> Vec<u8> {
        let mut read = Vec::new();
        while let Some(Piece::Bytes(piece)) = buffer.read(position) {
            position += piece.len() as u64;
            read.extend_from_slice(&piece);
        }
        read
    }

    proptest! {
        /// Readers at any position see the same bytes, whatever pieces they came in.
        #[test]
        fn readers_see_the_same_bytes_at_any_position(
            sizes in prop::collection::vec(prop_oneof![1..20_usize, 1..9000_usize], 1..40),
            cut in 0.0..1.0_f64,
        ) {
            let mut buffer = Buffer::default();
            let mut sent = Vec::new();
            for (number, size) in sizes.iter().enumerate() {
                let piece: Vec<u8> = (0..*size).map(|at| (at * 7 + number) as u8).collect();
                sent.extend_from_slice(&piece);
                buffer.push(piece.into());
                prop_assert_eq!(buffer.received(), sent.len() as u64);
                prop_assert_eq!(buffer.held(), sent.len() as u64);
            }
            let position = (sent.len() as f64 * cut) as usize;
            prop_assert_eq!(read_all(&buffer, position as u64), &sent[position..]);
            prop_assert_eq!(&buffer.gather().unwrap()[..], &sent[..]);
            buffer.forget_before(position as u64);
            prop_assert_eq!(read_all(&buffer, position as u64), &sent[position..]);
            prop_assert!(buffer.held() >= (sent.len() - position) as u64);
            buffer.forget_before(sent.len() as u64);
            prop_assert_eq!(buffer.held(), 0);
        }
    }
}
