//! Signing what our rescue servers fetch; see `publisher.rs`.
//!
//! Nobody else's response comes here further than the first line of a function: visitors' requests
//! cost what they did.

use std::sync::Arc;

use super::Core;
use super::serve::Visit;
use crate::answer::Kind;
use crate::cache::Stored;
use crate::files::FileEntry;
use crate::publisher::Publisher;
use crate::request::Request;

impl Core {
    /// Adds the lines that sign a whole file to the head of a response.
    pub(super) fn sign_file(
        &self,
        request: &Request<'_, '_>,
        visit: &Visit,
        entry: &FileEntry,
        head: &mut Vec<u8>,
    ) {
        if let Some(publisher) = self.publisher_for(visit) {
            let lines = publisher.file_lines(entry, request.target);
            head.extend_from_slice(lines.as_bytes());
        }
    }

    /// Adds the lines that sign a whole object of the cache.
    pub(super) fn sign_stored(
        &self,
        request: &Request<'_, '_>,
        visit: &Visit,
        stored: &Arc<Stored>,
        head: &mut Vec<u8>,
    ) {
        if let Some(publisher) = self.publisher_for(visit) {
            let lines = publisher.stored_lines(stored, request.target);
            head.extend_from_slice(lines.as_bytes());
        }
    }

    fn publisher_for(&self, visit: &Visit) -> Option<&Publisher> {
        match visit.kind {
            Kind::Fetch => Some(self.fetcher.as_ref()?.publisher()?),
            Kind::Own
            | Kind::Redirect { .. }
            | Kind::Rescue { .. }
            | Kind::Home { .. }
            | Kind::Copy { .. }
            | Kind::Look
            | Kind::Refusal
            | Kind::Withheld
            | Kind::PuttingOff => None,
        }
    }
}
