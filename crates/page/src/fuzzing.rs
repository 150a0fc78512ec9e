//! What fuzzing holds against the readers of pages: properties that every input must have.
//!
//! The targets in `fuzz/` call these functions with what libFuzzer makes up, and a test calls them
//! with everything that is kept in `fuzz/corpus` and `fuzz/crashes`. The first byte of an input
//! says into which pieces the rest is cut.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use url::Url;

use crate::{Extent, Finder, Found, Hyperlinks, OBJECTS_MAX, Place, Rewriter, URL_BYTES_MAX};

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 2] = [("page", page), ("sheet", sheet)];

const PAGE: &str = "https://www.example.org/news/today.html";
const OTHERS: [&str; 3] = [
    "http://www.example.org",
    "https://a.example",
    "http://a.example:81",
];

/// A page: see [`check_objects`]. With links made relative, bytes are left out and none is changed,
/// a second time changes nothing, and a browser finds the same objects as before, also those of
/// another server.
pub fn page(data: &[u8]) {
    let Some((piece, body, found)) = check_objects("text/html", data) else {
        return;
    };
    let whole = rewrite(body, body.len().max(1));
    assert_eq!(whole, rewrite(body, piece));
    assert!(is_left_of(&whole, body));
    assert_eq!(whole, rewrite(&whole, piece));
    assert_eq!(find("text/html", &whole, piece), found);
}

/// A style sheet: see [`check_objects`].
pub fn sheet(data: &[u8]) {
    check_objects("text/css", data);
}

/// The same objects are found in whatever pieces the bytes come, each is written as a browser
/// writes it, and no more are kept than the bounds say.
fn check_objects<'a>(content_type: &str, data: &'a [u8]) -> Option<(usize, &'a [u8], Found)> {
    let (&piece, body) = data.split_first()?;
    let piece = usize::from(piece).max(1);
    let found = find(content_type, body, body.len().max(1));
    assert_eq!(found, find(content_type, body, piece));
    check_found(&found);
    Some((piece, body, found))
}

fn find(content_type: &str, body: &[u8], piece: usize) -> Found {
    let place = Place::new(PAGE, &OTHERS).expect("these are web addresses");
    let mut finder = Finder::new(content_type, place).expect("this names objects");
    body.chunks(piece).for_each(|piece| finder.write(piece));
    finder.finish()
}

fn rewrite(body: &[u8], piece: usize) -> Vec<u8> {
    let place = Place::new(PAGE, &OTHERS[..1]).expect("these are web addresses");
    let rewriter = Rewriter::new("text/html", place, Hyperlinks::Relative);
    let mut rewriter = rewriter.expect("this is a page");
    let mut out = Vec::new();
    for piece in body.chunks(piece) {
        rewriter.write(piece, &mut out);
    }
    rewriter.finish(&mut out);
    out
}

fn check_found(found: &Found) {
    assert!(found.objects.len() <= OBJECTS_MAX);
    assert!(found.extent == Extent::Whole || found.objects.len() == OBJECTS_MAX);
    for (index, object) in found.objects.iter().enumerate() {
        assert!(["www.example.org", "a.example", "a.example:81"].contains(&&*object.authority));
        assert!(object.target.starts_with('/') && object.target.len() <= URL_BYTES_MAX);
        assert!(
            object
                .target
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'#')
        );
        let url = format!("http://{}{}", object.authority, object.target);
        assert_eq!(Url::parse(&url).map(String::from).as_ref(), Ok(&url));
        let same = |other: &crate::Object| {
            (&other.authority, &other.target) == (&object.authority, &object.target)
        };
        assert!(!found.objects[..index].iter().any(same));
    }
}

/// Whether the first is the second without some of its bytes.
fn is_left_of(some: &[u8], all: &[u8]) -> bool {
    let mut rest = all.iter();
    some.iter().all(|byte| rest.any(|other| other == byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What pages are made of, and where they break.
    const PARTS: &[&str] = &[
        "<",
        ">",
        "/",
        "=",
        "'",
        "\"",
        " ",
        "\n",
        "&",
        "#",
        "-",
        "--",
        "!",
        "<!--",
        "-->",
        "a",
        "é",
        "<img ",
        "src=",
        "srcset=",
        "href=",
        "style=",
        "<link rel=stylesheet ",
        "<a ",
        "<base ",
        "<style>",
        "</style>",
        "<script>",
        "</script>",
        "<svg>",
        "</svg>",
        "<title>",
        "</title>",
        "<![CDATA[",
        "]]>",
        "https://www.example.org",
        "//www.example.org",
        "http:",
        "//a.example/",
        "/x.png",
        "\\",
        "url(",
        ")",
        "@import ",
        "image-set(",
        ";",
        "{",
        "}",
        ",",
        "1x",
        "%2f",
        "..",
        "&amp;",
        "&#47;",
        "\\2f ",
        "\t",
        "@font-face{",
        "/*",
        "*/",
        "?q",
        "/>",
        "@",
        ":443",
        ":",
    ];

    fn made_up() -> impl Strategy<Value = Vec<u8>> {
        let parts = prop::collection::vec(prop::sample::select(PARTS), 0..40);
        (any::<u8>(), parts).prop_map(|(piece, parts)| {
            let mut data = vec![piece];
            data.extend(parts.concat().into_bytes());
            data
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn pages_and_sheets_of_anything_have_the_properties(data in made_up()) {
            page(&data);
            sheet(&data);
        }
    }

    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        kept::try_all(&TARGETS);
    }
}
