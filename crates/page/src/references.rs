//! Which attributes of which elements name an object that is loaded with the page.
//!
//! The rules are those of browsers that run scripts. What is lazy is loaded when somebody scrolls,
//! so it is an object; what is in a `template` is usually put into the page by a script, so it is
//! one too. Of a `srcset` all candidates are objects, since each screen wants another.

use crate::found::Use;
use crate::tokenizer::Tag;

/// An attribute that names objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name.
    pub attribute: &'static str,
    /// How its value is read.
    pub form: Form,
    /// What the objects are for.
    pub object_use: Use,
}

/// How the value of an attribute names objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It is a URL.
    Url,
    /// It is a list of candidates.
    Srcset,
    /// It is a piece of a style sheet.
    Style,
}

/// Attributes of any element that hold style.
const STYLED: &[&str] = &["style", "filter", "mask", "clip-path"];

/// Elements that may have an image behind them, in old pages.
const WITH_BACKGROUND: &[&[u8]] = &[
    b"body", b"table", b"tbody", b"td", b"tfoot", b"th", b"thead", b"tr",
];

/// Tells each attribute of this tag that names objects.
pub fn references(tag: &Tag, mut tell: impl FnMut(Reference)) {
    let mut of = |form, object_use, attributes: &[&'static str]| {
        for attribute in attributes {
            tell(Reference {
                attribute,
                form,
                object_use,
            });
        }
    };
    of(Form::Style, Use::Image, STYLED);
    match tag.name() {
        b"img" | b"image" => {
            of(Form::Url, Use::Image, &["src", "href", "xlink:href"]);
            of(Form::Srcset, Use::Image, &["srcset"]);
        }
        b"source" => {
            of(Form::Srcset, Use::Image, &["srcset"]);
            of(Form::Url, Use::Media, &["src"]);
        }
        b"use" | b"feimage" => of(Form::Url, Use::Image, &["href", "xlink:href"]),
        b"input" if is(tag, "type", "image") => of(Form::Url, Use::Image, &["src"]),
        b"video" => {
            of(Form::Url, Use::Image, &["poster"]);
            of(Form::Url, Use::Media, &["src"]);
        }
        b"audio" => of(Form::Url, Use::Media, &["src"]),
        b"track" | b"embed" => of(Form::Url, Use::Other, &["src"]),
        b"object" => of(Form::Url, Use::Other, &["data"]),
        b"iframe" | b"frame" => of(Form::Url, Use::Frame, &["src"]),
        b"script" if is_run(tag) => of(Form::Url, Use::Script, &["src", "href", "xlink:href"]),
        b"link" => {
            let text = |name| String::from_utf8_lossy(tag.value(name).unwrap_or_default());
            let link = LinkWords {
                relation: &text("rel"),
                destination: &text("as"),
                content_type: &text("type"),
            };
            if let Some(object_use) = link.object_use() {
                of(Form::Url, object_use, &["href"]);
                of(Form::Srcset, Use::Image, &["imagesrcset"]);
            }
        }
        name if WITH_BACKGROUND.contains(&name) => of(Form::Url, Use::Image, &["background"]),
        _ => {}
    }
}

fn is(tag: &Tag, attribute: &str, value: &str) -> bool {
    let found = tag.value(attribute);
    found.is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(value.as_bytes()))
}

/// Whether a style element has a style sheet in it.
pub fn is_styling(tag: &Tag) -> bool {
    tag.value("type").unwrap_or_default().is_empty() || is(tag, "type", "text/css")
}

/// Whether a browser runs this script: data and templates stand in such elements too.
fn is_run(tag: &Tag) -> bool {
    const TYPES: &[&str] = &[
        "",
        "application/ecmascript",
        "application/javascript",
        "application/x-javascript",
        "module",
        "text/ecmascript",
        "text/javascript",
        "text/jscript",
        "text/x-javascript",
    ];
    let written = tag.value("type").unwrap_or_default();
    let known = TYPES
        .iter()
        .any(|one| written.trim_ascii().eq_ignore_ascii_case(one.as_bytes()));
    known && tag.value("nomodule").is_none()
}

/// The words that say what a link is for, in an element or in a field of the response.
#[derive(Clone, Copy, Debug)]
pub struct LinkWords<'a> {
    /// `rel`.
    pub relation: &'a str,
    /// `as`.
    pub destination: &'a str,
    /// `type`.
    pub content_type: &'a str,
}

impl LinkWords<'_> {
    /// What the linked object is for, if it is loaded with the page.
    pub fn object_use(&self) -> Option<Use> {
        let has = |word: &str| {
            let mut words = self.relation.split_ascii_whitespace();
            words.any(|one| one.eq_ignore_ascii_case(word))
        };
        let content_type = self.content_type.trim();
        if has("stylesheet") {
            let is_css = content_type.is_empty() || content_type.eq_ignore_ascii_case("text/css");
            return is_css.then_some(Use::Style);
        }
        if has("icon") {
            return Some(Use::Image);
        }
        if has("modulepreload") {
            return Some(Use::Script);
        }
        if has("preload") {
            return self.destined();
        }
        (has("manifest") || has("prefetch")).then_some(Use::Other)
    }

    fn destined(&self) -> Option<Use> {
        let known = [
            ("audio", Use::Media),
            ("fetch", Use::Other),
            ("font", Use::Font),
            ("image", Use::Image),
            ("script", Use::Script),
            ("style", Use::Style),
            ("track", Use::Other),
            ("video", Use::Media),
        ];
        let wanted = self.destination.trim();
        let found = known
            .iter()
            .find(|(name, _)| wanted.eq_ignore_ascii_case(name));
        found.map(|(_, object_use)| *object_use)
    }
}
