//! Whether visitors by HTTPS can be sent to a site's aliases, as it says itself.

/// Said by a site when it registers, so that others need not ask it in vain. Its answer to an SOS
/// is what counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AliasHttps {
    /// It does not say: older versions do not know the word.
    #[default]
    Unknown,
    /// The aliases that it gives out do not answer by HTTPS now.
    No,
    /// They do.
    Yes,
}
