//! The tokenizer against another one that follows the same standard.
//!
//! html5gum keeps all text and needs the whole page, so it cannot do the work; but it finds the
//! same tags. It knows nothing of SVG and MathML inside of a page, so there are none here.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer as Html5gum};
use proptest::prelude::*;

use super::*;

const PARTS: &[&str] = &[
    "<",
    "</",
    ">",
    "/>",
    "/",
    "=",
    "'",
    "\"",
    " ",
    "\n",
    "\r\n",
    "\t",
    "-",
    "--",
    "!",
    "?",
    "<!",
    "<!-",
    "<!--",
    "-->",
    "--!>",
    "a",
    "Z",
    "0",
    "[",
    "]",
    "<img ",
    "<IMG/",
    "src",
    "src=",
    "SRC = '",
    "href=\"",
    "<a href=x",
    "<p title='",
    "<script",
    "<script>",
    "</script",
    "</script>",
    "<SCRIPT ",
    "<style>",
    "</style>",
    "<title>",
    "</title ",
    "<textarea>",
    "</textarea>",
    "<xmp>",
    "</xmp/",
    "<noscript>",
    "</noscript>",
    "<iframe>",
    "</iframe>",
    "<plaintext>",
    "<!doctype html>",
    "<![CDATA[",
    "]]>",
    "é",
    "&#60;",
    "<img src=b>",
    "data",
];

/// Start tags with the values of `src` and `href` in them.
type Tags = Vec<(String, Vec<(String, String)>)>;

#[derive(Default)]
struct Seen(Tags);

impl TagSink for Seen {
    fn tag(&mut self, tag: &Tag) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let values = ["href", "src"].into_iter().filter_map(|name| {
            let value = htmlize::unescape_attribute(text(tag.value(name)?)).into_owned();
            Some((name.to_owned(), value))
        });
        self.0.push((text(tag.name()), values.collect()));
    }

    fn style(&mut self, _text: &[u8], _at: u64) {}

    fn style_end(&mut self) {}
}

fn ours(html: &str, piece: usize) -> Tags {
    let mut seen = Seen::default();
    let mut tokenizer = Tokenizer::new(Markup::Html);
    for piece in html.as_bytes().chunks(piece) {
        tokenizer.write(piece, &mut seen);
    }
    seen.0
}

fn theirs(html: &str) -> Tags {
    let mut emitter: DefaultEmitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let tokens = Html5gum::new_with_emitter(html, emitter);
    let tags = tokens.filter_map(|token| match token.ok()? {
        Token::StartTag(tag) => {
            let values = tag
                .attributes
                .iter()
                .map(|(name, value)| (text(name), text(value)));
            let kept = values.filter(|(name, _)| name == "href" || name == "src");
            Some((text(&tag.name), kept.collect()))
        }
        Token::EndTag(_)
        | Token::String(_)
        | Token::Comment(_)
        | Token::Doctype(_)
        | Token::Error(_) => None,
    });
    // Names that are longer than any that has a meaning are not kept here.
    let known = tags.map(|(name, values): (String, _)| {
        let name = if name.len() > 24 { String::new() } else { name };
        (name, values)
    });
    known.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_same_tags_are_found_as_by_another_reader_of_the_standard(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..30),
        piece in 1_usize..40,
    ) {
        let html = parts.concat();
        let expected = theirs(&html.replace("\r\n", "\n"));
        let found = ours(&html, piece).into_iter().map(|(name, values)| {
            let lines = |(name, value): (String, String)| (name, value.replace("\r\n", "\n"));
            (name, values.into_iter().map(lines).collect())
        });
        prop_assert_eq!(found.collect::<Tags>(), expected, "{:?}", html);
    }
}
