//! An application behind the site.

use serde::{Deserialize, Serialize};

/// One application behind the site.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamStatus {
    /// Where it listens.
    pub name: String,
    /// Whether it is used only while no other is up.
    pub backup: bool,
    /// Whether it gets requests.
    pub up: bool,
    /// Requests under way.
    pub outstanding: u64,
    /// Requests since it is in the list.
    pub requests: u64,
    /// Of these, failed.
    pub failures: u64,
    /// How often it was left out.
    pub ejections: u64,
}
