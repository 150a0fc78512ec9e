//! Where a page stands, and which names are its site's own.
//!
//! References are resolved as a browser does it (WHATWG URL, by the `url` crate). Only what leads
//! to the site itself is an object of ours: no rescue server stores what belongs to others.

use std::borrow::Cow;

use encoding_rs::Encoding;
use thiserror::Error;
use url::Url;

use crate::found::{Object, Use};
use crate::limits::URL_BYTES_MAX;

/// Where a page stands, and which names are its site's own.
#[derive(Clone, Debug)]
pub struct Place {
    page: Url,
    own: Vec<Origin>,
}

/// Why there is no such place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlaceError {
    /// Not an absolute URL of a web server.
    #[error("{0} is not an http or https URL")]
    NoWebAddress(String),
}

/// What must be equal for two URLs to lead to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Place {
    /// The place of the page with this URL. Its own server is always its site's own; `own` names
    /// the others, as `https://static.example.org` or `http://example.org:8080`. A name that
    /// answers to both schemes is named twice.
    ///
    /// # Errors
    /// If one of them is no URL of a web server.
    pub fn new(page: &str, own: &[&str]) -> Result<Self, PlaceError> {
        let read = |text: &str| {
            let url = Url::parse(text).ok();
            url.and_then(|url| Origin::of(&url).map(|origin| (url, origin)))
                .ok_or_else(|| PlaceError::NoWebAddress(text.to_owned()))
        };
        let (page, origin) = read(page)?;
        let mut names = vec![origin];
        for name in own {
            names.push(read(name)?.1);
        }
        Ok(Self { page, own: names })
    }

    /// The URL of the page.
    pub(crate) const fn page(&self) -> &Url {
        &self.page
    }

    /// Whether this URL leads to the server of the page, by whichever scheme that is named.
    pub(crate) fn is_same_server(&self, url: &Url) -> bool {
        let is_same = url.host_str() == self.page.host_str() && url.port() == self.page.port();
        is_same && self.owns(url)
    }

    fn owns(&self, url: &Url) -> bool {
        Origin::of(url).is_some_and(|origin| self.own.contains(&origin))
    }

    /// The object that a reference leads to, if it is the site's own.
    pub(crate) fn object(&self, url: &Url, object_use: Use) -> Option<Object> {
        let is_bounded = url.as_str().len() <= URL_BYTES_MAX;
        // No browser sends names and passwords along with what a page embeds.
        if !is_bounded || !self.owns(url) || !url.username().is_empty() || url.password().is_some()
        {
            return None;
        }
        let host = url.host_str()?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Some(Object {
            authority,
            target,
            object_use,
        })
    }
}

impl Origin {
    fn of(url: &Url) -> Option<Self> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        Some(Self {
            scheme,
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }
}

/// Where a reference leads. None for what leads to no server: nothing, a fragment, `data:`.
pub fn resolve(base: &Url, reference: &str, encoding: &'static Encoding) -> Option<Url> {
    let reference = reference.trim_matches(|char: char| char <= ' ');
    let begins = |with: &str| {
        let start = reference.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    // The most frequent ones without an allocation.
    if reference.is_empty() || begins("#") || begins("data:") || begins("blob:") {
        return None;
    }
    let encode = encoder(encoding);
    let options = Url::options().base_url(Some(base));
    let url = match encoding == encoding_rs::UTF_8 {
        true => options.parse(reference),
        false => options.encoding_override(Some(&encode)).parse(reference),
    };
    url.ok()
}

/// How queries are encoded.
fn encoder(encoding: &'static Encoding) -> impl for<'a> Fn(&'a str) -> Cow<'a, [u8]> {
    move |query| encoding.encode(query).0
}
