//! The request that goes to a source, made from a visitor's.
//!
//! Hop-by-hop fields and framing are dropped, Host is the source's, Via is ours. A request for the
//! cache is stripped of everything that makes its response fit one visitor only: conditions,
//! ranges, and, towards an origin that we rescue, credentials.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use hyper::body::{Body, Frame, SizeHint};

use super::HOME_FIELD;
use crate::cache::Stored;
use crate::cacheability::{Credentials, DEVICE, normal_encodings};
use crate::connection_fields::{is_of_connection, welcomes_trailers};
use crate::flight::{
    Asker, BodyReceiver, BrokenOff, Company, FetchError, Miss, Purpose, RequestHeaders, Source,
    SpaceRef,
};
use crate::request::DRILL_FIELD;

/// Our name in Via.
pub(super) const PSEUDONYM: &str = "levee";
/// Carries the secret of a rescue.
pub(super) const FETCH_KEY: &str = "levee-fetch";

/// Fields that end here beside those of the connection: they are for us alone, or we write them
/// ourselves.
const OURS: [&str; 9] = [
    "content-length",
    DRILL_FIELD,
    "expect",
    "host",
    FETCH_KEY,
    HOME_FIELD,
    "proxy-authenticate",
    "proxy-authorization",
    "trailer",
];

/// Fields that ask for less than the whole.
const CONDITIONS: [&str; 6] = [
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
];

/// For whom a request is.
#[derive(Clone, Debug)]
pub(super) enum Intent {
    /// For the cache; where there is an old object, whether it has changed.
    Share(Option<std::sync::Arc<Stored>>),
    /// For one visitor: its method, conditions and ranges go along.
    Pass,
}

/// The request body towards a source.
#[derive(Debug)]
pub(crate) enum Upload {
    None,
    Stream(BodyReceiver),
}

/// How the end of a request's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// By its length, or there is no body.
    Known,
    Chunked,
}

impl Framing {
    fn of(body: &Upload) -> Self {
        match body {
            Upload::Stream(body) if body.size_hint().exact().is_none() => Self::Chunked,
            Upload::Stream(_) | Upload::None => Self::Known,
        }
    }
}

impl Asker {
    /// A miss, without its body.
    pub(super) fn of(miss: Miss) -> (Box<Self>, Option<BodyReceiver>) {
        let credentials = credentials(miss.key.space.borrowed(), &miss.headers);
        let asker = Self {
            key: miss.key,
            method: miss.method,
            headers: miss.headers,
            source: miss.source,
            visitor: miss.visitor,
            credentials,
        };
        (Box::new(asker), miss.body)
    }

    /// Whether it is another rescue server that asks us as the object's home.
    pub(super) const fn is_another(&self) -> bool {
        match &self.source.company {
            Company::ForAnother(_) => true,
            Company::Alone | Company::WithHomes(_) => false,
        }
    }
}

/// What a request carries that could make its response personal. Towards origins that we rescue no
/// credentials are ever sent on, so there all requests are alike.
pub(super) fn credentials(
    space: SpaceRef<'_>,
    headers: &(impl RequestHeaders + ?Sized),
) -> Credentials {
    match space {
        SpaceRef::Origin(..) => Credentials::None,
        SpaceRef::Own(_) if headers.has("authorization") => Credentials::Authorization,
        SpaceRef::Own(_) if headers.has("cookie") => Credentials::Cookie,
        SpaceRef::Own(_) => Credentials::None,
    }
}

/// How often our name stands in Via.
pub(super) fn hops(headers: &[(Bytes, Bytes)]) -> usize {
    let mut hops = 0;
    headers.each("via", &mut |value| {
        hops += value
            .split(|&byte| byte == b',')
            .filter(|hop| {
                let mut words = hop
                    .split(|byte| byte.is_ascii_whitespace())
                    .filter(|word| !word.is_empty());
                words.nth(1) == Some(PSEUDONYM.as_bytes())
            })
            .count();
    });
    hops
}

