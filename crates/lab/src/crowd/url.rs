//! As much of a web address as a visitor needs: reading one, and following a reference from it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A web address, without its fragment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url {
    /// Whether it is asked for by HTTP or by HTTPS.
    pub scheme: Scheme,
    /// Host name, lower case.
    pub host: String,
    /// Port, that of the scheme where none was given.
    pub port: u16,
    /// Path and query, beginning with a slash.
    pub target: String,
}

/// How a server is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// `http`.
    #[default]
    Http,
    /// `https`.
    Https,
}

impl Scheme {
    /// The port that needs not be named.
    pub const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// What an address begins with.
    const fn beginning(self) -> &'static str {
        match self {
            Self::Http => "http://",
            Self::Https => "https://",
        }
    }
}

/// An address that this visitor cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Another scheme than `http` and `https`.
    #[error("{0} is not a web address")]
    Scheme(String),
    /// No host, or a port that is no number.
    #[error("{0} has no good host and port")]
    Authority(String),
}

impl Url {
    /// Where `reference`, found in the document at this address, leads (RFC 3986 section 5.2).
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.split('#').next().unwrap_or(reference);
        if let Some(rest) = reference.strip_prefix("//") {
            return format!("{}{rest}", self.scheme.beginning()).parse();
        }
        if has_scheme(reference) {
            return reference.parse();
        }
        let (base_path, _) = split_query(&self.target);
        let target = if reference.is_empty() {
            self.target.clone()
        } else if reference.starts_with('/') {
            without_dots(reference)
        } else if reference.starts_with('?') {
            format!("{base_path}{reference}")
        } else {
            let folder = &base_path[..=base_path.rfind('/').unwrap_or(0)];
            without_dots(&format!("{folder}{reference}"))
        };
        Ok(Self {
            target,
            ..self.clone()
        })
    }

    /// `host:port` as it goes into the Host header.
    pub fn authority(&self) -> String {
        match self.port == self.scheme.port() {
            true => self.host.clone(),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let begins_with = |scheme: &Scheme| {
            let beginning = scheme.beginning();
            let there = text.get(..beginning.len()).unwrap_or_default();
            there.eq_ignore_ascii_case(beginning)
        };
        let known = [Scheme::Http, Scheme::Https];
        let scheme = known.into_iter().find(begins_with);
        let scheme = scheme.ok_or_else(|| UrlError::Scheme(text.to_owned()))?;
        let rest = &text[scheme.beginning().len()..];
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let bad = || UrlError::Authority(text.to_owned());
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| bad())?),
            None => (authority, scheme.port()),
        };
        if host.is_empty() || host.contains('@') {
            return Err(bad());
        }
        let target = match target.chars().next() {
            Some('/') => without_dots(target),
            Some(_) | None => format!("/{target}"),
        };
        Ok(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            target,
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = self.scheme.beginning();
        write!(f, "{beginning}{}{}", self.authority(), self.target)
    }
}

fn has_scheme(reference: &str) -> bool {
    let letters = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic());
    reference
        .split_once(':')
        .is_some_and(|(scheme, _)| letters(scheme))
}

fn split_query(target: &str) -> (&str, &str) {
    target.split_at(target.find('?').unwrap_or(target.len()))
}

/// A path with its `.` and `..` taken out (RFC 3986 section 5.2.4); the query stays as it is.
fn without_dots(target: &str) -> String {
    let (path, query) = split_query(target);
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            name => kept.push(name),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_where_a_browser_would_go() {
        let base: Url = "http://A.localhost:8081/posts/one.html?x=1"
            .parse()
            .unwrap();
        let check = |reference: &str, expected: &str| {
            assert_eq!(base.join(reference).unwrap().to_string(), expected);
        };
        check("../images/a.png", "http://a.localhost:8081/images/a.png");
        check("two.html", "http://a.localhost:8081/posts/two.html");
        check("./two.html#top", "http://a.localhost:8081/posts/two.html");
        check("/", "http://a.localhost:8081/");
        check("../../../b", "http://a.localhost:8081/b");
        check("?y=2", "http://a.localhost:8081/posts/one.html?y=2");
        check("..", "http://a.localhost:8081/");
        check("//b.localhost/c", "http://b.localhost/c");
        check("http://b.localhost", "http://b.localhost/");
    }

    #[test]
    fn https_has_a_port_of_its_own_and_stays_what_it_is() {
        let base: Url = "HTTPS://a.localhost/".parse().unwrap();
        assert_eq!((base.scheme, base.port), (Scheme::Https, 443));
        let check = |reference: &str, expected: &str| {
            assert_eq!(base.join(reference).unwrap().to_string(), expected);
        };
        check("//b.localhost/c", "https://b.localhost/c");
        check("http://b.localhost:443/", "http://b.localhost:443/");
        check("https://b.localhost:8443/c", "https://b.localhost:8443/c");
    }

    #[test]
    fn addresses_that_lead_elsewhere_are_refused() {
        let base: Url = "http://a.localhost/".parse().unwrap();
        assert!(base.join("ftp://a.localhost/").is_err());
        assert!(base.join("mailto:someone").is_err());
        assert!("http://:80/".parse::<Url>().is_err());
        assert!("http://a:port/".parse::<Url>().is_err());
        assert!("http://user@a/".parse::<Url>().is_err());
    }
}
