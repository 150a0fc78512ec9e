//! How h2 tells a core that a session or a stream can go on.
//!
//! h2 wakes tasks; a core has tokens. A waker puts its token on the core's list, at most once until
//! the core has looked. Wakers are only ever called on the core's own thread, but their type must
//! promise more, hence the lock, which nobody ever waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};

use levee_net::Shared;

/// Tokens that can go on. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct WakeList(Arc<List>);

#[derive(Debug, Default)]
struct List {
    tokens: Shared<Vec<u64>>,
    /// Whether there are any: a core that speaks no HTTP/2 reads no more than this.
    any: AtomicBool,
}

/// What one waker knows.
#[derive(Debug)]
struct Waking {
    token: u64,
    listed: AtomicBool,
    list: WakeList,
}

/// A token's waker, and the way to arm it again.
#[derive(Debug)]
pub(crate) struct TokenWaker {
    waking: Arc<Waking>,
    waker: Waker,
}

impl WakeList {
    /// Appends the tokens that were woken to `to`.
    pub fn take(&self, to: &mut Vec<u64>) {
        if self.0.any.swap(false, Relaxed) {
            self.0.tokens.with(|tokens| to.append(tokens));
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.0.any.load(Relaxed)
    }

    /// Puts `token` on the list.
    pub fn push(&self, token: u64) {
        self.0.tokens.with(|tokens| tokens.push(token));
        self.0.any.store(true, Relaxed);
    }

    /// A waker for `token`.
    pub fn waker(&self, token: u64) -> TokenWaker {
        let waking = Arc::new(Waking {
            token,
            listed: AtomicBool::new(false),
            list: self.clone(),
        });
        TokenWaker {
            waker: Waker::from(Arc::clone(&waking)),
            waking,
        }
    }
}

impl TokenWaker {
    /// The waker, which will put the token on the list again if it is woken from now on.
    pub fn arm(&self) -> &Waker {
        self.waking.listed.store(false, Relaxed);
        &self.waker
    }
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.listed.swap(true, Relaxed) {
            self.list.push(self.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_listed_once_until_it_is_armed_again() {
        let list = WakeList::default();
        let waker = list.waker(7);
        waker.arm().wake_by_ref();
        waker.waker.wake_by_ref();
        let mut tokens = Vec::new();
        list.take(&mut tokens);
        assert_eq!(tokens, [7]);
        assert!(list.is_empty());
        waker.arm().wake_by_ref();
        list.take(&mut tokens);
        assert_eq!(tokens, [7, 7]);
    }
}