/// The request to send.
pub(super) fn build(
    asker: &Asker,
    intent: &Intent,
    body: Upload,
) -> Result<Request<Upload>, FetchError> {
    let bad = |_| FetchError::BadRequest;
    let target = PathAndQuery::from_maybe_shared(asker.key.target.clone()).map_err(|_| ());
    let framing = Framing::of(&body);
    let mut request = Request::new(body);
    *request.uri_mut() = Uri::from(target.map_err(bad)?);
    *request.method_mut() = match intent {
        Intent::Share(_) => Method::GET,
        Intent::Pass => asker.method.clone(),
    };
    let host = HeaderValue::try_from(&asker.source.authority).map_err(|_| ());
    let headers = request.headers_mut();
    headers.insert(header::HOST, host.map_err(bad)?);
    copy_headers(asker, intent, headers).map_err(bad)?;
    match framing {
        Framing::Known => {}
        Framing::Chunked => {
            // Unasked, hyper would not send the body of a GET.
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
    }
    add_trailing(asker, framing, headers);
    add_via(headers);
    add_key(&asker.source, headers);
    add_capability(&asker.source, headers);
    if let Intent::Share(stale) = intent {
        add_conditions(stale.as_deref(), headers);
        headers.remove(header::ACCEPT_ENCODING);
        let encodings = normal_encodings(&asker.headers);
        if let Ok(value) = HeaderValue::try_from(encodings)
            && !value.is_empty()
        {
            headers.insert(header::ACCEPT_ENCODING, value);
        }
    }
    Ok(request)
}

/// The visitor's fields, as far as they go along. Those that its Connection named are gone already:
/// what is asked for must be what the answer is kept under.
fn copy_headers(asker: &Asker, intent: &Intent, headers: &mut HeaderMap) -> Result<(), ()> {
    let dropped = |name: &str| {
        let condition = CONDITIONS.contains(&name) && matches!(intent, Intent::Share(_));
        let personal =
            matches!(name, "cookie" | "authorization") && asker.source.purpose == Purpose::Rescue;
        OURS.contains(&name) || is_of_connection(name) || condition || personal
    };
    for (name, value) in &asker.headers {
        let name = HeaderName::from_bytes(name).map_err(|_| ())?;
        if !dropped(name.as_str()) {
            let value = HeaderValue::from_maybe_shared(value.clone()).map_err(|_| ())?;
            headers.append(name, value);
        }
    }
    Ok(())
}

/// Says to an application of our own that trailers are welcome, where they are to the visitor, and
/// which ones may follow the visitor's body.
fn add_trailing(asker: &Asker, framing: Framing, headers: &mut HeaderMap) {
    match asker.source.purpose {
        Purpose::Rescue => return,
        Purpose::Upstream => {}
    }
    let mut welcome = false;
    asker
        .headers
        .each("te", &mut |value| welcome |= welcomes_trailers(value));
    if welcome {
        //= RFC 9110 section 10.1.4: "A sender of TE MUST also send a "TE" connection option"
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    asker.headers.each("trailer", &mut |value| match framing {
        // The library sends what is named here and nothing else.
        Framing::Chunked => {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(header::TRAILER, value);
            }
        }
        Framing::Known => {}
    });
}

fn add_via(headers: &mut HeaderMap) {
    let value = HeaderValue::from_static("1.1 levee");
    headers.append(header::VIA, value);
}

fn add_key(source: &Source, headers: &mut HeaderMap) {
    let value = source
        .key
        .and_then(|key| HeaderValue::try_from(key.to_string()).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(FETCH_KEY), value);
    }
}

/// Tells an application of our own that it may speak to us alone, in Surrogate-Control.
fn add_capability(source: &Source, headers: &mut HeaderMap) {
    let capability = format!("{DEVICE}=\"Surrogate/1.0\"");
    if let (Purpose::Upstream, Ok(value)) = (source.purpose, HeaderValue::try_from(capability)) {
        headers.append(HeaderName::from_static("surrogate-capability"), value);
    }
}

/// Asks whether the old object is still right.
fn add_conditions(stale: Option<&Stored>, headers: &mut HeaderMap) {
    let Some(stored) = stale else { return };
    let conditions = [
        ("etag", header::IF_NONE_MATCH),
        ("last-modified", header::IF_MODIFIED_SINCE),
    ];
    for (validator, condition) in conditions {
        let value = stored.head.header(validator);
        if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(value).ok()) {
            headers.insert(condition, value);
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::None => Poll::Ready(None),
            Self::Stream(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::None => true,
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::None => SizeHint::with_exact(0),
            Self::Stream(body) => body.size_hint(),
        }
    }
}
