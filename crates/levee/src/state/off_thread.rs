//! Waiting for the disk on a thread that may.

use std::panic::resume_unwind;

/// Does `work`, which waits for the disk, where no other task waits with it.
///
/// Cancel safety: dropped half-way, the work is done all the same. Where one write must not come
/// before another, `work` has to hold a lock.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
