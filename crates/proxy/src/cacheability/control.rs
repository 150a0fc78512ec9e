//! The Cache-Control field of a response.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

/// The directives that matter to a shared cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheControl {
    pub no_store: bool,
    pub private: bool,
    pub no_cache: bool,
    pub public: bool,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub max_age: Option<Duration>,
    pub s_maxage: Option<Duration>,
    pub stale_if_error: Option<Duration>,
    pub stale_while_revalidate: Option<Duration>,
}

impl CacheControl {
    /// Reads all Cache-Control fields. Unknown directives are ignored; `private` and `no-cache`
    /// with field names are taken for the whole response, which is the careful reading.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        for value in headers.get_all(header::CACHE_CONTROL) {
            for directive in split_outside_quotes(value.as_bytes()) {
                control.add(directive);
            }
        }
        //= RFC 9111 section 5.4: Pragma counts only where there is no Cache-Control.
        if !headers.contains_key(header::CACHE_CONTROL) && pragma_no_cache(headers) {
            control.no_cache = true;
        }
        control
    }

    /// Whether the response must never be shown after its lifetime.
    pub fn forbids_stale(&self) -> bool {
        //= RFC 9111 section 4.2.4: no stale response where no-cache, must-revalidate,
        //= proxy-revalidate or s-maxage forbids it. What s-maxage forbids depends on what is stated
        //= beside it, and is decided there.
        self.no_cache || self.must_revalidate || self.proxy_revalidate
    }

    fn add(&mut self, directive: &[u8]) {
        let mut parts = directive.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let value = parts.next().map(<[u8]>::trim_ascii);
        match name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"private" => self.private = true,
            b"no-cache" => self.no_cache = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"max-age" => shorter(&mut self.max_age, value),
            b"s-maxage" => shorter(&mut self.s_maxage, value),
            b"stale-if-error" => shorter(&mut self.stale_if_error, value),
            b"stale-while-revalidate" => shorter(&mut self.stale_while_revalidate, value),
            _ => {}
        }
    }
}

/// Where a directive is stated twice, the shorter time holds; where it is no number, zero does
/// (RFC 9111 section 4.2.1: treat such a response as stale).
fn shorter(time: &mut Option<Duration>, value: Option<&[u8]>) {
    let stated = value.and_then(seconds).unwrap_or(Duration::ZERO);
    *time = Some(time.map_or(stated, |earlier| earlier.min(stated)));
}

/// A delta-seconds, also within quotes; too large a number is taken as 2^31 (RFC 9111 section
/// 1.2.2).
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let digits = value
        .strip_prefix(b"\"")
        .and_then(|inner| inner.strip_suffix(b"\""))
        .unwrap_or(value);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let most = 1_u64 << 31;
    let number = digits.iter().fold(0_u64, |number, digit| {
        (number * 10 + u64::from(digit - b'0')).min(most)
    });
    Some(Duration::from_secs(number))
}

fn pragma_no_cache(headers: &HeaderMap) -> bool {
    let pragma = HeaderName::from_static("pragma");
    headers
        .get_all(pragma)
        .iter()
        .flat_map(|value| split_outside_quotes(value.as_bytes()))
        .any(|directive| directive.eq_ignore_ascii_case(b"no-cache"))
}

/// The members of a comma-separated list, without empty ones.
pub(super) fn split_outside_quotes(list: &[u8]) -> Vec<&[u8]> {
    let mut members = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, &byte) in list.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                members.push(list[start..at].trim_ascii());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(list[start..].trim_ascii());
    members.retain(|member| !member.is_empty());
    members
}
