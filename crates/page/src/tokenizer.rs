//! Cuts HTML into tags as a browser does, one piece of the stream at a time.
//!
//! This is the tokenizer of the HTML standard (WHATWG HTML, section 13.2.5) without all that leads
//! to no tag: text, comments and declarations are passed over, and of a tag only the attributes
//! that can name an object are kept. So it needs no memory but for one tag, however long the page
//! is and however it is broken, and it never looks at a byte twice.
//!
//! ```text
//!          ┌──────────────── > ──────────────────┐
//!          ▼                                     │
//!  text ─ < ─▶ tag name ─▶ attribute name ─▶ value
//!   ▲          │ <!                              │ of script, style, title ...
//!   │          ▼                                 ▼
//!   ├──── comment, declaration                raw text
//!   └──────────────── </name ────────────────────┘
//! ```
//!
//! Not here: the tree. Where its builder changes how bytes are read (SVG and MathML inside of a
//! page), [`Foreign`] follows it as far as that needs.

mod raw_text;
mod tag;
#[cfg(test)]
mod tests;

use memchr::{memchr, memchr2};

use crate::foreign::Foreign;
use crate::syntax::Markup;
use raw_text::{Heard, RawText};
pub use tag::Tag;
use tag::TagKind;

/// Who is told what is in a page.
pub trait TagSink {
    /// A start tag that is complete.
    fn tag(&mut self, tag: &Tag);
    /// A piece of what stands in a `style` element, and where in the page it begins.
    fn style(&mut self, text: &[u8], at: u64);
    /// The end of a `style` element.
    fn style_end(&mut self);
}

/// Reads a page.
#[derive(Debug)]
pub struct Tokenizer {
    markup: Markup,
    state: State,
    /// Bytes of the page that were read so far.
    at: u64,
    tag: Tag,
    raw: RawText,
    foreign: Foreign,
    text: TextUse,
}

/// What the text under way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextUse {
    Nothing,
    Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    TagOpen(TagKind),
    TagName,
    Attributes(Place),
    Value(Quote),
    Declaration,
    DeclarationDash,
    Bogus,
    Comment(CommentPart),
    /// So many bytes of `CDATA[` were seen.
    CdataOpen(usize),
    /// So many of the two brackets that may end it were seen.
    Cdata(u8),
    /// In an element whose content is no markup.
    Raw,
    /// After `<plaintext>`, which nothing ends.
    Plain,
}

/// Where in a tag, outside of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    AfterValue,
    AfterSlash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Double,
    Single,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommentPart {
    Start,
    StartDash,
    Inside,
    EndDash,
    End,
    EndBang,
}

impl Tokenizer {
    /// One that stands at the first byte of a page.
    pub fn new(markup: Markup) -> Self {
        Self {
            markup,
            state: State::Text,
            at: 0,
            tag: Tag::new(),
            raw: RawText::new(),
            foreign: Foreign::new(),
            text: TextUse::Nothing,
        }
    }

    /// Reads the next piece of the page and tells the sink what it completes.
    pub fn write(&mut self, piece: &[u8], sink: &mut impl TagSink) {
        let mut rest = piece;
        while !rest.is_empty() {
            let used = self.step(rest, sink);
            self.at += used as u64;
            rest = &rest[used..];
        }
    }

    /// Where the tag begins that is not complete yet. What is before is done with.
    pub fn open_tag(&self) -> Option<u64> {
        match self.state {
            State::TagOpen(_) | State::TagName | State::Attributes(_) | State::Value(_) => {
                Some(self.tag.at)
            }
            State::Text
            | State::Declaration
            | State::DeclarationDash
            | State::Bogus
            | State::Comment(_)
            | State::CdataOpen(_)
            | State::Cdata(_)
            | State::Raw
            | State::Plain => None,
        }
    }

    /// One step: changes the state, and says how many bytes it took. It may take none.
    fn step(&mut self, rest: &[u8], sink: &mut impl TagSink) -> usize {
        match self.state {
            State::Text => self.text(rest, sink),
            State::TagOpen(kind) => self.tag_open(rest[0], kind, sink),
            State::TagName => self.tag_name(rest[0], sink),
            State::Attributes(place) => self.attributes(rest[0], place, sink),
            State::Value(quote) => self.value(rest, quote, sink),
            State::Declaration => match rest[0] {
                b'-' => self.go(State::DeclarationDash, 1),
                b'[' if self.has_cdata() => self.go(State::CdataOpen(0), 1),
                _ => self.go(State::Bogus, 0),
            },
            State::DeclarationDash => match rest[0] {
                b'-' => self.go(State::Comment(CommentPart::Start), 1),
                _ => self.go(State::Bogus, 0),
            },
            State::Bogus => self.bogus(rest),
            State::Comment(part) => self.comment(rest, part),
            State::CdataOpen(seen) => self.cdata_open(rest[0], seen),
            State::Cdata(brackets) => self.cdata(rest, brackets, sink),
            State::Raw => self.raw(rest, sink),
            State::Plain => rest.len(),
        }
    }

