//! What can be wrong with a request's head, and the status that tells so.

use thiserror::Error;

/// Why a head was refused. Always the visitor's fault; the connection is closed afterwards, because
/// nobody knows where the next request would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Flaw {
    #[error("not HTTP")]
    NotHttp,
    #[error("a line ends in a bare CR or LF")]
    BareLineEnd,
    #[error("bad method")]
    BadMethod,
    #[error("method longer than any")]
    MethodTooLong,
    #[error("bad request target")]
    BadTarget,
    #[error("request target too long")]
    TargetTooLong,
    #[error("head too long")]
    HeadTooLong,
    #[error("too many header lines")]
    TooManyHeaders,
    #[error("bad header line")]
    BadHeader,
    #[error("HTTP version not supported")]
    BadVersion,
    #[error("no Host")]
    MissingHost,
    #[error("Host repeated")]
    RepeatedHost,
    #[error("bad Host")]
    BadHost,
    #[error("the target names another host than Host")]
    OtherHost,
    #[error("this server does not speak for https targets")]
    HttpsTarget,
    #[error("bad Content-Length")]
    BadLength,
    #[error("Content-Length repeated")]
    RepeatedLength,
    #[error("a Transfer-Encoding other than one chunked")]
    BadTransferCoding,
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
}

impl Flaw {
    /// What the visitor sees.
    pub const fn status(self) -> u16 {
        match self {
            Self::NotHttp
            | Self::BareLineEnd
            | Self::BadMethod
            | Self::BadTarget
            | Self::BadHeader
            | Self::MissingHost
            | Self::RepeatedHost
            | Self::BadHost
            | Self::OtherHost
            | Self::BadLength
            | Self::RepeatedLength
            | Self::BadTransferCoding
            | Self::LengthAndCoding => 400,
            Self::TargetTooLong => 414,
            Self::HttpsTarget => 421,
            Self::HeadTooLong | Self::TooManyHeaders => 431,
            Self::MethodTooLong => 501,
            Self::BadVersion => 505,
        }
    }
}

/// What the parser's complaint means. Its version error covers both `HTTP/2.0`, which is a version,
/// and garbage, which is not.
pub(super) fn of_parser(error: httparse::Error, bytes: &[u8]) -> Flaw {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => Flaw::BadHeader,
        httparse::Error::NewLine => Flaw::BareLineEnd,
        httparse::Error::Status => Flaw::NotHttp,
        httparse::Error::Token => Flaw::BadMethod,
        httparse::Error::TooManyHeaders => Flaw::TooManyHeaders,
        httparse::Error::Version => {
            let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or(bytes);
            let is_version = |word: &[u8]| {
                matches!(word, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
                    if major.is_ascii_digit() && minor.is_ascii_digit())
            };
            match line.trim_ascii().rsplit(|&byte| byte == b' ').next() {
                Some(word) if is_version(word) => Flaw::BadVersion,
                _ => Flaw::NotHttp,
            }
        }
    }
}
