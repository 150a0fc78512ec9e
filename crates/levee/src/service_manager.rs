//! What a service manager is told (sd_notify(3)): ready, reloading, stopping, alive, and a line
//! about how it goes for `systemctl status`.
//!
//! Without a service manager nothing is said. Alive means that the control loop has published new
//! figures since it was last said, and that all cores live: a Brain that hangs, or a core that has
//! died, is restarted by the watchdog.

use std::sync::Arc;
use std::time::Duration;

use levee_observe::Status;
use sd_notify::{NotifyState, notify, watchdog_enabled};
use tokio::time::Instant;

use crate::admin::StatusSource;

/// How often a line about how it goes is told where no watchdog sets the pace.
const PERIOD: Duration = Duration::from_secs(10);

/// The listeners are up and the settings are in force.
pub fn tell_ready() {
    tell(&[NotifyState::Ready]);
}

/// New settings are being read; [`tell_ready`] ends it.
pub fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot read the clock for the service manager"),
    }
}

/// What runs is finished, nothing new is taken.
pub fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells that the server is alive, and how it goes, until it is dropped. Its control loop publishes
/// new figures every `interval`.
///
/// Cancel safety: dropped at any point, nothing more is told.
pub async fn keep_informed(source: Arc<dyn StatusSource>, interval: Duration) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    // Half of what is allowed, as sd_watchdog_enabled(3) advises.
    let period = watchdog_enabled().map_or(PERIOD, |limit| limit / 2);
    let mut ticks = tokio::time::interval(period);
    let mut published = -1.0;
    let mut seen = Instant::now();
    loop {
        ticks.tick().await;
        let status = source.status();
        if status.uptime > published {
            published = status.uptime;
            seen = Instant::now();
        }
        // Three intervals: one may just have been missed, and one be late on a busy machine.
        if status.lost_cores > 0 {
            tracing::error!("a thread that answers visitors has died");
        } else if seen.elapsed() < interval * 3 + period {
            tell(&[NotifyState::Watchdog, NotifyState::Status(&line(&status))]);
        } else {
            tracing::error!("the control loop has published nothing for three intervals");
        }
    }
}

fn line(status: &Status) -> String {
    let link = &status.link;
    let share = 100.0 * status.rates.out as f64 / link.usable.max(1) as f64;
    format!(
        "{}; {:.0} requests/s; {share:.0} % of the usable link",
        status.state, status.rates.requests
    )
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}
