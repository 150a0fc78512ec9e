//! Messages to an event loop from any thread: a queue, and an eventfd that wakes the loop.
//!
//! A loop that waits in epoll cannot wait on a channel as well; an eventfd is a file that epoll can
//! watch. It is written only when the queue was empty, so a burst of messages costs one write.
//! The queue is bounded by what its senders may have outstanding (a plan, one wake per connection).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::shared::Shared;

/// The receiving side, owned by one event loop.
#[derive(Debug)]
pub struct Mailbox<M>(Arc<Inner<M>>);

/// The sending side, for any number of threads.
#[derive(Debug)]
pub struct Sender<M>(Arc<Inner<M>>);

#[derive(Debug)]
struct Inner<M> {
    queue: Shared<Vec<M>>,
    bell: OwnedFd,
}

impl<M> Mailbox<M> {
    /// An empty mailbox.
    pub fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner {
            queue: Shared::new(Vec::new()),
            bell,
        })))
    }

    /// A sender to this mailbox.
    pub fn sender(&self) -> Sender<M> {
        Sender(Arc::clone(&self.0))
    }

    /// Moves all messages, oldest first, into `messages`, which must be empty. The two vectors
    /// change places, so that neither side allocates in the long run.
    pub fn take(&self, messages: &mut Vec<M>) {
        assert!(messages.is_empty(), "messages would be lost");
        let mut count = [0_u8; 8];
        // The bell is silenced before the queue is read: a message that comes in between rings it
        // again. Nothing to read means that nobody rang, which is no error.
        let _ = rustix::io::read(&self.0.bell, &mut count);
        self.0.queue.with(|queue| std::mem::swap(queue, messages));
    }
}

/// What epoll watches.
impl<M> AsFd for Mailbox<M> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }
}

impl<M> Sender<M> {
    /// Puts `message` at the end of the queue and wakes the loop.
    pub fn send(&self, message: M) {
        let was_empty = self.0.queue.with(|queue| {
            queue.push(message);
            queue.len() == 1
        });
        if was_empty {
            // Fails only when the counter is full, and then the loop is awake already.
            let _ = rustix::io::write(&self.0.bell, &1_u64.to_ne_bytes());
        }
    }
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Poller;
    use std::time::Duration;

    #[test]
    fn a_message_from_another_thread_wakes_the_loop() {
        let mailbox = Mailbox::new().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.watch_level(&mailbox, 7).unwrap();
        let sender = mailbox.sender();
        let thread = std::thread::spawn(move || {
            sender.send("first");
            sender.send("second");
        });
        let mut received = Vec::new();
        while received.len() < 2 {
            let mut tokens = Vec::new();
            poller.wait(Some(Duration::from_secs(5))).unwrap();
            tokens.extend(poller.events().map(|(token, _)| token));
            assert_eq!(tokens, [7]);
            let mut messages = Vec::new();
            mailbox.take(&mut messages);
            received.extend(messages);
        }
        assert_eq!(received, ["first", "second"]);
        thread.join().unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(poller.events().count(), 0);
    }
}
