//! Asking again where the authority does not take a nonce.
//!
//! Each request carries a nonce that the authority gave with an earlier answer. One that it has
//! forgotten, because it was restarted or is several machines, it refuses (`badNonce`), and that
//! says nothing of the request: it is sent again at once with the nonce that came with the refusal.
//! The library does so twice for each request, which is too few where an authority refuses many.

use instant_acme::{Error, Problem};

/// How often a step is done at most; the library sends each of its requests three times at most.
/// An authority that refuses every other nonce fails an order of ten steps once in 3000 times.
const ATTEMPTS_MAX: u32 = 5;

/// Does a step of an order, again and at once while all that is wrong with it is the nonce, and
/// gives what the last attempt gave. A macro, because a closure that lends what it works on cannot
/// be told to be `Send`.
///
/// Cancel safety: as the step.
//= RFC 8555 section 6.5: "On receiving such a response, a client SHOULD retry the request using the
// new nonce."
macro_rules! with_fresh_nonce {
    ($step:expr) => {{
        let mut attempts = $crate::acme::nonce::Attempts::new();
        loop {
            let done = $step.await;
            if attempts.is_last(&done) {
                break done;
            }
        }
    }};
}
pub(super) use with_fresh_nonce;

/// The attempts at one step that are left.
pub(super) struct Attempts {
    left: u32,
}

impl Attempts {
    /// Before the first.
    pub const fn new() -> Self {
        Self { left: ATTEMPTS_MAX }
    }

    /// Whether the attempt that gave `done` was the last.
    pub fn is_last<T>(&mut self, done: &Result<T, Error>) -> bool {
        self.left = self.left.saturating_sub(1);
        match done {
            Err(Error::Api(problem)) if is_bad_nonce(problem) => self.left == 0,
            Ok(_) | Err(_) => true,
        }
    }
}

/// Whether nothing is wrong but the nonce.
pub(super) fn is_bad_nonce(problem: &Problem) -> bool {
    let kind = problem.r#type.as_deref();
    kind.is_some_and(|kind| kind.ends_with(":badNonce"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: &str) -> Error {
        let text = format!("{{\"type\":\"urn:ietf:params:acme:error:{kind}\"}}");
        Error::Api(serde_json::from_str(&text).expect("a problem"))
    }

    /// How often a step is done that meets `refusals` of this `kind` first, and what comes of it.
    fn story(kind: &str, refusals: u32) -> (u32, Result<(), String>) {
        let mut made = 0;
        let mut step = || {
            made += 1;
            std::future::ready(match made > refusals {
                true => Ok(()),
                false => Err(problem(kind)),
            })
        };
        let order = async { with_fresh_nonce!(step()) };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let done = runtime.expect("a runtime").block_on(order);
        (made, done.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_refused_nonce_is_no_refusal_of_what_was_asked_for() {
        assert_eq!(story("badNonce", 0), (1, Ok(())));
        assert_eq!(story("badNonce", 4), (5, Ok(())));
    }

    #[test]
    fn an_authority_that_takes_no_nonce_at_all_is_left_alone_in_the_end() {
        let (attempts, done) = story("badNonce", u32::MAX);
        assert_eq!(attempts, ATTEMPTS_MAX);
        assert!(done.expect_err("refused").contains("badNonce"));
    }

    #[test]
    fn any_other_refusal_is_heard_at_once() {
        let (attempts, done) = story("rateLimited", 1);
        assert_eq!(attempts, 1);
        assert!(done.expect_err("refused").contains("rateLimited"));
    }
}
