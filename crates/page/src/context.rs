//! What turns the text of a reference into an object: the place, the base, the encoding.

use std::borrow::Cow;

use url::Url;

use crate::charset::Charset;
use crate::css::{Css, CssSink, CssUrl, Purpose};
use crate::fonts::Fonts;
use crate::found::{Collector, Object, Use};
use crate::place::{Place, resolve};
use crate::srcset;

/// Where references stand that are looked at together.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Where the page stands.
    pub place: &'a Place,
    /// What references are resolved against.
    pub base: &'a Url,
    /// In what they are encoded.
    pub charset: Charset,
}

/// A style sheet that is being read.
#[derive(Debug)]
pub struct Sheet {
    css: Css,
    fonts: Fonts,
}

struct SheetSink<'a, 'b> {
    context: Context<'a>,
    fonts: &'b mut Fonts,
    found: &'b mut Collector,
}

impl<'a> Context<'a> {
    /// That of a response which has no base but its own URL.
    pub const fn of(place: &'a Place, charset: Charset) -> Self {
        Self {
            place,
            base: place.page(),
            charset,
        }
    }

    /// The object of a reference that stands there without character references.
    pub fn plain(&self, reference: &[u8], object_use: Use) -> Option<Object> {
        let (text, encoding) = self.charset.decode(reference);
        let url = resolve(self.base, &text, encoding)?;
        self.place.object(&url, object_use)
    }

    /// The object that an attribute names.
    pub fn url(&self, value: &[u8], object_use: Use) -> Option<Object> {
        let (text, encoding) = self.charset.decode(value);
        let url = resolve(self.base, &characters(&text), encoding)?;
        self.place.object(&url, object_use)
    }

    /// The objects that a list of candidates names.
    pub fn srcset(&self, value: &[u8], object_use: Use, found: &mut Collector) {
        let (text, encoding) = self.charset.decode(value);
        let text = characters(&text);
        for candidate in srcset::candidates(&text) {
            let url = resolve(self.base, &text[candidate], encoding);
            let object = url.and_then(|url| self.place.object(&url, object_use));
            object.into_iter().for_each(|object| found.add(object));
        }
    }

    /// The objects that a style attribute names.
    pub fn style(&self, value: &[u8], found: &mut Collector) {
        // Most have no URL in them.
        if memchr::memchr(b'(', value).is_none() {
            return;
        }
        let (text, _) = self.charset.decode(value);
        let mut sheet = Sheet::new();
        // What was decoded is UTF-8 from here on.
        let context = Self {
            charset: Charset::Unknown,
            ..*self
        };
        sheet.write(characters(&text).as_bytes(), context, found);
        sheet.finish(context, found);
    }
}

/// The characters that the value of an attribute stands for.
pub fn characters(value: &str) -> Cow<'_, str> {
    let text = htmlize::unescape_attribute(value);
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => text,
    }
}

impl Sheet {
    /// One at its beginning.
    pub fn new() -> Self {
        Self {
            css: Css::new(),
            fonts: Fonts::default(),
        }
    }

    /// Reads the next piece.
    pub fn write(&mut self, piece: &[u8], context: Context<'_>, found: &mut Collector) {
        let mut sink = SheetSink {
            context,
            fonts: &mut self.fonts,
            found,
        };
        self.css.write(piece, &mut sink);
    }

    /// Its end.
    pub fn finish(&mut self, context: Context<'_>, found: &mut Collector) {
        let mut sink = SheetSink {
            context,
            fonts: &mut self.fonts,
            found,
        };
        self.css.finish(&mut sink);
    }
}

impl CssSink for SheetSink<'_, '_> {
    fn url(&mut self, url: &CssUrl<'_>) {
        let object_use = match url.purpose {
            Purpose::Import => Use::Style,
            Purpose::Font => Use::Font,
            Purpose::Image => Use::Image,
        };
        match (self.context.plain(url.text, object_use), url.purpose) {
            (Some(object), Purpose::Font) => self.fonts.add(object),
            (Some(object), Purpose::Import | Purpose::Image) => self.found.add(object),
            (None, _) => {}
        }
    }

    fn block_end(&mut self) {
        self.fonts.end().for_each(|font| self.found.add(font));
    }
}
