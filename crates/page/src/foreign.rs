//! Where SVG or MathML stands inside of a page: there `style` and `title` are markup like all
//! else, and `<![CDATA[` begins text.
//!
//! Followed as far as reading the bytes needs it (WHATWG HTML, section 13.2.6.5): which of the
//! elements that open or close such a part are open. Not here: elements that the tree builder moves
//! or closes by itself.

/// The parts that are open, the innermost last.
#[derive(Debug, Default)]
pub struct Foreign {
    open: Vec<&'static [u8]>,
}

/// Elements that begin a foreign part.
const ROOTS: &[&[u8]] = &[b"math", b"svg"];

/// Elements of SVG and MathML whose content is HTML again.
const HTML_AGAIN: &[&[u8]] = &[
    b"annotation-xml",
    b"desc",
    b"foreignobject",
    b"mi",
    b"mn",
    b"mo",
    b"ms",
    b"mtext",
    b"title",
];

/// Elements of HTML that end a foreign part when they begin inside of one.
const BREAK_OUT: &[&[u8]] = &[
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"dd",
    b"div",
    b"dl",
    b"dt",
    b"em",
    b"embed",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"i",
    b"img",
    b"li",
    b"listing",
    b"menu",
    b"meta",
    b"nobr",
    b"ol",
    b"p",
    b"pre",
    b"ruby",
    b"s",
    b"small",
    b"span",
    b"strike",
    b"strong",
    b"sub",
    b"sup",
    b"table",
    b"tt",
    b"u",
    b"ul",
    b"var",
];

/// Deepest nesting that is followed. Pages have two or three.
const OPEN_MAX: usize = 32;

impl Foreign {
    /// None open.
    pub const fn new() -> Self {
        Self { open: Vec::new() }
    }

    /// Whether an element that stands here belongs to SVG or MathML.
    pub fn is_inside(&self) -> bool {
        self.open.last().is_some_and(|last| ROOTS.contains(last))
    }

    /// Ends what a start tag of this name ends.
    pub fn leave_before(&mut self, name: &[u8]) {
        if self.is_inside() && BREAK_OUT.contains(&name) {
            while self.is_inside() {
                self.open.pop();
            }
        }
    }

    /// Notes a start tag that does not close itself.
    pub fn start(&mut self, name: &[u8]) {
        let opens: &[&[u8]] = match self.is_inside() {
            true => HTML_AGAIN,
            false => &[],
        };
        let known = ROOTS.iter().chain(opens).find(|known| **known == name);
        if let Some(known) = known
            && self.open.len() < OPEN_MAX
        {
            self.open.push(known);
        }
    }

    /// Notes an end tag.
    pub fn end(&mut self, name: &[u8]) {
        if let Some(place) = self.open.iter().rposition(|open| *open == name) {
            self.open.truncate(place);
        }
    }
}
