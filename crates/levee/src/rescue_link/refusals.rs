//! How many links and messages were refused, by cause.

use std::collections::BTreeMap;
use std::sync::Arc;

use levee_net::Shared;

/// Counters by cause; cheap to clone, all clones count together.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Shared<BTreeMap<&'static str, u64>>>);

impl Refusals {
    /// Each cause that has come up, and how often, in the order of their names.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        self.0.with(|counts| {
            counts
                .iter()
                .map(|(&cause, &count)| (cause, count))
                .collect()
        })
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.0.with(|counts| counts.values().sum())
    }

    pub(super) fn note(&self, cause: &'static str) {
        self.0.with(|counts| *counts.entry(cause).or_default() += 1);
    }
}
