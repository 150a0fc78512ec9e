//! The head of a request, parsed once and strictly.
//!
//! Two servers that disagree about where a request ends can be made to mix up the requests of two
//! visitors (request smuggling). So whatever RFC 9112 lets a server refuse is refused here: bare CR
//! or LF, folded lines, repeated lengths, a length beside a transfer coding, a missing or doubtful
//! Host. httparse cuts the head into pieces; the rules beyond its grammar stand in this file.
//!
//! Nothing is copied: a [`Request`] borrows from the buffer that it was read into.

mod flaw;
mod host;
mod upgrade;

use std::mem::MaybeUninit;

use httparse::Header;
use levee_wire::{BackWord, CutBack};

use crate::crawlers::Relayed;

pub(crate) use flaw::Flaw;
pub(crate) use host::LowerName;
pub(crate) use upgrade::Upgrade;

use crate::fetch::HOME_FIELD;
use crate::flight::RequestHeaders;
use crate::shared_cookies::SharedCookies;

/// Most header lines of a request.
pub(crate) const HEADERS_MAX: usize = 100;

/// Longest method. The longest that is registered has 17 letters.
const METHOD_BYTES_MAX: usize = 32;

/// Space for the header lines of one request; lives on the stack of whoever parses.
pub(crate) type HeaderSpace<'b> = [MaybeUninit<Header<'b>>; HEADERS_MAX];

/// A head that obeys the rules.
#[derive(Debug)]
pub(crate) struct Request<'h, 'b> {
    pub method: &'b str,
    /// Path and query; `*` for OPTIONS of the whole server.
    pub target: &'b str,
    /// The same as it was sent, with the word of a rescue server that sent the visitor back.
    pub sent_target: &'b str,
    /// That word; see [`Request::come_back`].
    pub word: Option<BackWord>,
    /// The target without its query.
    pub path: &'b str,
    pub version: Version,
    /// Name of the Host field, without port; empty where HTTP/1.0 sent none.
    pub host: &'b str,
    /// The Host field as it was sent.
    pub authority: &'b str,
    /// How it came to this server.
    pub scheme: Scheme,
    pub persistence: Persistence,
    pub body: BodyLength,
    pub upgrade: Upgrade,
    pub fields: Fields<'b>,
    pub headers: &'h [Header<'b>],
    /// Length of the head with the empty line that ends it.
    pub length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
    /// The request came as a stream; its head was written and read again as text.
    Http2,
}

/// Whether the visitor wants to use the connection again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    KeepAlive,
    Close,
}

/// How the end of the request's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    None,
    Known(u64),
    Chunked,
}

/// Whether the visitor waits with its body until it is told to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    None,
    Continue,
    /// Something that nobody can meet.
    Odd,
}

/// By which the visitors of a drill are known; its value is the key of the drill.
pub const DRILL_FIELD: &str = "levee-drill";
/// Stands behind the key of who looks what the site itself shows, and must not be redirected.
pub const DRILL_LOOK: &str = ";look";

/// The fields that the engine itself looks at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'b> {
    pub accept_encoding: Option<&'b [u8]>,
    pub authorization: Option<&'b [u8]>,
    pub cookie: Option<&'b [u8]>,
    /// What a visitor of our drill shows.
    pub drill_key: Option<&'b [u8]>,
    pub expect: Option<&'b [u8]>,
    pub fetch_key: Option<&'b [u8]>,
    /// What another rescue server shows that asks us as an object's home.
    pub home_key: Option<&'b [u8]>,
    /// How the visitor came to the proxy in front of us, as that says.
    pub came_by: Scheme,
    pub if_match: Option<&'b [u8]>,
    pub if_modified_since: Option<&'b [u8]>,
    pub if_none_match: Option<&'b [u8]>,
    pub if_range: Option<&'b [u8]>,
    pub if_unmodified_since: Option<&'b [u8]>,
    pub range: Option<&'b [u8]>,
    pub referer: Option<&'b [u8]>,
    pub user_agent: Option<&'b [u8]>,
    /// What a browser wants it for (Sec-Fetch-Dest).
    pub fetch_destination: Option<&'b [u8]>,
    /// In which way it fetches (Sec-Fetch-Mode).
    pub fetch_mode: Option<&'b [u8]>,
    /// It is the script of a service worker, says the browser.
    pub service_worker: Option<&'b [u8]>,
    /// Whether some proxy says that it passes the request on.
    pub relayed: Relayed,
    /// `Cache-Control: no-cache`, `max-age=0`, or `Pragma: no-cache`.
    pub freshness: Freshness,
}

