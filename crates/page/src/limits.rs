//! How much of a page is ever kept.

/// Most objects of one page or style sheet. Pages with more are rare, and what comes first in a
/// page is what its visitors see first.
pub const OBJECTS_MAX: usize = 256;

/// Longest URL, and longest target of an object, in bytes. Longer ones carry data, not names.
pub const URL_BYTES_MAX: usize = 2048;
