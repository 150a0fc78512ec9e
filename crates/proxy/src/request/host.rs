//! Whom a request is for: its target and its Host field, which must agree.

use super::{Flaw, Version};

/// Authority and origin-form target of a request.
pub(super) fn settle<'b>(
    method: &str,
    target: &'b str,
    version: Version,
    host: Option<&'b [u8]>,
) -> Result<(&'b str, &'b str), Flaw> {
    if !target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#')
    {
        return Err(Flaw::BadTarget);
    }
    let host = match (host, version) {
        (Some(host), _) => std::str::from_utf8(host).map_err(|_| Flaw::BadHost)?,
        //= RFC 9112 section 3.2: "A server MUST respond with a 400 (Bad Request) status code to any
        // HTTP/1.1 request message that lacks a Host header field"
        (None, Version::Http11 | Version::Http2) => return Err(Flaw::MissingHost),
        (None, Version::Http10) => "",
    };
    if target.starts_with('/') || (target == "*" && method == "OPTIONS") {
        return Ok((host, target));
    }
    if method == "CONNECT" {
        // The engine refuses CONNECT; what it asked for does not matter.
        return Ok((host, "/"));
    }
    let (scheme, rest) = target.split_once("://").ok_or(Flaw::BadTarget)?;
    if scheme.eq_ignore_ascii_case("https") {
        return Err(Flaw::HttpsTarget);
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Flaw::BadTarget);
    }
    let slash = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(slash);
    let without_port = |text: &'b str| text.strip_suffix(":80").unwrap_or(text);
    if !host.is_empty() && !without_port(authority).eq_ignore_ascii_case(without_port(host)) {
        return Err(Flaw::OtherHost);
    }
    match path {
        "" => Ok((authority, "/")),
        path if path.starts_with('/') => Ok((authority, path)),
        // `http://host?query` has no path to send on.
        _ => Err(Flaw::BadTarget),
    }
}

/// A target without its query.
pub(super) fn path_of(target: &str) -> &str {
    let end = target.bytes().position(|byte| byte == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// The name in an authority, without its port.
pub(super) fn name_of(authority: &str) -> Result<&str, Flaw> {
    if authority.is_empty() || is_plain(authority) {
        return Ok(authority);
    }
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']').ok_or(Flaw::BadHost)?;
            (&authority[..end + 2], &authority[end + 2..])
        }
        None => {
            let colon = authority.bytes().position(|byte| byte == b':');
            authority.split_at(colon.unwrap_or(authority.len()))
        }
    };
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    // No label of a name is empty; a dot at the end is the root's.
    let (mut fits, mut before) = (!name.is_empty() && name.len() <= NAME_MAX, b'.');
    for byte in name.bytes() {
        // Without a way out: all bytes of nearly all names fit.
        fits &= IN_NAMES[usize::from(byte)] & ((byte != b'.') | (before != b'.'));
        before = byte;
    }
    if port_fits && fits {
        Ok(name)
    } else {
        Err(Flaw::BadHost)
    }
}

/// Whether all of `authority` is a name of letters, digits, hyphens and labels that are not empty:
/// nearly all of them are, and one look at each byte tells.
fn is_plain(authority: &str) -> bool {
    let (mut seen, mut before) = (0, DOT);
    for byte in authority.bytes() {
        let kind = KINDS[usize::from(byte)];
        // Two dots in a row are an empty label.
        seen |= kind | (kind & before) << 1;
        before = kind;
    }
    seen <= DOT && authority.len() <= NAME_MAX
}

/// A byte of a name that ends a label; the others of names are 0, and all other bytes more.
const DOT: u8 = 1;

const KINDS: [u8; 256] = {
    let mut table = [4; 256];
    let mut byte = 0;
    while byte < 128 {
        let this = byte as u8;
        if this.is_ascii_alphanumeric() || matches!(this, b'-' | b'_') {
            table[byte] = 0;
        } else if this == b'.' {
            table[byte] = DOT;
        }
        byte += 1;
    }
    table
};

/// Longest host name.
const NAME_MAX: usize = 253;

/// Bytes that names and addresses are made of; a table, because each request asks for each byte.
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let this = byte as u8;
        table[byte] =
            this.is_ascii_alphanumeric() || matches!(this, b'-' | b'.' | b'_' | b':' | b'[' | b']');
        byte += 1;
    }
    table
};

/// A host name in lower case, without a dot at its end, on the stack: looking it up allocates
/// nothing, and nearly all visitors send it so that nothing has to be written either.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack for one look-up"
)]
pub(crate) enum LowerName<'b> {
    AsSent(&'b str),
    Lowered {
        bytes: [u8; NAME_MAX],
        length: usize,
    },
}

impl<'b> LowerName<'b> {
    /// The lower-case form of `name`, which [`super::Request::parse`] has checked.
    pub fn of(name: &'b str) -> Self {
        let name = name.strip_suffix('.').unwrap_or(name);
        // Without a way out, so that many bytes are looked at at once.
        let is_large = |any, byte: u8| any | byte.is_ascii_uppercase();
        if !name.bytes().fold(false, is_large) {
            return Self::AsSent(name);
        }
        let length = name.len().min(NAME_MAX);
        let mut bytes = [0; NAME_MAX];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        bytes[..length].make_ascii_lowercase();
        Self::Lowered { bytes, length }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::AsSent(name) => name,
            Self::Lowered { bytes, length } => {
                std::str::from_utf8(&bytes[..*length]).unwrap_or_default()
            }
        }
    }
}