/// Whether the visitor asks to bypass caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Freshness {
    #[default]
    Any,
    BypassCaches,
}

/// How a visitor came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scheme {
    #[default]
    Http,
    Https,
}

impl Scheme {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Longest head and longest target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    pub head_bytes: usize,
    pub target_bytes: usize,
}

/// What the framing fields said, before they are judged together.
#[derive(Default)]
struct Framing<'b> {
    host: Option<&'b [u8]>,
    length: Option<u64>,
    chunked: Option<()>,
    close: Option<()>,
    keep_alive: Option<()>,
    wish: upgrade::Wish<'b>,
}

impl<'h, 'b> Request<'h, 'b> {
    /// Parses the head at the start of `bytes`; none where it goes on.
    pub fn parse(
        bytes: &'b [u8],
        limits: HeadLimits,
        space: &'h mut HeaderSpace<'b>,
    ) -> Result<Option<Self>, Flaw> {
        let mut raw = httparse::Request::new(&mut []);
        let length = match raw.parse_with_uninit_headers(bytes, space) {
            Ok(httparse::Status::Complete(length)) if length <= limits.head_bytes => length,
            Ok(httparse::Status::Complete(_)) => return Err(Flaw::HeadTooLong),
            Ok(httparse::Status::Partial) => return partial(bytes, limits).map(|()| None),
            Err(error) => return Err(flaw::of_parser(error, bytes)),
        };
        let method = raw.method.ok_or(Flaw::NotHttp)?;
        let target = raw.path.ok_or(Flaw::NotHttp)?;
        let headers: &'h [Header<'b>] = raw.headers;
        check_line_ends(bytes, method, headers, length)?;
        if method.len() > METHOD_BYTES_MAX {
            return Err(Flaw::MethodTooLong);
        }
        if target.len() > limits.target_bytes {
            return Err(Flaw::TargetTooLong);
        }
        let version = match raw.version {
            Some(0) => Version::Http10,
            _ => Version::Http11,
        };
        let mut fields = Fields::default();
        let framing = read_fields(headers, &mut fields)?;
        let body = framing.body(version)?;
        let (authority, target) = host::settle(method, target, version, framing.host)?;
        Ok(Some(Self {
            method,
            target,
            sent_target: target,
            word: None,
            path: host::path_of(target),
            version,
            host: host::name_of(authority)?,
            authority,
            scheme: Scheme::Http,
            persistence: framing.persistence(version),
            body,
            upgrade: framing.wish.settle(method, version, body),
            fields,
            headers,
            length,
        }))
    }

    /// Takes the word of a rescue server out of the target (H5). From here on nobody sees it: no
    /// file, cache, application or log line may differ by how a visitor came.
    pub fn come_back(&mut self, cut: Option<&'b CutBack<'b>>) {
        let Some(cut) = cut else { return };
        self.target = &cut.target;
        self.path = host::path_of(self.target);
        self.word = Some(cut.word);
    }

    /// Whether its answer may be the visitor's own. A rescue server gets no credentials, so it
    /// could only answer wrongly. Cookies that are `shared` say nothing about the visitor.
    pub fn has_credentials(&self, shared: &SharedCookies) -> bool {
        let is_personal = |cookies: &[u8]| !shared.are_all(cookies);
        self.fields.authorization.is_some() || self.fields.cookie.is_some_and(is_personal)
    }

    /// Whether the browser takes no answer from another origin, so that a redirect there is a
    /// failure: scripts of workers, and whatever else is fetched in this mode.
    //= https://fetch.spec.whatwg.org/#concept-http-redirect-fetch
    pub fn must_stay(&self) -> bool {
        let is_bound = |mode: &[u8]| mode == b"same-origin";
        self.fields.service_worker.is_some() || self.fields.fetch_mode.is_some_and(is_bound)
    }

    /// What the visitor expects before it goes on. HTTP/1.0 cannot expect anything.
    pub fn expectation(&self) -> Expectation {
        match (self.fields.expect, self.version) {
            (None, _) | (Some(_), Version::Http10) => Expectation::None,
            (Some(value), Version::Http11 | Version::Http2)
                if value.eq_ignore_ascii_case(b"100-continue") =>
            {
                Expectation::Continue
            }
            (Some(_), Version::Http11 | Version::Http2) => Expectation::Odd,
        }
    }

    pub fn is_get_or_head(&self) -> bool {
        matches!(self.method, "GET" | "HEAD")
    }
}

