//! An alias whose rescue is over, kept so that visitors who come late find their way back.

use serde::{Deserialize, Serialize};

/// See the file header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptAlias {
    /// The alias.
    pub alias: String,
    /// Whose it was: name and port.
    pub site: String,
}
