//! Elements whose content is no markup: what stands in a script or a style sheet ends only with
//! the end tag of the same name.
//!
//! Scripts have a history: inside of `<!--` another `<script>` may be opened and closed, and only
//! the end tag after that ends the element (WHATWG HTML, section 13.2.5.20 to 13.2.5.31).

use memchr::{memchr, memchr3};

use super::tag::Name;

/// The element that is open, and how far its end was seen.
#[derive(Debug)]
pub struct RawText {
    element: &'static [u8],
    part: Part,
    escape: Escape,
    /// Dashes right before, for `-->`.
    dashes: u8,
    seen: Name,
    /// What was taken for markup since `<`, as far as it fits; what may be an end tag does.
    held: [u8; HELD_BYTES_MAX],
    held_bytes: usize,
}

/// Of the longest that may be an end tag: `</noframes`.
const HELD_BYTES_MAX: usize = 10;

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// So many bytes of text.
    Text(usize),
    /// So many bytes that may be markup. They begin with `<` if a tag may begin with them.
    Markup(usize),
    /// What was taken for markup since the last `<` is text: [`RawText::held`].
    NoMarkup,
    /// The element's own end tag; what follows its name was not read.
    EndTag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Text,
    LessThan,
    /// After `<!` and so many dashes.
    CommentOpen(u8),
    /// In what may be `script` after `<`.
    StartName,
    /// In what may be the element's name after `</`.
    EndName,
}

/// Where a script stands between `<!--` and `-->`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Once,
    Twice,
}

const ELEMENTS: &[&[u8]] = &[
    b"iframe",
    b"noembed",
    b"noframes",
    b"noscript",
    b"script",
    b"style",
    b"textarea",
    b"title",
    b"xmp",
];

impl RawText {
    /// Outside of any.
    pub const fn new() -> Self {
        Self {
            element: b"",
            part: Part::Text,
            escape: Escape::None,
            dashes: 0,
            seen: Name::new(),
            held: [0; HELD_BYTES_MAX],
            held_bytes: 0,
        }
    }

    /// The content of this element, if it is no markup.
    pub fn of(name: &[u8]) -> Option<Self> {
        let element = ELEMENTS.iter().find(|element| **element == name)?;
        Some(Self {
            element,
            ..Self::new()
        })
    }

    /// The name of the element.
    pub const fn name(&self) -> &'static [u8] {
        self.element
    }

    /// What was taken for markup since the last `<`. Of a script it may be cut.
    pub fn held(&self) -> &[u8] {
        &self.held[..self.held_bytes]
    }

    /// Reads on. `rest` is not empty.
    pub fn read(&mut self, rest: &[u8]) -> Heard {
        let heard = self.step(rest);
        if let Heard::Markup(bytes) = heard {
            self.hold(&rest[..bytes]);
        }
        heard
    }

    fn hold(&mut self, markup: &[u8]) {
        if markup.starts_with(b"<") {
            self.held_bytes = 0;
        }
        let room = &mut self.held[self.held_bytes..];
        let bytes = markup.len().min(room.len());
        room[..bytes].copy_from_slice(&markup[..bytes]);
        self.held_bytes += bytes;
    }

    fn step(&mut self, rest: &[u8]) -> Heard {
        match self.part {
            Part::Text => self.text(rest),
            Part::LessThan => self.less_than(rest[0]),
            Part::CommentOpen(dashes) => self.comment_open(rest[0], dashes),
            Part::StartName => self.start_name(rest[0]),
            Part::EndName => self.end_name(rest[0]),
        }
    }

    fn text(&mut self, rest: &[u8]) -> Heard {
        match rest[0] {
            b'<' => {
                self.dashes = 0;
                self.go(Part::LessThan, 1)
            }
            b'-' if self.escape != Escape::None => {
                self.dashes = self.dashes.saturating_add(1).min(2);
                Heard::Text(1)
            }
            b'>' if self.dashes == 2 => {
                (self.escape, self.dashes) = (Escape::None, 0);
                Heard::Text(1)
            }
            _ => {
                self.dashes = 0;
                let next = match self.escape {
                    Escape::None => memchr(b'<', &rest[1..]),
                    Escape::Once | Escape::Twice => memchr3(b'<', b'-', b'>', &rest[1..]),
                };
                Heard::Text(next.map_or(rest.len(), |next| next + 1))
            }
        }
    }

    fn go(&mut self, part: Part, used: usize) -> Heard {
        self.part = part;
        Heard::Markup(used)
    }

    fn no_markup(&mut self) -> Heard {
        self.part = Part::Text;
        Heard::NoMarkup
    }

    fn less_than(&mut self, byte: u8) -> Heard {
        let is_script = self.element == b"script";
        self.seen.clear();
        match (byte, self.escape) {
            (b'/', _) => self.go(Part::EndName, 1),
            (b'!', Escape::None) if is_script => self.go(Part::CommentOpen(0), 1),
            (b'a'..=b'z' | b'A'..=b'Z', Escape::Once) => self.go(Part::StartName, 0),
            (_, Escape::None | Escape::Once | Escape::Twice) => self.no_markup(),
        }
    }

    fn comment_open(&mut self, byte: u8, dashes: u8) -> Heard {
        match (byte, dashes) {
            (b'-', 0) => self.go(Part::CommentOpen(1), 1),
            (b'-', _) => {
                (self.escape, self.dashes) = (Escape::Once, 2);
                self.go(Part::Text, 1)
            }
            (_, _) => self.no_markup(),
        }
    }

    fn start_name(&mut self, byte: u8) -> Heard {
        if byte.is_ascii_alphabetic() {
            self.seen.push(byte);
            return Heard::Markup(1);
        }
        if ends_name(byte) && self.seen.bytes() == b"script" {
            self.escape = Escape::Twice;
            return self.go(Part::Text, 1);
        }
        self.no_markup()
    }

    fn end_name(&mut self, byte: u8) -> Heard {
        if byte.is_ascii_alphabetic() {
            self.seen.push(byte);
            return match self.element.starts_with(self.seen.bytes()) {
                true => Heard::Markup(1),
                false => self.no_markup(),
            };
        }
        if !ends_name(byte) || self.seen.bytes() != self.element {
            return self.no_markup();
        }
        if self.escape == Escape::Twice {
            self.escape = Escape::Once;
            return self.go(Part::Text, 1);
        }
        self.part = Part::Text;
        Heard::EndTag
    }
}

const fn ends_name(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' ' | b'/' | b'>')
}
