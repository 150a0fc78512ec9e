//! Finds the objects that a style sheet names, one piece of the stream at a time.
//!
//! `url(...)`, `@import "..."` and the strings of `image-set(...)`, told apart from comments,
//! strings and namespaces as in CSS Syntax (Level 3, section 4.3). Fonts are told as such, with the
//! end of their block, because a browser takes only one of those that a block names.
//!
//! Needs memory for one URL. What is longer than any that is kept (pictures that stand in the sheet
//! itself, as `data:`) is passed over. Not here: whether a rule applies to anything in the page.

mod escape;

use crate::limits::URL_BYTES_MAX;
use escape::{Escape, Unescaped};

/// Who is told what is in a style sheet.
pub trait CssSink {
    /// A URL as it stands in the sheet, without escapes.
    fn url(&mut self, url: &CssUrl<'_>);
    /// A block ended.
    fn block_end(&mut self);
}

/// A URL in a style sheet.
#[derive(Clone, Copy, Debug)]
pub struct CssUrl<'a> {
    /// What the browser resolves.
    pub text: &'a [u8],
    /// Where it begins.
    pub at: u64,
    /// Whether the sheet has the very bytes of `text`.
    pub spelling: Spelling,
    /// What it is for.
    pub purpose: Purpose,
}

/// How a URL stands in the sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As it is.
    Plain,
    /// With escapes.
    Escaped,
}

/// What a URL in a style sheet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Another sheet.
    Import,
    /// One of the sources of a font.
    Font,
    /// Anything else, usually an image.
    Image,
}

/// Reads a style sheet.
#[derive(Debug)]
pub struct Css {
    state: State,
    escape: Option<Escape>,
    at: u64,
    word: Vec<u8>,
    rule: Rule,
    /// Open parentheses.
    depth: u32,
    /// Depth of the `image-set(` that is open.
    image_set: Option<u32>,
    url: Vec<u8>,
    url_at: u64,
    spelling: Spelling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Between,
    Slash,
    Comment,
    CommentStar,
    Word,
    /// After `url(`.
    UrlOpen,
    UrlBare,
    /// After a space in `url( ... )`.
    UrlEnd,
    /// In what is no URL, until its parenthesis.
    UrlBad,
    Text(Quote, TextUse),
}

/// What a string is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextUse {
    Nothing,
    /// It is a URL that stands by itself.
    Url,
    /// It is the inside of `url(...)`.
    InUrl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    Double,
    Single,
}

/// The at-rule that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Other,
    Import,
    Namespace,
    FontFace,
}

/// Longest word that means something: `-webkit-image-set`.
const WORD_BYTES_MAX: usize = 24;

impl Css {
    /// One that stands at the first byte of a sheet.
    pub fn new() -> Self {
        Self {
            state: State::Between,
            escape: None,
            at: 0,
            word: Vec::new(),
            rule: Rule::Other,
            depth: 0,
            image_set: None,
            url: Vec::new(),
            url_at: 0,
            spelling: Spelling::Plain,
        }
    }

    /// Reads the next piece and tells the sink what it completes.
    pub fn write(&mut self, piece: &[u8], sink: &mut impl CssSink) {
        for byte in piece {
            while self.read(*byte, sink) == Taken::Not {}
            self.at += 1;
        }
    }

    /// Says that the next piece begins there: something in between was left out.
    pub fn move_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Where the URL begins that is not complete yet. What is before is done with.
    pub fn open_url(&self) -> Option<u64> {
        match self.state {
            State::UrlBare | State::UrlEnd | State::Text(_, TextUse::Url | TextUse::InUrl) => {
                Some(self.url_at)
            }
            State::Between
            | State::Slash
            | State::Comment
            | State::CommentStar
            | State::Word
            | State::UrlOpen
            | State::UrlBad
            | State::Text(_, TextUse::Nothing) => None,
        }
    }

    /// The end of the sheet. A browser closes what is still open.
    pub fn finish(&mut self, sink: &mut impl CssSink) {
        if self.open_url().is_some() {
            self.tell(sink);
        }
        sink.block_end();
    }

