//! Makes links of a page to its own server relative, so that a browser that got the page from a
//! rescue server asks for its objects there too (hotspot-avoidance, section 3).
//!
//! `https://www.example.org/a.png` and `//www.example.org/a.png` become `/a.png`. Nothing else is
//! changed, not even a space: a link is cut only where what is left cannot mean anything else.
//! What depends on a whole tag waits for its end, and the bytes of one tag are the only ones that
//! are held back; a tag that is longer than the bound goes out as it came.
//!
//! Style sheets that are objects themselves are left alone: a page may name the digest of one
//! (`integrity`), and their links are relative nearly always. After a policy of the page that ties
//! it to its server or to its bytes, nothing is changed any more.

use std::ops::Range;

use url::Url;

use crate::charset::Charset;
use crate::context::characters;
use crate::css::{Css, CssSink, CssUrl, Spelling};
use crate::html::Base;
use crate::place::{Place, resolve};
use crate::references::{Form, is_styling, references};
use crate::srcset;
use crate::syntax::Syntax;
use crate::tokenizer::{Tag, TagSink, Tokenizer};

/// Makes links relative while a page streams through.
#[derive(Debug)]
pub struct Rewriter {
    tokenizer: Tokenizer,
    page: Page,
    held: Held,
}

/// Whether links that a visitor follows are made relative too. What the page embeds always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hyperlinks {
    /// They lead where they led.
    Kept,
    /// They lead to the server that the page came from.
    Relative,
}

#[derive(Debug)]
struct Page {
    base: Base,
    hyperlinks: Hyperlinks,
    policy: Policy,
    sheet: Option<Css>,
    cuts: Cuts,
}

/// What the page says of itself (Content Security Policy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Free,
    /// It names its server, from which alone a browser would load, or digests of its styles.
    Tied,
}

/// What is to be left out.
#[derive(Debug)]
struct Cuts {
    place: Place,
    ranges: Vec<Range<u64>>,
}

/// Bytes that were read and may still be changed.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    /// Where they begin in the page.
    at: u64,
}

/// Longest tag that is held back. Longer ones carry data in their attributes.
const HELD_BYTES_MAX: u64 = 64 * 1024;

impl Rewriter {
    /// For a response at this place, if its content type is that of a page. The body must come
    /// without a content coding.
    pub fn new(content_type: &str, place: Place, hyperlinks: Hyperlinks) -> Option<Self> {
        let Syntax::Page(markup) = Syntax::of_content_type(content_type)? else {
            return None;
        };
        let cuts = Cuts {
            place,
            ranges: Vec::new(),
        };
        Some(Self {
            tokenizer: Tokenizer::new(markup),
            page: Page {
                base: Base::Page,
                hyperlinks,
                policy: Policy::Free,
                sheet: None,
                cuts,
            },
            held: Held {
                bytes: Vec::new(),
                at: 0,
            },
        })
    }

    /// Reads the next piece, and adds to `out` what is decided.
    pub fn write(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.held.bytes.extend_from_slice(piece);
        self.tokenizer.write(piece, &mut self.page);
        let url = self.page.sheet.as_ref().and_then(Css::open_url);
        let open = self.tokenizer.open_tag().or(url);
        self.held.release(open, &mut self.page.cuts.ranges, out);
    }

    /// The end of the page: adds the rest.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.held.release(None, &mut self.page.cuts.ranges, out);
    }
}

impl Held {
    /// Lets go what stands before `open`, without what is cut.
    fn release(&mut self, open: Option<u64>, cuts: &mut Vec<Range<u64>>, out: &mut Vec<u8>) {
        let read = self.at + self.bytes.len() as u64;
        let end = open
            .filter(|open| read - open <= HELD_BYTES_MAX)
            .unwrap_or(read);
        cuts.sort_by_key(|cut| cut.start);
        let index = |at: u64| (at - self.at) as usize;
        let mut begin = self.at;
        for cut in cuts.drain(..) {
            // What has gone out stays as it was.
            if cut.start >= begin {
                out.extend_from_slice(&self.bytes[index(begin)..index(cut.start)]);
                begin = cut.end;
            }
        }
        let end = end.max(begin);
        out.extend_from_slice(&self.bytes[index(begin)..index(end)]);
        self.bytes.drain(..index(end));
        self.at = end;
    }
}

impl Cuts {
    /// Cuts what a URL, as it stands in the page at `at`, says of its server.
    fn url(&mut self, url: &[u8], at: u64) {
        if let Some(cut) = self.needless(url) {
            self.ranges.push(at + cut.start as u64..at + cut.end as u64);
        }
    }