    fn go(&mut self, state: State, used: usize) -> usize {
        self.state = state;
        used
    }

    fn text(&mut self, rest: &[u8], sink: &mut impl TagSink) -> usize {
        let end = memchr(b'<', rest);
        let text = &rest[..end.unwrap_or(rest.len())];
        self.tell_text(text, sink);
        if end.is_none() {
            return text.len();
        }
        self.tag.at = self.at + text.len() as u64;
        self.go(State::TagOpen(TagKind::Start), text.len() + 1)
    }

    fn tell_text(&self, text: &[u8], sink: &mut impl TagSink) {
        self.tell_text_at(text, self.at, sink);
    }

    /// `text` stands at `at`: what looked like the beginning of markup, and was none, is told late.
    fn tell_text_at(&self, text: &[u8], at: u64, sink: &mut impl TagSink) {
        if self.text == TextUse::Style && !text.is_empty() {
            sink.style(text, at);
        }
    }

    fn tag_open(&mut self, byte: u8, kind: TagKind, sink: &mut impl TagSink) -> usize {
        if byte.is_ascii_alphabetic() {
            self.tag.begin(kind);
            return self.go(State::TagName, 0);
        }
        match (kind, byte) {
            (TagKind::Start, b'!') => self.go(State::Declaration, 1),
            (TagKind::Start, b'/') => self.go(State::TagOpen(TagKind::End), 1),
            (TagKind::Start, b'?') => self.go(State::Bogus, 1),
            (TagKind::Start, _) => {
                self.tell_text_at(b"<", self.tag.at, sink);
                self.go(State::Text, 0)
            }
            (TagKind::End, b'>') => self.go(State::Text, 1),
            (TagKind::End, _) => self.go(State::Bogus, 0),
        }
    }

    fn tag_name(&mut self, byte: u8, sink: &mut impl TagSink) -> usize {
        match byte {
            b'\t' | b'\n' | b'\r' | b'\x0c' | b' ' => {
                self.go(State::Attributes(Place::BeforeName), 1)
            }
            b'/' => self.go(State::Attributes(Place::AfterSlash), 1),
            b'>' => self.emit(sink),
            byte => {
                self.tag.push_name(byte);
                1
            }
        }
    }