impl RequestHeaders for Request<'_, '_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        for header in self.headers {
            if header.name.eq_ignore_ascii_case(name) {
                visit(header.value);
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        match name {
            // Known from parsing: each hit asks for these two.
            "authorization" => self.fields.authorization.is_some(),
            "cookie" => self.fields.cookie.is_some(),
            name => self
                .headers
                .iter()
                .any(|header| header.name.eq_ignore_ascii_case(name)),
        }
    }
}

impl Framing<'_> {
    fn body(&self, version: Version) -> Result<BodyLength, Flaw> {
        //= RFC 9112 section 6.1: "A server MAY reject a request that contains both Content-Length
        // and Transfer-Encoding"
        match (self.chunked, self.length) {
            (Some(()), Some(_)) => Err(Flaw::LengthAndCoding),
            //= RFC 9112 section 6.1: a coding in HTTP/1.0 means that the framing is faulty.
            (Some(()), None) if version == Version::Http10 => Err(Flaw::BadTransferCoding),
            (Some(()), None) => Ok(BodyLength::Chunked),
            (None, Some(0) | None) => Ok(BodyLength::None),
            (None, Some(length)) => Ok(BodyLength::Known(length)),
        }
    }

    fn persistence(&self, version: Version) -> Persistence {
        match (self.close, self.keep_alive, version) {
            (Some(()), _, _) | (None, None, Version::Http10) => Persistence::Close,
            (None, Some(()), Version::Http10) | (None, _, Version::Http11 | Version::Http2) => {
                Persistence::KeepAlive
            }
        }
    }
}

/// A head that goes on: wait for the rest, or refuse it where it is too long already.
fn partial(bytes: &[u8], limits: HeadLimits) -> Result<(), Flaw> {
    if bytes.len() > limits.target_bytes + 32 && !bytes.contains(&b'\n') {
        return Err(Flaw::TargetTooLong);
    }
    if bytes.len() >= limits.head_bytes {
        return Err(Flaw::HeadTooLong);
    }
    Ok(())
}

/// httparse takes a bare LF for the end of a line; RFC 9112 section 2.2 lets a server do so, but
/// another server on the way may not. Each line begins where the one before ended, so looking at
/// the two bytes before each name finds every bare LF without a second pass over the bytes.
fn check_line_ends(
    bytes: &[u8],
    method: &str,
    headers: &[Header<'_>],
    length: usize,
) -> Result<(), Flaw> {
    let offset = |text: &str| text.as_ptr() as usize - bytes.as_ptr() as usize;
    let empty_lines = &bytes[..offset(method)];
    let ends_well = |at: usize| bytes[..at].ends_with(b"\r\n");
    if empty_lines.chunks(2).any(|line| line != b"\r\n")
        || headers.iter().any(|header| !ends_well(offset(header.name)))
        || !bytes[..length].ends_with(b"\r\n\r\n")
    {
        return Err(Flaw::BareLineEnd);
    }
    Ok(())
}

/// Into `fields`, which is large, so that it is not moved.
fn read_fields<'b>(headers: &[Header<'b>], fields: &mut Fields<'b>) -> Result<Framing<'b>, Flaw> {
    let mut framing = Framing::default();
    for header in headers {
        let (name, value) = (header.name, Some(header.value));
        // By length first: most fields of most requests are told apart by that alone.
        match name.len() {
            4 if is_named(name, b"host") && framing.host.replace(header.value).is_some() => {
                return Err(Flaw::RepeatedHost);
            }
            5 if is_named(name, b"range") => fields.range = value,
            6 if is_named(name, b"cookie") => fields.cookie = value,
            6 if is_named(name, b"expect") => fields.expect = value,
            7 if is_named(name, b"upgrade") => framing.wish.upgrade = value,
            6 if is_named(name, b"pragma") => read_freshness(header.value, fields),
            7 if is_named(name, b"referer") => fields.referer = value,
            8 if is_named(name, b"if-match") => fields.if_match = value,
            8 if is_named(name, b"if-range") => fields.if_range = value,
            10 if is_named(name, b"connection") => read_connection(header.value, &mut framing),
            10 if is_named(name, b"user-agent") => fields.user_agent = value,
            10 if name.eq_ignore_ascii_case(HOME_FIELD) => fields.home_key = value,
            11 if name.eq_ignore_ascii_case(DRILL_FIELD) => fields.drill_key = value,
            11 if is_named(name, b"levee-fetch") => fields.fetch_key = value,
            13 if is_named(name, b"authorization") => fields.authorization = value,
            13 if is_named(name, b"cache-control") => read_freshness(header.value, fields),
            13 if is_named(name, b"if-none-match") => fields.if_none_match = value,
            14 if is_named(name, b"content-length") => read_length(header.value, &mut framing)?,
            15 if is_named(name, b"accept-encoding") => fields.accept_encoding = value,
            17 if is_named(name, b"if-modified-since") => fields.if_modified_since = value,
            19 if is_named(name, b"if-unmodified-since") => fields.if_unmodified_since = value,
            17 if is_named(name, b"transfer-encoding") => read_coding(header.value, &mut framing)?,
            9 if is_named(name, b"forwarded") => {
                fields.relayed = Relayed::Yes;
                read_scheme(header.value, fields);
            }
            3 if is_named(name, b"via") => fields.relayed = Relayed::Yes,
            15 if is_named(name, b"x-forwarded-for") => fields.relayed = Relayed::Yes,
            14 if is_named(name, b"sec-fetch-dest") => fields.fetch_destination = value,
            14 if is_named(name, b"sec-fetch-mode") => fields.fetch_mode = value,
            14 if is_named(name, b"service-worker") => fields.service_worker = value,
            17 if is_named(name, b"x-forwarded-proto") => read_scheme(header.value, fields),
            _ => {}
        }
    }
    Ok(framing)
}

