//! The table `[integrity]`: what others may do without us, and how often we look at what they do.

use std::time::Duration;

use super::values::Values;

/// The table `[integrity]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegritySettings {
    /// How long rescue servers may go on when we are gone; zero for not at all.
    pub permit: Duration,
    /// Time between two looks at what rescue servers deliver; zero for none.
    pub sampling: Duration,
}

pub(super) fn integrity(values: &Values<'_>) -> IntegritySettings {
    IntegritySettings {
        permit: values.time("integrity.permit"),
        sampling: values.time("integrity.sampling"),
    }
}
