//! What a response says about its own caching: Cache-Control, or the field above it that is meant
//! for servers like us.
//!
//! Reading is careful: of two statements the stricter holds, and what cannot be read allows
//! nothing. So no junk makes a response more cacheable than it is without the junk.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

use super::syntax::{is_token, seconds, split_outside_quotes, unquoted};
use super::targeted::targeted;

/// The directives that matter to a shared cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseControl {
    /// Keep nothing of it.
    pub no_store: bool,
    /// What of it is for one visitor.
    pub private: Extent,
    /// What of it must not be used again before the source was asked.
    pub no_cache: Extent,
    /// It may be shared whatever else speaks against it.
    pub public: bool,
    /// Never to be used after its lifetime.
    pub must_revalidate: bool,
    /// The same, for shared caches.
    pub proxy_revalidate: bool,
    /// Only to be kept by who knows its status.
    pub must_understand: bool,
    /// Lifetime.
    pub max_age: Option<Duration>,
    /// Lifetime in shared caches.
    pub s_maxage: Option<Duration>,
    /// How long after its lifetime it may stand in for a source in trouble.
    pub stale_if_error: Option<Duration>,
    /// How long after its lifetime it may be shown while its source is asked.
    pub stale_while_revalidate: Option<Duration>,
    /// Where this was said.
    pub place: Place,
}

/// How much of a response a directive is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// The directive is not there.
    #[default]
    Nothing,
    /// Fields with these names, in lower case (RFC 9111 sections 5.2.2.4 and 5.2.2.7).
    Fields(Vec<Box<str>>),
    /// The whole response.
    Everything,
}

/// Where a response speaks of its caching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In Cache-Control, beside which Expires and Pragma count.
    #[default]
    General,
    /// In a field for servers like us, beside which nothing else does (RFC 9213 section 2.2).
    Targeted,
}

impl ResponseControl {
    /// What a response says. Never fails: what cannot be read allows nothing.
    pub fn of(headers: &HeaderMap) -> Self {
        if let Some(control) = targeted(headers) {
            return control;
        }
        let mut control = Self::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            control.add_list(value.as_bytes());
        }
        //= RFC 9111 section 5.4: Pragma counts only where there is no Cache-Control.
        if !headers.contains_key(header::CACHE_CONTROL) && pragma_no_cache(headers) {
            control.no_cache = Extent::Everything;
        }
        control
    }

    /// What one Cache-Control field says.
    pub fn parse(value: &[u8]) -> Self {
        let mut control = Self::default();
        control.add_list(value);
        control
    }

    /// Whether the response must never be shown after its lifetime.
    pub fn forbids_stale(&self) -> bool {
        //= RFC 9111 section 4.2.4: no stale response where no-cache, must-revalidate,
        //= proxy-revalidate or s-maxage forbids it. What s-maxage forbids depends on what is stated
        //= beside it, and is decided there.
        self.no_cache == Extent::Everything || self.must_revalidate || self.proxy_revalidate
    }

    /// Names of the fields that may go to the visitor who asked, but not into the cache.
    pub fn unshared_fields(&self) -> impl Iterator<Item = &str> {
        self.private.fields().chain(self.no_cache.fields())
    }

    fn add_list(&mut self, list: &[u8]) {
        for directive in split_outside_quotes(list) {
            let mut parts = directive.splitn(2, |&byte| byte == b'=');
            let name = parts.next().unwrap_or_default();
            self.add(name, parts.next());
        }
    }

    /// Adds a directive as it was written. Unknown ones are ignored.
    pub(super) fn add(&mut self, name: &[u8], value: Option<&[u8]>) {
        // Blanks around the sign are no part of the grammar: the name counts, the value does not.
        let is_odd = |text: &[u8]| text != text.trim_ascii();
        let plain = value.is_none() && !is_odd(name);
        let value = value.filter(|value| !is_odd(value) && !is_odd(name));
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"private" => self.private.widen(value),
            b"no-cache" => self.no_cache.widen(value),
            b"public" => self.public |= plain,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand |= plain,
            b"max-age" => shorter(&mut self.max_age, value),
            b"s-maxage" => shorter(&mut self.s_maxage, value),
            b"stale-if-error" => shorter(&mut self.stale_if_error, value),
            b"stale-while-revalidate" => shorter(&mut self.stale_while_revalidate, value),
            _ => {}
        }
    }
}

impl Extent {
    /// Adds what a directive names; one that names nothing, or nothing readable, is about all.
    fn widen(&mut self, names: Option<&[u8]>) {
        let names = names.map(|list| unquoted(list).unwrap_or(list));
        let names = names.map(split_outside_quotes).unwrap_or_default();
        let readable = !names.is_empty() && names.iter().all(|name| is_token(name));
        let names = names
            .iter()
            .map(|name| String::from_utf8_lossy(name).to_ascii_lowercase().into());
        match self {
            Self::Everything => {}
            _ if !readable => *self = Self::Everything,
            Self::Nothing => *self = Self::Fields(names.collect()),
            Self::Fields(fields) => fields.extend(names),
        }
    }

    fn fields(&self) -> impl Iterator<Item = &str> {
        let fields = match self {
            Self::Fields(fields) => &fields[..],
            Self::Nothing | Self::Everything => &[],
        };
        fields.iter().map(|name| &**name)
    }
}

/// Where a directive is stated twice, the shorter time holds; where it is no number, zero does
/// (RFC 9111 section 4.2.1: treat such a response as stale). A number may stand in quotes.
fn shorter(time: &mut Option<Duration>, value: Option<&[u8]>) {
    let digits = value.map(|value| unquoted(value).unwrap_or(value));
    let stated = digits.and_then(seconds).unwrap_or(Duration::ZERO);
    *time = Some(time.map_or(stated, |earlier| earlier.min(stated)));
}

fn pragma_no_cache(headers: &HeaderMap) -> bool {
    let pragma = HeaderName::from_static("pragma");
    headers
        .get_all(pragma)
        .iter()
        .flat_map(|value| split_outside_quotes(value.as_bytes()))
        .any(|directive| directive.eq_ignore_ascii_case(b"no-cache"))
}
