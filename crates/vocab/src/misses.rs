//! What a rescue server does with a request for something that it does not hold.

/// Said by an origin in its SOS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Misses {
    /// It fetches the object, and serves it from then on.
    #[default]
    Fetch,
    /// It sends the visitor back: the origin says what is copied, and redirects nothing else.
    SendBack,
}
