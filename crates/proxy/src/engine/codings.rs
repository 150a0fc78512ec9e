//! Which content codings visitors take, looked at now and then: of a page that varies by them, a
//! copy is of use only in the coding for which most of its visitors ask.
//!
//! Browsers name fewer over plain HTTP than over TLS, and only visitors by plain HTTP are
//! redirected; programs often name none. So the visitors themselves are asked, while somebody
//! rescues us, and only one in sixteen.

use super::Core;
use crate::counters::Counter;
use crate::files::Accepted;
use crate::request::Request;

/// One request in so many is looked at.
const LOOKED_AT: u64 = 16;
/// Beyond it all counts are halved, so that the visitors of today outweigh those of yesterday.
const COUNT_MAX: u64 = 64;

/// How many visitors took which codings, of late. Only its core writes it.
#[derive(Debug, Default)]
pub(crate) struct CodingCounters([Counter; Accepted::SETS]);

impl CodingCounters {
    fn note(&self, accepted: Accepted) {
        let counter = &self.0[accepted.index()];
        counter.add(1);
        if counter.read() >= COUNT_MAX {
            for counter in &self.0 {
                counter.set(counter.read() / 2);
            }
        }
    }

    /// What most visitors of these cores take, as it stands in Accept-Encoding; none where nobody
    /// was looked at.
    pub fn usual<'a>(cores: impl Iterator<Item = &'a Self>) -> Option<String> {
        let mut sums = [0; Accepted::SETS];
        for core in cores {
            for (sum, counter) in sums.iter_mut().zip(&core.0) {
                *sum += counter.read();
            }
        }
        let (index, most) = sums.iter().enumerate().max_by_key(|(_, sum)| **sum)?;
        (*most > 0).then(|| Accepted::field_of(index))
    }
}

impl Core {
    pub(super) fn note_codings(&self, request: &Request<'_, '_>) {
        let is_rescued = self.gate.plan().redirect.is_some();
        if is_rescued && self.counters.requests.read().is_multiple_of(LOOKED_AT) {
            let accepted = Accepted::of(request.fields.accept_encoding);
            self.counters.codings.note(accepted);
        }
    }
}
