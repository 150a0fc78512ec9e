//! What a certificate authority gets that checks whether a name is ours (http-01).
//!
//! The token says whose question it is, not the name that was asked for: a certificate may be for
//! names that lead here and that no site of ours has. The answer never waits for its turn: it is a
//! hundred bytes, and without it HTTPS ends one day.

use std::sync::Arc;

use super::Core;
use super::serve::Visit;
use crate::answer::{Answer, Body};
use crate::challenges::CHALLENGE_PREFIX;
use crate::request::Request;
use crate::response::{push_number, push_status};

/// Whether `request` is that of an authority, or looks like it.
pub(super) fn is_challenge(request: &Request<'_, '_>) -> bool {
    request.target.starts_with(CHALLENGE_PREFIX)
}

impl Core {
    /// What an authority is to be shown that sends `request`; none where we ordered nothing.
    pub(super) fn proof(&self, request: &Request<'_, '_>) -> Option<Arc<str>> {
        match is_challenge(request) && request.is_get_or_head() {
            true => self.settings.challenges.file(request.target),
            false => None,
        }
    }

    /// The answer with it. No cache keeps it: a rescue server may be the one that is asked.
    pub(super) fn proof_answer(
        &mut self,
        request: &Request<'_, '_>,
        visit: &Visit,
        proof: &str,
    ) -> Answer {
        let mut head = self.pool.take();
        push_status(200, &mut head);
        //= RFC 8555 section 8.3: "The HTTP server SHOULD return the octets of the key
        // authorization with "Content-Type" of "application/octet-stream"."
        head.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
        head.extend_from_slice(b"Cache-Control: no-store\r\nContent-Length: ");
        push_number(proof.len() as u64, &mut head);
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(self.date.line());
        head.extend_from_slice(visit.closing.line());
        head.extend_from_slice(b"\r\n");
        if request.method != "HEAD" {
            head.extend_from_slice(proof.as_bytes());
        }
        Answer::new(head, Body::Empty, visit.kind, 200)
    }
}