/// Whether the field name `sent` is `name`, which has small letters and hyphens only. A few words
/// of the processor are compared at once, where letter by letter took a third of a parser's time.
fn is_named<const LENGTH: usize>(sent: &str, name: &[u8; LENGTH]) -> bool {
    let Ok(sent) = <&[u8; LENGTH]>::try_from(sent.as_bytes()) else {
        return false;
    };
    // What differs from a small letter by this bit alone is the large one; what differs by it from
    // a hyphen is the end of a line, which no name has in it.
    let differences = |(sent, name): (&u8, &u8)| (sent | 0x20) ^ name;
    sent.iter()
        .zip(name)
        .map(differences)
        .fold(0, |all, one| all | one)
        == 0
}

fn read_length(value: &[u8], framing: &mut Framing<'_>) -> Result<(), Flaw> {
    // 18 digits are an exabyte, and can never overflow.
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(Flaw::BadLength);
    }
    let length = value
        .iter()
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    // Repeated, even with the same value: whoever sends that is up to something.
    match framing.length.replace(length) {
        None => Ok(()),
        Some(_) => Err(Flaw::RepeatedLength),
    }
}

fn read_coding(value: &[u8], framing: &mut Framing<'_>) -> Result<(), Flaw> {
    if !value.eq_ignore_ascii_case(b"chunked") || framing.chunked.replace(()).is_some() {
        return Err(Flaw::BadTransferCoding);
    }
    Ok(())
}

fn read_connection(value: &[u8], framing: &mut Framing<'_>) {
    for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if option.eq_ignore_ascii_case(b"close") {
            framing.close = Some(());
        } else if option.eq_ignore_ascii_case(b"keep-alive") {
            framing.keep_alive = Some(());
        } else if option.eq_ignore_ascii_case(b"upgrade") {
            framing.wish.is_named = Some(());
        }
    }
}

/// `https`, or a list of the proxies on the way with it; `proto=https` in Forwarded (RFC 7239). One
/// that says so is enough: a visitor who claims it falsely is only not redirected.
fn read_scheme(value: &[u8], fields: &mut Fields<'_>) {
    let says_https = |word: &[u8]| {
        let word = word.trim_ascii();
        let word = match word.split_at_checked(6) {
            Some((name, rest)) if name.eq_ignore_ascii_case(b"proto=") => rest,
            _ => word,
        };
        let word = word.strip_prefix(b"\"").unwrap_or(word);
        word.strip_suffix(b"\"")
            .unwrap_or(word)
            .eq_ignore_ascii_case(b"https")
    };
    let mut words = value.split(|byte| matches!(byte, b',' | b';'));
    if words.any(says_https) {
        fields.came_by = Scheme::Https;
    }
}

fn read_freshness(value: &[u8], fields: &mut Fields<'_>) {
    let bypasses = |part: &[u8]| {
        let part = part.trim_ascii();
        part.eq_ignore_ascii_case(b"no-cache") || part.eq_ignore_ascii_case(b"max-age=0")
    };
    if value.split(|&byte| byte == b',').any(bypasses) {
        fields.freshness = Freshness::BypassCaches;
    }
}

#[cfg(test)]
mod tests;
