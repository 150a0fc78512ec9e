//! What one visitor wants of an object that is fetched whole, for all.
//!
//! A fetch for the cache goes without the conditions and ranges of the visitor who caused it, so
//! nobody but us can answer them: 304 where the fresh object is what the visitor has, 206 where it
//! wants a part, cut out of the flight as it comes. Several parts are answered with the whole, as
//! RFC 9110 section 14.2 allows: they would have to be kept until their turn.

use bytes::Bytes;

use super::{Flow, Source};
use crate::files::{Conditions, Judgement, Validators, judge};
use crate::flight::{CacheResult, Progress, ResponseHead};
use crate::request::Request;

/// Conditions that outlive the head in which they stood.
#[derive(Debug)]
pub(crate) struct Wanted {
    if_none_match: Option<Vec<u8>>,
    if_modified_since: Option<Vec<u8>>,
    if_range: Option<Vec<u8>>,
    range: Option<Vec<u8>>,
}

/// The part of a body that is still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    skip: u64,
    left: u64,
}

impl Wanted {
    /// What `request` wants; none where it takes what there is.
    pub fn of(request: &Request<'_, '_>) -> Option<Box<Self>> {
        let conditions = Conditions::for_cache(request);
        let copy = |value: Option<&[u8]>| value.map(<[u8]>::to_vec);
        (!conditions.is_empty()).then(|| {
            Box::new(Self {
                if_none_match: copy(conditions.if_none_match),
                if_modified_since: copy(conditions.if_modified_since),
                if_range: copy(conditions.if_range),
                range: copy(conditions.range),
            })
        })
    }
}

impl Flow {
    /// What of the object the visitor gets.
    pub(super) fn judge(&self, head: &ResponseHead) -> Judgement {
        let (Some(wanted), 200) = (&self.wanted, head.status.as_u16()) else {
            return Judgement::Whole;
        };
        let was_stripped = match &self.source {
            // Its own conditions went along: the upstream has judged them.
            Source::Flight(waiting) => waiting.result() != CacheResult::Passed,
            Source::Gathering { .. } | Source::Parts(_) => false,
        };
        if !was_stripped {
            return Judgement::Whole;
        }
        let conditions = Conditions {
            if_match: None,
            if_unmodified_since: None,
            if_none_match: wanted.if_none_match.as_deref(),
            if_modified_since: wanted.if_modified_since.as_deref(),
            if_range: wanted.if_range.as_deref(),
            range: wanted.range.as_deref().filter(|_| head.length.is_some()),
        };
        let has = Validators {
            etag: head.header("etag"),
            modified: head.header("last-modified"),
            date: head.header("date"),
        };
        match judge(conditions, has, head.length.unwrap_or(u64::MAX)) {
            Judgement::Parts(_) | Judgement::Failed => Judgement::Whole,
            judgement @ (Judgement::Whole
            | Judgement::Part { .. }
            | Judgement::NotModified
            | Judgement::Unsatisfiable) => judgement,
        }
    }
}

impl Flow {
    /// Of what comes, that which is wanted. After the last of it the rest is not waited for.
    pub(super) fn cut(&mut self, progress: Progress) -> Progress {
        let Some(window) = &mut self.window else {
            return progress;
        };
        if window.is_over() {
            return Progress::End;
        }
        window.cut(progress)
    }

    /// The line that tells which part of the whole, of `size` bytes, this is.
    pub(super) fn push_window(&self, size: Option<u64>, out: &mut Vec<u8>) {
        let size = size.unwrap_or_default();
        let part = match (self.status, self.window) {
            (206, Some(Window { skip, left })) => format!("{skip}-{}", skip + left - 1),
            (416, None) if self.wanted.is_some() => "*".to_owned(),
            (_, _) => return,
        };
        out.extend_from_slice(format!("content-range: bytes {part}/{size}\r\n").as_bytes());
    }
}

impl Window {
    pub const fn new(start: u64, end: u64) -> Self {
        Self {
            skip: start,
            left: end - start,
        }
    }

    /// Whether all of it is out.
    pub const fn is_over(self) -> bool {
        self.left == 0
    }

    /// What of the next piece lies in the window.
    pub fn cut(&mut self, progress: Progress) -> Progress {
        match progress {
            Progress::Body(mut bytes) => {
                let (skip, take) = self.advance(bytes.len() as u64);
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                bytes = bytes.slice(index(skip)..index(skip + take));
                Progress::Body(bytes)
            }
            Progress::File {
                file,
                offset,
                length,
            } => match self.advance(length) {
                (_, 0) => Progress::Body(Bytes::new()),
                (skip, length) => Progress::File {
                    file,
                    offset: offset + skip,
                    length,
                },
            },
            other @ (Progress::Nothing
            | Progress::Early(_)
            | Progress::Head(_)
            | Progress::End
            | Progress::Failed(_)) => other,
        }
    }

    /// How many of the next `length` bytes to skip, and how many after them to take.
    fn advance(&mut self, length: u64) -> (u64, u64) {
        let skip = self.skip.min(length);
        let take = self.left.min(length - skip);
        self.skip -= skip;
        self.left -= take;
        (skip, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_cut_out_of_pieces_of_any_size() {
        let whole: Vec<u8> = (0..100).collect();
        for piece in 1..=100 {
            let mut window = Window::new(10, 60);
            let mut got = Vec::new();
            for bytes in whole.chunks(piece) {
                let Progress::Body(bytes) = window.cut(Progress::Body(bytes.to_vec().into()))
                else {
                    panic!("bytes stay bytes");
                };
                got.extend_from_slice(&bytes);
            }
            assert_eq!(got, whole[10..60]);
            assert!(window.is_over());
        }
    }
}
