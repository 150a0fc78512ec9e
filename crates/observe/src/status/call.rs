//! What has become of calling for help.

use serde::{Deserialize, Serialize};

/// What has become of calling for help, for as long as help is needed and nobody gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallStatus {
    /// `asking`, `nobody_left` (there is nobody more to ask), or empty where nobody was asked.
    pub state: String,
    /// Of those who could be asked, so many are left alone for a while: they did not help, or
    /// stopped helping.
    pub resting: u64,
}
