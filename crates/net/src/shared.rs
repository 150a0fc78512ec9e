//! A value that several threads look at now and then, never on the path of a request.
//!
//! Locks live in this crate, so that a reader of the others need not look for them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value behind a short lock.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares `value`.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Changes or reads the value. Must not block: others wait.
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.lock())
    }

    /// Puts `value` in and gives the old one.
    pub fn replace(&self, value: T) -> T {
        std::mem::replace(&mut self.lock(), value)
    }

    // A panic of another thread cannot leave the value half-changed in a way that matters here:
    // changes are single assignments and pushes.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
