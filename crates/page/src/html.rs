//! Finds the objects of a page while it streams through.

use url::Url;

use crate::charset::Charset;
use crate::context::{Context, Sheet, characters};
use crate::found::{Collector, Found};
use crate::place::{Place, resolve};
use crate::references::{Form, is_styling, references};
use crate::syntax::Markup;
use crate::tokenizer::{Tag, TagSink, Tokenizer};

/// Finds the objects of a page.
#[derive(Debug)]
pub struct Html {
    tokenizer: Tokenizer,
    page: Page,
}

/// What is known of the page so far.
#[derive(Debug)]
struct Page {
    place: Place,
    base: Base,
    charset: Charset,
    sheet: Option<Sheet>,
    found: Collector,
}

/// What references are resolved against.
#[derive(Debug)]
pub enum Base {
    /// The page's own URL.
    Page,
    /// What the first `base` element says.
    Element(Url),
}

impl Html {
    /// For a page at this place.
    pub fn new(place: Place, charset: Charset, markup: Markup) -> Self {
        Self {
            tokenizer: Tokenizer::new(markup),
            page: Page {
                place,
                base: Base::Page,
                charset,
                sheet: None,
                found: Collector::new(),
            },
        }
    }

    /// Reads the next piece.
    pub fn write(&mut self, piece: &[u8]) {
        if !self.page.found.is_full() {
            self.tokenizer.write(piece, &mut self.page);
        }
    }

    /// The end of the page.
    pub fn finish(mut self) -> Found {
        self.page.style_end();
        self.page.found.into_found()
    }

    /// Where links of the response stand, and what takes them.
    pub fn parts(&mut self) -> (Context<'_>, &mut Collector) {
        self.page.parts().0
    }
}

impl Base {
    /// Reads a `base` element. Only the first one that has a URL counts.
    pub fn read(&mut self, tag: &Tag, place: &Place, charset: Charset) {
        if let (Self::Page, Some(href)) = (&*self, tag.value("href")) {
            let (text, encoding) = charset.decode(href);
            let url = resolve(place.page(), &characters(&text), encoding);
            let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
            *self = Self::Element(url.unwrap_or_else(|| place.page().clone()));
        }
    }

    /// The URL itself.
    pub fn url<'a>(&'a self, place: &'a Place) -> &'a Url {
        match self {
            Self::Page => place.page(),
            Self::Element(url) => url,
        }
    }
}

/// What a `meta` element says of the page's encoding.
pub fn meta_charset(tag: &Tag, charset: Charset) -> Charset {
    let value = |name| tag.value(name).unwrap_or_default();
    if tag.value("charset").is_some() {
        return charset.or(value("charset"));
    }
    if value("http-equiv").eq_ignore_ascii_case(b"content-type") {
        let said = Charset::of_content_type(&String::from_utf8_lossy(value("content")));
        return charset.or_else(said);
    }
    charset
}

impl Page {
    fn parts(&mut self) -> ((Context<'_>, &mut Collector), &mut Option<Sheet>) {
        let context = Context {
            place: &self.place,
            base: self.base.url(&self.place),
            charset: self.charset,
        };
        ((context, &mut self.found), &mut self.sheet)
    }
}

impl TagSink for Page {
    fn tag(&mut self, tag: &Tag) {
        match tag.name() {
            b"base" => self.base.read(tag, &self.place, self.charset),
            b"meta" => self.charset = meta_charset(tag, self.charset),
            b"style" => self.sheet = is_styling(tag).then(Sheet::new),
            _ => {}
        }
        let ((context, found), _) = self.parts();
        references(tag, |reference| {
            let Some(value) = tag.value(reference.attribute) else {
                return;
            };
            match reference.form {
                Form::Url => {
                    if let Some(object) = context.url(value, reference.object_use) {
                        found.add(object);
                    }
                }
                Form::Srcset => context.srcset(value, reference.object_use, found),
                Form::Style => context.style(value, found),
            }
        });
    }

    fn style(&mut self, text: &[u8], _at: u64) {
        if let ((context, found), Some(sheet)) = self.parts() {
            sheet.write(text, context, found);
        }
    }

    fn style_end(&mut self) {
        if let ((context, found), Some(sheet)) = self.parts() {
            sheet.finish(context, found);
        }
        self.sheet = None;
    }
}