    /// The part of a URL that names the server of the page, if the rest is a path that leads to the
    /// same object from there.
    fn needless(&self, url: &[u8]) -> Option<Range<usize>> {
        let begin = url.iter().position(|byte| !is_space(*byte))?;
        let url = &url[begin..];
        let scheme = ["https:", "http:", ""].into_iter().find(|scheme| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
        })?;
        let server = url[scheme.len()..].strip_prefix(b"//")?;
        let slash = server.iter().position(|byte| !is_of_authority(*byte))?;
        if server[slash] != b'/' || !server.get(slash + 1).is_none_or(|byte| is_plain(*byte)) {
            return None;
        }
        let end = scheme.len() + 2 + slash;
        let server = std::str::from_utf8(&url[..end]).ok()?;
        let server = resolve(self.place.page(), server, encoding_rs::UTF_8)?;
        self.place
            .is_same_server(&server)
            .then_some(begin..begin + end)
    }

    fn srcset(&mut self, value: &[u8], at: u64) {
        let Ok(text) = std::str::from_utf8(value) else {
            return;
        };
        // Character references may stand for spaces and commas; that of the ampersand does not.
        if text.split('&').skip(1).all(|rest| rest.starts_with("amp;")) {
            for candidate in srcset::candidates(text) {
                let begin = at + candidate.start as u64;
                self.url(&value[candidate], begin);
            }
        }
    }

    fn style(&mut self, value: &[u8], at: u64) {
        // Character references may stand for quotes and parentheses.
        if !value.contains(&b'&') {
            let mut css = Css::new();
            css.move_to(at);
            css.write(value, self);
            css.finish(self);
        }
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b' ')
}

/// Bytes of a host and a port. Anything else, also a name or password, is left alone.
const fn is_of_authority(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b':')
}

/// What may follow the slash that a path begins with. A second slash, a backslash, or what could
/// stand for one of them, would begin the name of another server.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' | b'%')
}

impl CssSink for Cuts {
    fn url(&mut self, url: &CssUrl<'_>) {
        if url.spelling == Spelling::Plain {
            self.url(url.text, url.at);
        }
    }

    fn block_end(&mut self) {}
}

impl Page {
    fn links(&mut self, tag: &Tag) {
        let cuts = &mut self.cuts;
        references(tag, |reference| {
            let Some((value, at)) = tag.attribute(reference.attribute) else {
                return;
            };
            match reference.form {
                Form::Url => cuts.url(value, at),
                Form::Srcset => cuts.srcset(value, at),
                Form::Style => cuts.style(value, at),
            }
        });
        let is_followed = match self.hyperlinks {
            Hyperlinks::Kept => false,
            Hyperlinks::Relative => matches!(tag.name(), b"a" | b"area"),
        };
        if let (true, Some((value, at))) =
            (is_followed || tag.name() == b"base", tag.attribute("href"))
        {
            cuts.url(value, at);
        }
    }

    /// Whether a path that begins with a slash leads to the server of the page, and may.
    fn is_at_home(&self) -> bool {
        let base: &Url = self.base.url(&self.cuts.place);
        self.policy == Policy::Free && self.cuts.place.is_same_server(base)
    }

    fn read_policy(&mut self, tag: &Tag) {
        let text = |name| {
            let value = String::from_utf8_lossy(tag.value(name).unwrap_or_default());
            characters(&value).to_ascii_lowercase()
        };
        if text("http-equiv").trim() == "content-security-policy" {
            let policy = text("content");
            let host = self.cuts.place.page().host_str().unwrap_or_default();
            if policy.contains("'sha") || policy.contains(host) {
                self.policy = Policy::Tied;
            }
        }
    }
}

impl TagSink for Page {
    fn tag(&mut self, tag: &Tag) {
        match tag.name() {
            b"base" => self.base.read(tag, &self.cuts.place, Charset::Unknown),
            b"meta" => self.read_policy(tag),
            b"style" => self.sheet = is_styling(tag).then(Css::new),
            _ => {}
        }
        if self.is_at_home() {
            self.links(tag);
        }
    }

    fn style(&mut self, text: &[u8], at: u64) {
        if self.is_at_home()
            && let Some(css) = &mut self.sheet
        {
            css.move_to(at);
            css.write(text, &mut self.cuts);
        }
    }

    fn style_end(&mut self) {
        self.sheet = None;
    }
}
