//! Whether a request is for a page, and which page.
//!
//! A browser that opens one page asks for a hundred other things at once, each of them once: they
//! must not look like a hundred pages. It says what they are for (Sec-Fetch-Dest, by HTTPS); where
//! nothing is said, the end of the path tells.

/// What pages are made of, by the end of the path.
const PARTS: &[&str] = &[
    "apng",
    "avif",
    "avi",
    "bmp",
    "css",
    "eot",
    "flac",
    "gif",
    "ico",
    "jpeg",
    "jpg",
    "js",
    "jxl",
    "m3u8",
    "m4a",
    "m4s",
    "m4v",
    "map",
    "mjs",
    "mov",
    "mp3",
    "mp4",
    "mpd",
    "mvt",
    "oga",
    "ogg",
    "ogv",
    "opus",
    "otf",
    "pbf",
    "png",
    "svg",
    "svgz",
    "ts",
    "ttf",
    "vtt",
    "wasm",
    "wav",
    "webm",
    "webmanifest",
    "webp",
    "woff",
    "woff2",
];

/// Parameters that say where a visitor came from, and that are another one for each.
const ORIGINS: &[&str] = &[
    "igsh", "igshid", "mc_cid", "mc_eid", "srsltid", "_ga", "_gl",
];

/// Whether `path` is that of a page. `destination` is what Sec-Fetch-Dest says.
pub(crate) fn is_page(path: &str, destination: Option<&[u8]>) -> bool {
    if let Some(destination) = destination {
        return matches!(destination, b"document" | b"iframe" | b"frame");
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let Some((_, ending)) = last.rsplit_once('.') else {
        return true;
    };
    !PARTS.iter().any(|part| part.eq_ignore_ascii_case(ending))
}

/// The parameters of `target`, path and query, that belong to the page.
pub(crate) fn page_query(target: &str) -> impl Iterator<Item = &str> {
    let query = target.split_once('?').map(|(_, query)| query);
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    parameters.filter(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        !(name.starts_with("utm_") || name.ends_with("clid") || ORIGINS.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pages_are_made_of_is_no_page() {
        for page in [
            "/",
            "/article",
            "/a.html",
            "/feed.xml",
            "/v1.2/about",
            "/x.",
            "/a.b.php",
        ] {
            assert!(is_page(page, None), "{page}");
        }
        for part in ["/a.css", "/i/photo.JPG", "/x/y.woff2", "/t/1/2/3.pbf"] {
            assert!(!is_page(part, None), "{part}");
        }
        assert!(!is_page("/api/items/7", Some(b"empty")));
        assert!(!is_page("/photo?id=7", Some(b"image")));
        assert!(is_page("/file.png", Some(b"document")));
    }

    #[test]
    fn where_a_visitor_came_from_does_not_make_another_page() {
        let query = |target| page_query(target).collect::<Vec<_>>();
        assert_eq!(
            query("/index.php?title=A&action=history"),
            ["title=A", "action=history"]
        );
        assert_eq!(query("/a?fbclid=IwAR0x&p=2&utm_source=news"), ["p=2"]);
        assert_eq!(query("/a"), Vec::<&str>::new());
    }
}
