//! Why a fetch gave nothing, or was not begun.
//!
//! Each error answers three questions: whose fault, may it be tried again, what the visitor sees.

use http::StatusCode;
use thiserror::Error;

/// Why a response did not come, or broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum FetchError {
    /// The request went through this server before (Via).
    #[error("the request has come back to a server that it went through before")]
    Loop,
    /// Its target or a header cannot be sent on.
    #[error("the request cannot be sent on as it is")]
    BadRequest,
    /// The visitor broke off its own request body.
    #[error("the visitor broke off the request body")]
    RequestAborted,
    /// Too many fetches run already.
    #[error("too many fetches run already")]
    Overloaded,
    /// The name of the server that has the object leads nowhere.
    #[error("no address is known for the server that has the object")]
    NameUnknown,
    /// Nobody listens where the server should be.
    #[error("the server that has the object refused the connection")]
    ConnectRefused,
    /// There is no way to the server, or none for us.
    #[error("cannot connect to the server that has the object")]
    ConnectFailed,
    /// No connection in time.
    #[error("the server that has the object did not take the connection in time")]
    ConnectTimeout,
    /// No answer in time.
    #[error("the server that has the object did not answer in time")]
    FirstByteTimeout,
    /// The body stopped coming.
    #[error("the body stopped coming")]
    BodyTimeout,
    /// The connection ended before an answer.
    #[error("the connection ended before an answer")]
    ClosedEarly,
    /// The body ended before its announced end.
    #[error("the body ended before its announced end")]
    Truncated,
    /// The answer was not HTTP, or its head was too large.
    #[error("the answer is not well-formed HTTP")]
    Malformed,
    /// The fetch itself died: a bug of ours, or the server is going down.
    #[error("the fetch was given up")]
    Aborted,
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The visitor's.
    Visitor,
    /// The origin's or upstream's.
    Source,
    /// Ours.
    Ours,
}

/// Whether the same request may be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would fail again, or might have had an effect.
    Never,
    /// Only where the request has no body and an idempotent method.
    WhenIdempotent,
    /// Nothing was sent.
    Always,
}

impl FetchError {
    /// All of them, in order; counters go by this order.
    pub const ALL: [Self; 14] = [
        Self::Loop,
        Self::BadRequest,
        Self::RequestAborted,
        Self::Overloaded,
        Self::NameUnknown,
        Self::ConnectRefused,
        Self::ConnectFailed,
        Self::ConnectTimeout,
        Self::FirstByteTimeout,
        Self::BodyTimeout,
        Self::ClosedEarly,
        Self::Truncated,
        Self::Malformed,
        Self::Aborted,
    ];

    /// Whose fault.
    pub const fn fault(self) -> Fault {
        match self {
            Self::Loop | Self::BadRequest | Self::RequestAborted => Fault::Visitor,
            Self::NameUnknown
            | Self::ConnectRefused
            | Self::ConnectFailed
            | Self::ConnectTimeout
            | Self::FirstByteTimeout
            | Self::BodyTimeout
            | Self::ClosedEarly
            | Self::Truncated
            | Self::Malformed => Fault::Source,
            Self::Overloaded | Self::Aborted => Fault::Ours,
        }
    }

    /// Whether the request may be sent once more.
    pub const fn retry(self) -> Retry {
        match self {
            Self::Overloaded
            | Self::NameUnknown
            | Self::ConnectRefused
            | Self::ConnectFailed
            | Self::ConnectTimeout => Retry::Always,
            Self::ClosedEarly | Self::Aborted => Retry::WhenIdempotent,
            Self::Loop
            | Self::BadRequest
            | Self::RequestAborted
            | Self::FirstByteTimeout
            | Self::BodyTimeout
            | Self::Truncated
            | Self::Malformed => Retry::Never,
        }
    }

    /// What the visitor sees, where no head has been sent yet.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::BadRequest | Self::RequestAborted => StatusCode::BAD_REQUEST,
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout | Self::FirstByteTimeout | Self::BodyTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::NameUnknown
            | Self::ConnectRefused
            | Self::ConnectFailed
            | Self::ClosedEarly
            | Self::Truncated
            | Self::Malformed
            | Self::Aborted => StatusCode::BAD_GATEWAY,
        }
    }

    /// Name for metrics and logs.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::BadRequest => "bad_request",
            Self::RequestAborted => "request_aborted",
            Self::Overloaded => "overloaded",
            Self::NameUnknown => "name_unknown",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectFailed => "connect_failed",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::ClosedEarly => "closed_early",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::Aborted => "aborted",
        }
    }

    /// What the field Proxy-Status calls it.
    pub const fn proxy_status(self) -> &'static str {
        //= RFC 9209 section 2.3
        match self {
            Self::Loop => "proxy_loop_detected",
            Self::BadRequest | Self::RequestAborted => "http_request_error",
            Self::Overloaded => "connection_limit_reached",
            Self::NameUnknown => "dns_error",
            Self::ConnectRefused => "connection_refused",
            Self::ConnectFailed => "destination_ip_unroutable",
            Self::ConnectTimeout => "connection_timeout",
            Self::FirstByteTimeout => "http_response_timeout",
            Self::BodyTimeout => "connection_read_timeout",
            Self::ClosedEarly => "connection_terminated",
            Self::Truncated => "http_response_incomplete",
            Self::Malformed => "http_protocol_error",
            Self::Aborted => "proxy_internal_error",
        }
    }
}

/// Why a request was not taken: the visitor gets a 503 with Retry-After.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Overloaded {
    /// As many wait for this object as may.
    #[error("too many requests wait for this object")]
    Waiters,
    /// As many fetches from this source run as may.
    #[error("too many fetches from this source run")]
    Source,
    /// As many fetches run as may.
    #[error("too many fetches run")]
    Flights,
}
