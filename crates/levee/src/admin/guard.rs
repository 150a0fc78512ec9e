//! Who may ask the admin address, given that a browser on this machine runs strangers' pages.
//!
//! Two ways in are closed. A page may point a name of its own at 127.0.0.1 and then read what is
//! there (DNS rebinding): so the Host must be an address, `localhost`, or a name from the settings.
//! A page may post a form to us: so a request that changes something must come from ourselves.

use std::net::IpAddr;

use hyper::{Method, Request, header};

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The Host header names something that is not this server.
    ForeignHost,
    /// Another site's page sent it.
    ForeignOrigin,
}

/// Whether `request` may be answered. `hosts` are further names of this server.
pub(super) fn check<B>(request: &Request<B>, hosts: &[String]) -> Result<(), Refusal> {
    let text = |name: &str| match request.headers().get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| Refusal::ForeignHost),
    };
    // Probes tell nothing that a stranger could use, and probers send whatever Host they like.
    if request.uri().path().starts_with("/-/") && request.method() != Method::POST {
        return Ok(());
    }
    let host = text(header::HOST.as_str())?;
    // Without a Host it is no browser.
    if host.is_some_and(|host| !is_ours(host, hosts)) {
        return Err(Refusal::ForeignHost);
    }
    let origin = text(header::ORIGIN.as_str())?;
    let ours = |origin: &str| host.is_some_and(|host| origin == format!("http://{host}"));
    if origin.is_some_and(|origin| !ours(origin)) {
        return Err(Refusal::ForeignOrigin);
    }
    match (request.method(), text("sec-fetch-site")?) {
        (&Method::POST, Some("same-origin" | "none") | None) => Ok(()),
        (&Method::POST, Some(_)) => Err(Refusal::ForeignOrigin),
        (_, _) => Ok(()),
    }
}

fn is_ours(host: &str, hosts: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_ascii_lowercase();
    // Browsers resolve `localhost` and what is below it themselves, so no stranger can point it.
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok()
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        check(&request, &["levee.lan".to_owned()])
    }

    #[test]
    fn only_our_own_names_are_answered() {
        for host in [
            "localhost",
            "localhost:9100",
            "127.0.0.1:9100",
            "[::1]:9100",
            "a.localhost:1",
            "192.0.2.1",
            "LEVEE.lan:9100",
        ] {
            assert_eq!(asked("GET", "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9100",
            "127.0.0.1.evil.example",
            "",
        ] {
            let refused = Err(Refusal::ForeignHost);
            assert_eq!(asked("GET", "/", &[("host", host)]), refused, "{host}");
            assert_eq!(asked("GET", "/-/healthy", &[("host", host)]), Ok(()));
            assert_eq!(asked("POST", "/-/reload", &[("host", host)]), refused);
        }
        assert_eq!(asked("GET", "/", &[]), Ok(()));
    }

    #[test]
    fn no_other_site_can_post() {
        let host = ("host", "127.0.0.1:9100");
        let post = |more: (&'static str, &'static str)| asked("POST", "/-/reload", &[host, more]);
        let refused = Err(Refusal::ForeignOrigin);
        assert_eq!(asked("POST", "/-/reload", &[host]), Ok(()));
        assert_eq!(post(("origin", "http://127.0.0.1:9100")), Ok(()));
        assert_eq!(post(("origin", "http://127.0.0.1:9101")), refused);
        assert_eq!(post(("origin", "http://evil.example")), refused);
        assert_eq!(post(("origin", "null")), refused);
        assert_eq!(post(("sec-fetch-site", "cross-site")), refused);
        assert_eq!(post(("sec-fetch-site", "same-site")), refused);
    }
}
