//! The way in: what a response with this content type can name, and what it does.

use crate::charset::Charset;
use crate::context::{Context, Sheet};
use crate::found::{Collector, Found};
use crate::html::Html;
use crate::links;
use crate::place::Place;
use crate::syntax::Syntax;

/// Finds the objects that a response names, while its body streams through.
///
/// The same bytes give the same objects, however they are cut. Nothing fails: what cannot be read
/// names nothing.
#[derive(Debug)]
pub struct Finder(Kind);

#[derive(Debug)]
enum Kind {
    Page(Box<Html>),
    Sheet(Box<SheetFile>),
}

/// A style sheet that is an object itself.
#[derive(Debug)]
struct SheetFile {
    place: Place,
    charset: Charset,
    sheet: Sheet,
    found: Collector,
}

impl Finder {
    /// For a response at this place, if its content type is one that names objects: a page or a
    /// style sheet. The body must come without a content coding.
    pub fn new(content_type: &str, place: Place) -> Option<Self> {
        let charset = Charset::of_content_type(content_type);
        let kind = match Syntax::of_content_type(content_type)? {
            Syntax::Page(markup) => Kind::Page(Box::new(Html::new(place, charset, markup))),
            Syntax::Css => Kind::Sheet(Box::new(SheetFile {
                place,
                charset,
                sheet: Sheet::new(),
                found: Collector::new(),
            })),
        };
        Some(Self(kind))
    }

    /// Takes a `Link` field of the response.
    pub fn link(&mut self, value: &str) {
        let (context, found) = match &mut self.0 {
            Kind::Page(page) => page.parts(),
            Kind::Sheet(file) => (Context::of(&file.place, file.charset), &mut file.found),
        };
        links::read(value, context, found);
    }

    /// Reads the next piece of the body.
    pub fn write(&mut self, piece: &[u8]) {
        match &mut self.0 {
            Kind::Page(page) => page.write(piece),
            Kind::Sheet(file) => {
                let context = Context::of(&file.place, file.charset);
                file.sheet.write(piece, context, &mut file.found);
            }
        }
    }

    /// The end of the body: what was found.
    pub fn finish(self) -> Found {
        match self.0 {
            Kind::Page(page) => page.finish(),
            Kind::Sheet(mut file) => {
                let context = Context::of(&file.place, file.charset);
                file.sheet.finish(context, &mut file.found);
                file.found.into_found()
            }
        }
    }
}
