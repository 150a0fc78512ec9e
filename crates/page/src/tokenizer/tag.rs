//! A tag: its name, and those of its attributes that can have to do with an object.
//!
//! One is used for all tags of a page, so that its buffer is too. What is longer than any name or
//! value that means something is not kept: a picture of a megabyte that stands in an attribute
//! (`data:`) costs nothing here.

use std::ops::Range;

/// Attributes that are kept, in alphabetical order. All others are passed over.
const KEPT: &[&str] = &[
    "as",
    "background",
    "charset",
    "clip-path",
    "content",
    "data",
    "filter",
    "href",
    "http-equiv",
    "imagesrcset",
    "mask",
    "nomodule",
    "poster",
    "rel",
    "src",
    "srcdoc",
    "srcset",
    "style",
    "type",
    "xlink:href",
];

/// Longest name of an element or attribute that means something here, and some.
const NAME_BYTES_MAX: usize = 24;

/// Longest values of one tag, all together. A `srcset` of twenty candidates has some 2 kB, and a
/// value beyond the bound is not kept at all, since half of one names another object.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A start tag or an end tag.
#[derive(Debug)]
pub struct Tag {
    /// Where its `<` stands in the page.
    pub at: u64,
    kind: TagKind,
    closing: Closing,
    name: Name,
    attribute: Name,
    attributes: Vec<Attribute>,
    values: Vec<u8>,
    current: Current,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    Start,
    End,
}

/// Whether a tag ends with `/>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    Itself,
}

/// What is done with the value under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    Kept,
    PassedOver,
}

#[derive(Debug)]
struct Attribute {
    name: &'static str,
    /// Where its value begins in the page.
    at: u64,
    value: Range<usize>,
}

impl Tag {
    pub fn new() -> Self {
        Self {
            at: 0,
            kind: TagKind::Start,
            closing: Closing::Open,
            name: Name::new(),
            attribute: Name::new(),
            attributes: Vec::new(),
            values: Vec::new(),
            current: Current::PassedOver,
        }
    }

    /// The element's name, lower case; empty where it is longer than any that has a meaning.
    pub fn name(&self) -> &[u8] {
        self.name.bytes()
    }

    /// The first attribute of that name: its value as it stands in the page, and where that
    /// begins. Only attributes that can have to do with an object are known.
    pub fn attribute(&self, name: &str) -> Option<(&[u8], u64)> {
        let found = self.attributes.iter().find(|one| one.name == name)?;
        Some((&self.values[found.value.clone()], found.at))
    }

    /// The value of the first attribute of that name.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.attribute(name).map(|(value, _)| value)
    }

    pub fn is_end(&self) -> bool {
        self.kind == TagKind::End
    }

    pub fn closes_itself(&self) -> bool {
        self.closing == Closing::Itself
    }

    pub fn begin(&mut self, kind: TagKind) {
        self.kind = kind;
        self.closing = Closing::Open;
        self.name.clear();
        self.attributes.clear();
        self.values.clear();
        self.current = Current::PassedOver;
    }

    pub fn push_name(&mut self, byte: u8) {
        self.name.push(byte);
    }

    pub fn close_itself(&mut self) {
        self.closing = Closing::Itself;
    }

    pub fn begin_attribute_name(&mut self, byte: u8) {
        self.attribute.clear();
        self.attribute.push(byte);
    }

    pub fn push_attribute_name(&mut self, byte: u8) {
        self.attribute.push(byte);
    }

    pub fn end_attribute_name(&mut self) {
        let name = self.attribute.bytes();
        let kept = KEPT.iter().find(|kept| kept.as_bytes() == name);
        // Of two attributes with one name the first counts.
        let name = kept.filter(|name| !self.attributes.iter().any(|one| one.name == **name));
        self.current = Current::PassedOver;
        if let Some(name) = name {
            self.current = Current::Kept;
            let end = self.values.len();
            self.attributes.push(Attribute {
                name,
                at: 0,
                value: end..end,
            });
        }
    }

    pub fn begin_value(&mut self, at: u64) {
        if let (Current::Kept, Some(last)) = (self.current, self.attributes.last_mut()) {
            last.at = at;
        }
    }

    pub fn push_value(&mut self, piece: &[u8]) {
        let (Current::Kept, Some(last)) = (self.current, self.attributes.last_mut()) else {
            return;
        };
        if self.values.len() + piece.len() > VALUE_BYTES_MAX {
            self.values.truncate(last.value.start);
            last.value.end = last.value.start;
            self.current = Current::PassedOver;
            return;
        }
        self.values.extend_from_slice(piece);
        last.value.end = self.values.len();
    }
}

/// A short name in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    /// One more than fits where the name is too long.
    length: usize,
}

impl Name {
    pub const fn new() -> Self {
        Self {
            bytes: [0; NAME_BYTES_MAX],
            length: 0,
        }
    }

    pub fn clear(&mut self) {
        self.length = 0;
    }

    pub fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte.to_ascii_lowercase();
        }
        self.length = (self.length + 1).min(NAME_BYTES_MAX + 1);
    }

    /// The name, or nothing where it was too long.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
