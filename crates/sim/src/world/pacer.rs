//! The outbound link of a site: one thing at a time, in order of class.
//!
//! The server charges every byte it sends to its link, and sends redirects and refusals before
//! fetches by rescue servers before pages. A large page does not block the link: it is sent in
//! pieces, whatever is more urgent goes between two of them, and a long response makes way for
//! others of its class now and then. (In the server pages take turns by the piece. All of them
//! together take as long.)

use std::collections::VecDeque;
use std::time::Duration;

use levee_vocab::ByteRate;

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendClass {
    /// Redirects and refusals: small, and each one takes load away.
    Redirect,
    /// Fetches by rescue servers: one of them serves many visitors.
    Fetch,
    /// Everything else.
    Page,
}

/// A link that sends jobs of type `J`.
#[derive(Debug)]
pub struct Pacer<J> {
    rate: ByteRate,
    piece_max: u64,
    queues: [VecDeque<Job<J>>; 3],
    queued: u64,
    sending: Option<Sending>,
}

#[derive(Debug)]
struct Job<J> {
    payload: u64,
    overhead: u64,
    /// Bytes since it last made way.
    turn: u64,
    what: J,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    class: SendClass,
    overhead: u64,
    payload: u64,
}

/// A packet: less than this is never sent at once.
const PACKET: u64 = 1500;

/// A response makes way for the next of its class after so many bytes, as fetches do in the server.
const TURN_BYTES: u64 = 64 * 1024;

/// Time for which a page may hold up a redirect.
const HOLD_MAX: Duration = Duration::from_millis(20);

impl<J> Pacer<J> {
    /// An idle link.
    pub fn new(rate: ByteRate) -> Self {
        Self {
            rate,
            piece_max: rate.bytes_in(HOLD_MAX).max(PACKET),
            queues: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
            queued: 0,
            sending: None,
        }
    }

    /// Time that the link needs for what is admitted.
    pub fn backlog(&self) -> Duration {
        self.rate.time_for(self.queued)
    }

    /// Time that the link needs for what is admitted in one class.
    pub fn backlog_of(&self, class: SendClass) -> Duration {
        let jobs = self.queues[class as usize].iter();
        self.rate
            .time_for(jobs.map(|job| job.payload + job.overhead).sum())
    }

    /// Admits a response. If the link was idle, the answer is the time until its first piece has
    /// left; otherwise `advance` will come to it.
    pub fn admit(
        &mut self,
        class: SendClass,
        payload: u64,
        overhead: u64,
        what: J,
    ) -> Option<Duration> {
        self.queued += payload + overhead;
        self.queues[class as usize].push_back(Job {
            payload,
            overhead,
            turn: 0,
            what,
        });
        match self.sending {
            Some(_) => None,
            None => self.start(),
        }
    }

    /// The piece under way has left: `meter` hears whose it was and how many bytes of the response
    /// it held. Gives the response, if that was its last piece, and the time until the next piece
    /// will have left.
    pub fn advance(&mut self, mut meter: impl FnMut(&J, u64)) -> (Option<J>, Option<Duration>) {
        let Some(piece) = self.sending.take() else {
            return (None, None);
        };
        let queue = &mut self.queues[piece.class as usize];
        let mut finished = None;
        if let Some(job) = queue.front_mut() {
            meter(&job.what, piece.payload);
            job.overhead -= piece.overhead;
            job.payload -= piece.payload;
            self.queued -= piece.overhead + piece.payload;
            job.turn += piece.payload;
            if job.payload + job.overhead == 0 {
                finished = queue.pop_front().map(|job| job.what);
            } else if job.turn >= TURN_BYTES {
                job.turn = 0;
                queue.rotate_left(1);
            }
        }
        (finished, self.start())
    }

    /// Everything that is admitted and not yet sent; the link is idle afterwards.
    pub fn take_all(&mut self) -> Vec<J> {
        self.queued = 0;
        self.sending = None;
        let jobs = self.queues.iter_mut().flat_map(|queue| queue.drain(..));
        jobs.map(|job| job.what).collect()
    }

    fn start(&mut self) -> Option<Duration> {
        let classes = [SendClass::Redirect, SendClass::Fetch, SendClass::Page];
        let class = classes
            .into_iter()
            .find(|&class| !self.queues[class as usize].is_empty())?;
        let job = self.queues[class as usize].front()?;
        let overhead = job.overhead.min(self.piece_max);
        let payload = job.payload.min(self.piece_max - overhead);
        self.sending = Some(Sending {
            class,
            overhead,
            payload,
        });
        Some(self.rate.time_for(overhead + payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_waits_for_a_piece_of_a_page_and_not_for_the_page() {
        let mut link = Pacer::new(ByteRate::from_bytes(150_000));
        let mut sent = Vec::new();
        assert!(link.admit(SendClass::Page, 9000, 0, "page").is_some());
        assert!(
            link.admit(SendClass::Redirect, 200, 358, "redirect")
                .is_none()
        );
        assert_eq!(link.backlog(), link.rate.time_for(9558));
        loop {
            let (finished, next) = link.advance(|_, _| ());
            sent.extend(finished);
            if next.is_none() {
                break;
            }
        }
        assert_eq!(sent, ["redirect", "page"]);
        assert_eq!(link.backlog(), Duration::ZERO);
    }

    #[test]
    fn a_large_page_does_not_hold_up_the_small_ones_behind_it() {
        let mut link = Pacer::new(ByteRate::from_bytes(150_000));
        link.admit(SendClass::Page, 1_000_000, 0, "large");
        link.admit(SendClass::Page, 9000, 0, "small");
        let mut sent = Vec::new();
        loop {
            let (finished, next) = link.advance(|_, _| ());
            sent.extend(finished);
            if next.is_none() {
                break;
            }
        }
        assert_eq!(sent, ["small", "large"]);
    }

    #[test]
    fn every_byte_of_a_response_is_metered_once() {
        let mut link = Pacer::new(ByteRate::from_bytes(150_000));
        link.admit(SendClass::Page, 10_000, 358, ());
        let mut metered = 0;
        while link.advance(|(), bytes| metered += bytes).1.is_some() {}
        assert_eq!(metered, 10_000);
    }
}
