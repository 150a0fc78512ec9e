//! Whether a request is for a page, and which page.
//!
//! A browser that opens one page asks for a hundred other things at once, each of them once: they
//! must not look like a hundred pages. It says what they are for (Sec-Fetch-Dest, by HTTPS); where
//! nothing is said, the end of the path tells.

/// What pages are made of, by the end of the path.
const PARTS: [&str; 43] = [
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

/// No such end is longer.
const PART_BYTES_MAX: usize = 11;

/// The same as numbers, in order: every request is looked up in them.
const KEYS: [u128; PARTS.len()] = {
    let mut keys = [0; PARTS.len()];
    let mut next = 0;
    while next < PARTS.len() {
        let key = key(PARTS[next].as_bytes());
        let mut place = next;
        while place > 0 && keys[place - 1] > key {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
        next += 1;
    }
    keys
};

/// The letters of `ending`, large ones as small ones, in one number.
const fn key(ending: &[u8]) -> u128 {
    assert!(ending.len() <= PART_BYTES_MAX);
    let (mut key, mut next) = (0, 0);
    while next < ending.len() {
        key = key << 8 | ending[next].to_ascii_lowercase() as u128;
        next += 1;
    }
    key
}

/// Parameters that say where a visitor came from, and that are another one for each.
const ORIGINS: &[&str] = &[
    "igsh", "igshid", "mc_cid", "mc_eid", "srsltid", "_ga", "_gl",
];

/// Whether `path` is that of a page. `destination` is what Sec-Fetch-Dest says.
pub(crate) fn is_page(path: &str, destination: Option<&[u8]>) -> bool {
    if let Some(destination) = destination {
        return matches!(destination, b"document" | b"iframe" | b"frame");
    }
    let path = path.as_bytes();
    let looked_at = path.iter().rev().take(PART_BYTES_MAX + 1);
    let length = looked_at.take_while(|&&byte| byte != b'.' && byte != b'/');
    let (rest, ending) = path.split_at(path.len() - length.count());
    let is_part = rest.last() == Some(&b'.')
        && ending.len() <= PART_BYTES_MAX
        && KEYS.binary_search(&key(ending)).is_ok();
    !is_part
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
    fn each_part_is_known_by_its_end_alone() {
        for part in PARTS {
            assert!(!is_page(&format!("/a/{part}.{part}"), None), "{part}");
            assert!(is_page(&format!("/a.b/{part}"), None), "{part}");
            assert!(is_page(&format!("/a.{part}x"), None) || PARTS.contains(&&*format!("{part}x")));
        }
        assert!(is_page("/a.a-long-ending-of-a-name", None));
        assert!(is_page("", None));
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
