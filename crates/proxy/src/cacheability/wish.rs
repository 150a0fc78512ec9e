//! What a visitor asks of a cache: Cache-Control and Pragma of a request (RFC 9111 section 5.2.1).
//!
//! All of it is advice, and by default most of it is not taken: browsers send `no-cache` or
//! `max-age=0` with each reload, and visitors of a slow site reload. Only what asks for less work
//! is always done.

use std::time::Duration;

use super::syntax::{FOREVER, members, seconds, unquoted};
use crate::flight::RequestHeaders;

/// Whether visitors' wishes are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wishes {
    /// Only those that make no work.
    #[default]
    Ignored,
    /// All.
    Met,
}

/// What one visitor wishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Nothing that its source was not asked about just now.
    pub no_cache: bool,
    /// Nothing of this is to be kept.
    pub no_store: bool,
    /// Nothing that has to be fetched.
    pub only_if_cached: bool,
    /// Nothing older than this.
    pub max_age: Option<Duration>,
    /// Nothing that is fresh for less than this.
    pub min_fresh: Duration,
    /// Old copies too, up to so long after their lifetime.
    pub max_stale: Option<Duration>,
}

/// What a cache has, in the words in which one wishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Had {
    /// How old it is.
    pub age: Duration,
    /// For how long it is fresh yet.
    pub fresh_for: Duration,
    /// For how long it has been old.
    pub stale_since: Duration,
}

impl Wish {
    /// That of a request.
    pub fn of(request: &(impl RequestHeaders + ?Sized)) -> Self {
        let mut wish = Self::default();
        let mut said = false;
        request.each("cache-control", &mut |value| {
            said = true;
            members(value).for_each(|directive| wish.add(directive));
        });
        //= RFC 9111 section 5.4: Pragma counts only where there is no Cache-Control.
        if !said {
            request.each("pragma", &mut |value| {
                wish.no_cache |= members(value).any(|word| word.eq_ignore_ascii_case(b"no-cache"));
            });
        }
        wish
    }

    fn add(&mut self, directive: &[u8]) {
        let mut parts = directive.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default();
        let digits = parts.next().map(|value| unquoted(value).unwrap_or(value));
        let time = digits.and_then(seconds);
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("no-cache") {
            self.no_cache = true;
        } else if is("no-store") {
            self.no_store = true;
        } else if is("only-if-cached") {
            self.only_if_cached = true;
        } else if is("max-age") {
            self.max_age = time;
        } else if is("min-fresh") {
            self.min_fresh = time.unwrap_or_default();
        } else if is("max-stale") {
            // Without a number: however old.
            self.max_stale = digits.map_or(Some(FOREVER), |_| time);
        }
    }

    /// Whether it asks for more than what is usual.
    pub fn asks_for_new(&self) -> bool {
        self.no_cache || self.no_store || self.max_age.is_some() || !self.min_fresh.is_zero()
    }

    /// Whether what the cache has will do.
    pub fn is_met_by(&self, had: Had) -> bool {
        let is_new_enough = self.max_age.is_none_or(|most| had.age <= most);
        let is_fresh_enough = match had.stale_since.is_zero() {
            true => had.fresh_for >= self.min_fresh,
            false => self.max_stale.is_some_and(|most| had.stale_since <= most),
        };
        !self.no_cache && !self.no_store && is_new_enough && is_fresh_enough
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn wish(lines: &[(&str, &str)]) -> Wish {
        let own = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let lines = lines.iter().map(|(name, value)| (own(name), own(value)));
        Wish::of(&lines.collect::<Vec<_>>())
    }

    /// Ten seconds old, fresh for thirty more; or old for twenty.
    fn is_met(control: &str) -> [bool; 2] {
        let time = Duration::from_secs;
        let fresh = Had {
            age: time(10),
            fresh_for: time(30),
            stale_since: time(0),
        };
        let stale = Had {
            age: time(60),
            fresh_for: time(0),
            stale_since: time(20),
        };
        let wish = wish(&[("Cache-Control", control)]);
        [fresh, stale].map(|had| wish.is_met_by(had))
    }

    #[test]
    fn each_wish_is_met_by_what_fits_it() {
        for (control, expected) in [
            ("", [true, false]),
            ("nonsense", [true, false]),
            ("no-cache", [false, false]),
            ("no-store", [false, false]),
            ("max-age=10", [true, false]),
            ("max-age=9", [false, false]),
            ("max-age=0", [false, false]),
            ("min-fresh=30", [true, false]),
            ("Min-Fresh=31", [false, false]),
            ("max-stale", [true, true]),
            ("max-stale=20", [true, true]),
            ("max-stale=19", [true, false]),
            ("max-stale=x", [true, false]),
            ("max-stale, max-age=30", [true, false]),
            ("only-if-cached", [true, false]),
        ] {
            assert_eq!(is_met(control), expected, "{control}");
        }
    }

    #[test]
    fn pragma_counts_only_alone() {
        assert!(wish(&[("pragma", "no-cache")]).no_cache);
        assert!(!wish(&[("pragma", "no-cache"), ("cache-control", "max-age=5")]).no_cache);
        assert!(wish(&[("cache-control", "a, only-if-cached")]).only_if_cached);
    }
}
