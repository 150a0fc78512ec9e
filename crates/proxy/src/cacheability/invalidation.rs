//! What a request that changes something makes old beside its own target (RFC 9111 section 4.4).

use http::{HeaderMap, header};

/// The targets that the response to an unsafe request names in Location and Content-Location, as
/// far as they lie on the same origin as the request: `authority` is its Host, `target` its path
/// and query.
///
/// Another origin's objects are never touched: an application must not be able to empty the cache
/// of its neighbour.
pub fn named_targets(headers: &HeaderMap, authority: &str, target: &str) -> Vec<String> {
    [header::LOCATION, header::CONTENT_LOCATION]
        .iter()
        .flat_map(|name| headers.get_all(name))
        .filter_map(|value| resolved(value.to_str().ok()?.trim(), authority, target))
        .collect()
}

/// Path and query of a reference (RFC 3986 section 5.2); none where it leads to another origin.
fn resolved(reference: &str, authority: &str, target: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    if let Some(rest) = after_scheme(reference) {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        return is_same_host(host, authority).then(|| rooted(rest));
    }
    if has_scheme(reference) {
        return None;
    }
    Some(match reference.chars().next() {
        None => target.to_owned(),
        Some('/') => rooted(reference),
        Some('?') => format!("{path}{reference}"),
        Some(_) => {
            let folder = path.rfind('/').map_or("/", |slash| &path[..=slash]);
            rooted(&format!("{folder}{reference}"))
        }
    })
}

/// What follows the `//` of an http reference with an authority.
fn after_scheme(reference: &str) -> Option<&str> {
    let rest = match reference.split_once(':') {
        Some((scheme, rest)) if is_http(scheme) => rest,
        Some(_) | None => reference,
    };
    rest.strip_prefix("//")
}

fn is_http(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?']);
    end.is_some_and(|end| reference[end..].starts_with(':'))
}

/// Whether two hosts are one; a default port may be written or not.
fn is_same_host(host: &str, authority: &str) -> bool {
    let plain = |text: &str| {
        let text = text.to_ascii_lowercase();
        let short = text.strip_suffix(":80").or(text.strip_suffix(":443"));
        short.map_or(text.clone(), str::to_owned)
    };
    plain(host) == plain(authority)
}

/// A target with its dots taken out (RFC 3986 section 5.2.4).
fn rooted(path_and_query: &str) -> String {
    let (path, query) = match path_and_query.find('?') {
        Some(at) => path_and_query.split_at(at),
        None => (path_and_query, ""),
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut is_folder = path.is_empty();
    for segment in path.split('/').skip(1) {
        is_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let end = match is_folder && !segments.is_empty() {
        true => "/",
        false => "",
    };
    format!("/{}{end}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn references_are_resolved_and_other_origins_left_alone() {
        let table = [
            ("/a/b", Some("/a/b")),
            ("/a/b?c#d", Some("/a/b?c")),
            ("b", Some("/shop/b")),
            ("../b", Some("/b")),
            ("./b/.", Some("/shop/b/")),
            ("/..", Some("/")),
            ("?page=2", Some("/shop/item?page=2")),
            ("", Some("/shop/item?id=1")),
            ("http://example.org/x", Some("/x")),
            ("HTTP://EXAMPLE.org:80/x?y", Some("/x?y")),
            ("https://example.org", Some("/")),
            ("//example.org/x", Some("/x")),
            ("//example.org?x", Some("/?x")),
            ("http://example.com/x", None),
            ("//example.org:8080/x", None),
            ("//example.org@example.com/x", None),
            ("mailto:a@example.org", None),
            ("/with:colon", Some("/with:colon")),
        ];
        for (reference, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert("location", HeaderValue::from_str(reference).unwrap());
            let found = named_targets(&headers, "example.org", "/shop/item?id=1");
            let found: Vec<&str> = found.iter().map(|target| &**target).collect();
            assert_eq!(found, Vec::from_iter(expected), "{reference}");
        }
    }
}