    fn read(&mut self, byte: u8, sink: &mut impl CssSink) -> Taken {
        if let Some(escape) = &mut self.escape {
            return match escape.read(byte) {
                Unescaped::More => Taken::Taken,
                Unescaped::Char(char, taken) => {
                    self.escape = None;
                    self.unescaped(char);
                    taken
                }
            };
        }
        match self.state {
            State::Between => self.between(byte, sink),
            State::Slash if byte == b'*' => self.go(State::Comment),
            State::Slash => self.again(State::Between),
            State::Comment if byte == b'*' => self.go(State::CommentStar),
            State::CommentStar if byte == b'/' => self.go(State::Between),
            State::CommentStar if byte == b'*' => Taken::Taken,
            State::Comment | State::CommentStar => self.go(State::Comment),
            State::Word => self.word(byte),
            State::UrlOpen => self.url_open(byte),
            State::UrlBare => self.url_bare(byte, sink),
            State::UrlEnd => match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => Taken::Taken,
                b')' => self.end_url(sink),
                _ => self.again(State::UrlBad),
            },
            State::UrlBad => match byte {
                b')' => self.close(),
                b'\\' => self.begin_escape(),
                _ => Taken::Taken,
            },
            State::Text(quote, text_use) => self.text(byte, quote, text_use, sink),
        }
    }

    fn go(&mut self, state: State) -> Taken {
        self.state = state;
        Taken::Taken
    }

    fn again(&mut self, state: State) -> Taken {
        self.state = state;
        Taken::Not
    }

    fn between(&mut self, byte: u8, sink: &mut impl CssSink) -> Taken {
        match byte {
            b'/' => self.go(State::Slash),
            b'"' => self.begin_text(Quote::Double),
            b'\'' => self.begin_text(Quote::Single),
            b'(' => {
                self.depth += 1;
                Taken::Taken
            }
            b')' => self.close(),
            b';' => {
                if self.rule != Rule::FontFace {
                    self.rule = Rule::Other;
                }
                Taken::Taken
            }
            b'{' | b'}' => {
                (self.depth, self.image_set) = (0, None);
                if byte == b'}' {
                    sink.block_end();
                }
                if byte == b'}' || self.rule != Rule::FontFace {
                    self.rule = Rule::Other;
                }
                Taken::Taken
            }
            b'@' | b'-' | b'_' | b'\\' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => {
                self.word.clear();
                self.again(State::Word)
            }
            _ => Taken::Taken,
        }
    }

    fn word(&mut self, byte: u8) -> Taken {
        match byte {
            b'\\' => self.begin_escape(),
            b'@' if self.word.is_empty() => {
                self.push_word(byte);
                Taken::Taken
            }
            b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => {
                self.push_word(byte.to_ascii_lowercase());
                Taken::Taken
            }
            b'(' => self.function(),
            _ => {
                match self.word.as_slice() {
                    b"@import" => self.rule = Rule::Import,
                    b"@namespace" => self.rule = Rule::Namespace,
                    b"@font-face" => self.rule = Rule::FontFace,
                    [b'@', ..] => self.rule = Rule::Other,
                    _ => {}
                }
                self.again(State::Between)
            }
        }
    }

    fn push_word(&mut self, byte: u8) {
        // One that is longer stays longer, and means nothing.
        if self.word.len() <= WORD_BYTES_MAX {
            self.word.push(byte);
        }
    }

    /// At the parenthesis after a word.
    fn function(&mut self) -> Taken {
        self.depth += 1;
        match self.word.as_slice() {
            b"url" => return self.go(State::UrlOpen),
            b"image-set" | b"-webkit-image-set" => self.image_set = Some(self.depth),
            _ => {}
        }
        self.go(State::Between)
    }

    /// At a parenthesis that closes.
    fn close(&mut self) -> Taken {
        if self.image_set == Some(self.depth) {
            self.image_set = None;
        }
        self.depth = self.depth.saturating_sub(1);
        self.go(State::Between)
    }

    fn begin_text(&mut self, quote: Quote) -> Taken {
        let is_url = self.rule == Rule::Import && self.depth == 0
            || self.image_set.is_some() && self.image_set == Some(self.depth);
        let text_use = if is_url {
            TextUse::Url
        } else {
            TextUse::Nothing
        };
        self.begin_url(1);
        self.go(State::Text(quote, text_use))
    }

    fn begin_url(&mut self, offset: u64) {
        self.url.clear();
        self.url_at = self.at + offset;
        self.spelling = Spelling::Plain;
    }

    fn url_open(&mut self, byte: u8) -> Taken {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => Taken::Taken,
            b'"' | b'\'' => {
                self.begin_url(1);
                let double = byte == b'"';
                let quote = if double { Quote::Double } else { Quote::Single };
                self.go(State::Text(quote, TextUse::InUrl))
            }
            _ => {
                self.begin_url(0);
                self.again(State::UrlBare)
            }
        }
    }

    fn url_bare(&mut self, byte: u8, sink: &mut impl CssSink) -> Taken {
        match byte {
            b')' => self.end_url(sink),
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => self.go(State::UrlEnd),
            b'"' | b'\'' | b'(' | 0..=8 | 0x0b | 0x0e..=0x1f | 0x7f => self.go(State::UrlBad),
            b'\\' => self.begin_escape(),
            byte => {
                self.push_url(byte);
                Taken::Taken
            }
        }
    }

    fn text(&mut self, byte: u8, quote: Quote, used: TextUse, sink: &mut impl CssSink) -> Taken {
        match (byte, quote) {
            (b'"', Quote::Double) | (b'\'', Quote::Single) => match used {
                TextUse::Nothing => self.go(State::Between),
                TextUse::Url => {
                    self.tell(sink);
                    self.go(State::Between)
                }
                TextUse::InUrl => {
                    // More arguments may follow; no browser knows any.
                    self.tell(sink);
                    self.go(State::UrlBad)
                }
            },
            // A string that its line ends is none.
            (b'\n' | b'\r' | b'\x0c', _) => match used {
                TextUse::Nothing | TextUse::Url => self.again(State::Between),
                TextUse::InUrl => self.again(State::UrlBad),
            },
            (b'\\', _) => self.begin_escape(),
            (byte, _) => {
                self.push_url(byte);
                Taken::Taken
            }
        }
    }

    fn begin_escape(&mut self) -> Taken {
        self.spelling = Spelling::Escaped;
        self.escape = Some(Escape::new());
        Taken::Taken
    }

    fn unescaped(&mut self, char: Option<char>) {
        let Some(char) = char else { return };
        let mut bytes = [0; 4];
        for byte in char.encode_utf8(&mut bytes).bytes() {
            match self.state {
                State::Word => self.push_word(byte.to_ascii_lowercase()),
                State::UrlBare | State::Text(_, _) => self.push_url(byte),
                State::Between
                | State::Slash
                | State::Comment
                | State::CommentStar
                | State::UrlOpen
                | State::UrlEnd
                | State::UrlBad => {}
            }
        }
    }

    fn push_url(&mut self, byte: u8) {
        // One that is longer stays longer, and is not told.
        if self.url.len() <= URL_BYTES_MAX {
            self.url.push(byte);
        }
    }

    fn end_url(&mut self, sink: &mut impl CssSink) -> Taken {
        self.tell(sink);
        self.close()
    }

    fn tell(&mut self, sink: &mut impl CssSink) {
        let purpose = match self.rule {
            Rule::Namespace => return,
            Rule::Import => Purpose::Import,
            Rule::FontFace => Purpose::Font,
            Rule::Other => Purpose::Image,
        };
        if self.rule == Rule::Import {
            // What follows in the rule are conditions.
            self.rule = Rule::Other;
        }
        if self.url.len() <= URL_BYTES_MAX {
            sink.url(&CssUrl {
                text: &self.url,
                at: self.url_at,
                spelling: self.spelling,
                purpose,
            });
        }
    }
}

/// Whether a byte was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Taken,
    Not,
}
