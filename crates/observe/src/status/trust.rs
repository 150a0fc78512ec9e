//! A closed community as its member sees it.

use serde::{Deserialize, Serialize};

/// Who we are in a closed community, and who was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustStatus {
    /// Our public key.
    pub key: String,
    /// Public key of the authority.
    pub authority: String,
    /// Name of the community; empty without a list.
    pub community: String,
    /// Serial of the member list; 0 without one.
    pub serial: u64,
    /// Members on it.
    pub members: u64,
    /// When the list ends, in Unix seconds; 0 without one.
    pub expires: u64,
    /// `ok`, `due` (the list ends soon), or `out`: we are no member, or the list is no good now.
    pub state: String,
    /// Why, where it is not `ok`.
    pub cause: String,
    /// Why the last look for a newer list failed; empty where it did not.
    pub list_trouble: String,
    /// What was refused, by cause.
    pub refused: Vec<TrustRefusal>,
    /// What members say of each other, those that count first.
    pub accusations: Vec<AccusationStatus>,
}

/// A member says that another one altered what it delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccusationStatus {
    /// Who says so.
    pub accuser: String,
    /// Of whom.
    pub accused: String,
    /// Since when, in Unix seconds.
    pub since: u64,
    /// Path and query of the page, cut where they are long.
    pub target: String,
    /// Digest of what was delivered.
    pub seen: String,
    /// Whether enough members say so that registries leave the accused out of their answers.
    pub left_out: bool,
}

/// What was refused for one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustRefusal {
    /// A word: `replayed`, `not_a_member`.
    pub cause: String,
    /// How often since the start.
    pub count: u64,
    /// What and why, the last time.
    pub last: String,
    /// When that was, in Unix seconds.
    pub at: u64,
}