    fn attributes(&mut self, byte: u8, place: Place, sink: &mut impl TagSink) -> usize {
        let is_space = matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' ');
        match (place, byte) {
            (Place::Name, b'/' | b'>') => {
                self.tag.end_attribute_name();
                self.go(State::Attributes(Place::AfterName), 0)
            }
            (Place::Name, _) if is_space => {
                self.tag.end_attribute_name();
                self.go(State::Attributes(Place::AfterName), 1)
            }
            (Place::Name, b'=') => {
                self.tag.end_attribute_name();
                self.go(State::Attributes(Place::BeforeValue), 1)
            }
            (Place::Name, byte) => {
                self.tag.push_attribute_name(byte);
                1
            }
            (Place::AfterName, b'=') => self.go(State::Attributes(Place::BeforeValue), 1),
            (Place::BeforeValue, b'"') => self.begin_value(Quote::Double, 1),
            (Place::BeforeValue, b'\'') => self.begin_value(Quote::Single, 1),
            (Place::AfterValue, _) if is_space => self.go(State::Attributes(Place::BeforeName), 1),
            (Place::BeforeName | Place::AfterName | Place::BeforeValue, _) if is_space => 1,
            (Place::AfterSlash, b'>') => {
                self.tag.close_itself();
                self.emit(sink)
            }
            (_, b'>') => self.emit(sink),
            (Place::BeforeValue, _) => self.begin_value(Quote::None, 0),
            (Place::BeforeName | Place::AfterName | Place::AfterValue, b'/') => {
                self.go(State::Attributes(Place::AfterSlash), 1)
            }
            (Place::AfterSlash | Place::AfterValue, _) => {
                self.go(State::Attributes(Place::BeforeName), 0)
            }
            (Place::BeforeName | Place::AfterName, byte) => {
                // Whatever stands here begins a name, even `=`.
                self.tag.begin_attribute_name(byte);
                self.go(State::Attributes(Place::Name), 1)
            }
        }
    }

    fn begin_value(&mut self, quote: Quote, used: usize) -> usize {
        self.tag.begin_value(self.at + used as u64);
        self.go(State::Value(quote), used)
    }

    fn value(&mut self, rest: &[u8], quote: Quote, sink: &mut impl TagSink) -> usize {
        let end = match quote {
            Quote::Double => memchr(b'"', rest),
            Quote::Single => memchr(b'\'', rest),
            Quote::None => rest
                .iter()
                .position(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' ' | b'>')),
        };
        let value = &rest[..end.unwrap_or(rest.len())];
        self.tag.push_value(value);
        match (end, quote) {
            (None, _) => value.len(),
            (Some(_), Quote::Double | Quote::Single) => {
                self.go(State::Attributes(Place::AfterValue), value.len() + 1)
            }
            (Some(end), Quote::None) if rest[end] == b'>' => end + self.emit(sink),
            (Some(_), Quote::None) => {
                self.go(State::Attributes(Place::BeforeName), value.len() + 1)
            }
        }
    }

    /// Ends the tag at a `>`.
    fn emit(&mut self, sink: &mut impl TagSink) -> usize {
        let is_style = self.tag.name() == b"style";
        if self.tag.is_end() {
            if is_style {
                self.end_style(sink);
            }
            self.foreign.end(self.tag.name());
            return self.go(State::Text, 1);
        }
        self.foreign.leave_before(self.tag.name());
        let is_markup = self.markup == Markup::Xml || self.foreign.is_inside();
        let raw = RawText::of(self.tag.name()).filter(|_| !is_markup);
        let plain = !is_markup && self.tag.name() == b"plaintext";
        if is_style && (raw.is_some() || !self.tag.closes_itself()) {
            self.end_style(sink);
            self.text = TextUse::Style;
        }
        sink.tag(&self.tag);
        if !self.tag.closes_itself() {
            self.foreign.start(self.tag.name());
        }
        match raw {
            Some(raw) => {
                self.raw = raw;
                self.go(State::Raw, 1)
            }
            None if plain => self.go(State::Plain, 1),
            None => self.go(State::Text, 1),
        }
    }

    fn end_style(&mut self, sink: &mut impl TagSink) {
        if self.text == TextUse::Style {
            self.text = TextUse::Nothing;
            sink.style_end();
        }
    }

    /// Text without markup, until its own end tag.
    fn raw(&mut self, rest: &[u8], sink: &mut impl TagSink) -> usize {
        match self.raw.read(rest) {
            Heard::Text(bytes) => {
                self.tell_text(&rest[..bytes], sink);
                bytes
            }
            Heard::Markup(bytes) => {
                if bytes > 0 && rest[0] == b'<' {
                    self.tag.at = self.at;
                }
                bytes
            }
            Heard::NoMarkup => {
                self.tell_text_at(self.raw.held(), self.tag.at, sink);
                0
            }
            Heard::EndTag => {
                self.tag.begin(TagKind::End);
                for byte in self.raw.name() {
                    self.tag.push_name(*byte);
                }
                self.go(State::TagName, 0)
            }
        }
    }

    fn bogus(&mut self, rest: &[u8]) -> usize {
        match memchr(b'>', rest) {
            Some(end) => self.go(State::Text, end + 1),
            None => rest.len(),
        }
    }

    fn comment(&mut self, rest: &[u8], part: CommentPart) -> usize {
        use CommentPart::{End, EndBang, EndDash, Inside, Start, StartDash};
        let next = match (part, rest[0]) {
            (Inside, b'-') => EndDash,
            (Inside, _) => return memchr(b'-', rest).unwrap_or(rest.len()),
            (Start, b'-') => StartDash,
            (StartDash | EndDash | End, b'-') => End,
            (EndBang, b'-') => EndDash,
            (End, b'!') => EndBang,
            (Start | StartDash | End | EndBang, b'>') => return self.go(State::Text, 1),
            (Start | StartDash | EndDash | End | EndBang, _) => Inside,
        };
        self.go(State::Comment(next), 1)
    }

    /// Whether `<![CDATA[` begins text here and no comment.
    fn has_cdata(&self) -> bool {
        self.markup == Markup::Xml || self.foreign.is_inside()
    }

    fn cdata_open(&mut self, byte: u8, seen: usize) -> usize {
        const NAME: &[u8] = b"CDATA[";
        if byte != NAME[seen] {
            return self.go(State::Bogus, 0);
        }
        match NAME.len() - seen {
            1 => self.go(State::Cdata(0), 1),
            _ => self.go(State::CdataOpen(seen + 1), 1),
        }
    }

    fn cdata(&mut self, rest: &[u8], brackets: u8, sink: &mut impl TagSink) -> usize {
        match rest[0] {
            b']' if brackets == 2 => {
                self.tell_text_at(b"]", self.at - 2, sink);
                1
            }
            b']' => self.go(State::Cdata(brackets + 1), 1),
            b'>' if brackets == 2 => self.go(State::Text, 1),
            _ => {
                let held = &b"]]"[..usize::from(brackets)];
                self.tell_text_at(held, self.at - u64::from(brackets), sink);
                let end = memchr2(b']', b'>', &rest[1..]).map_or(rest.len(), |end| end + 1);
                self.tell_text(&rest[..end], sink);
                self.go(State::Cdata(0), end)
            }
        }
    }
}
