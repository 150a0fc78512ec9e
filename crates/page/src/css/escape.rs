//! What a backslash makes of the bytes after it (CSS Syntax Level 3, section 4.3.7).

use super::Taken;

/// An escape that is under way, after its backslash.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    digits: u32,
    value: u32,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Digits,
    /// After a carriage return, which a line feed may follow.
    LineEnd,
}

/// What an escape makes of a byte.
#[derive(Clone, Copy, Debug)]
pub enum Unescaped {
    /// It goes on.
    More,
    /// It stands for this, or for nothing; and whether the byte belonged to it.
    Char(Option<char>, Taken),
}

impl Escape {
    pub const fn new() -> Self {
        Self {
            digits: 0,
            value: 0,
            part: Part::Digits,
        }
    }

    /// Reads the next byte.
    pub fn read(&mut self, byte: u8) -> Unescaped {
        match (self.part, char::from(byte).to_digit(16)) {
            (Part::LineEnd, _) => self.end(if byte == b'\n' {
                Taken::Taken
            } else {
                Taken::Not
            }),
            (Part::Digits, Some(digit)) if self.digits < 6 => {
                self.digits += 1;
                self.value = self.value * 16 + digit;
                Unescaped::More
            }
            (Part::Digits, _) => match byte {
                b'\r' => {
                    self.part = Part::LineEnd;
                    Unescaped::More
                }
                b' ' | b'\t' if self.digits > 0 => self.end(Taken::Taken),
                b'\n' | b'\x0c' => self.end(Taken::Taken),
                _ if self.digits > 0 => self.end(Taken::Not),
                // Bytes of a longer character follow as they are.
                0x80.. => Unescaped::Char(None, Taken::Not),
                byte => Unescaped::Char(Some(char::from(byte)), Taken::Taken),
            },
        }
    }

    fn end(&self, taken: Taken) -> Unescaped {
        let char = match (self.digits, self.value) {
            // An escaped end of a line stands for nothing.
            (0, _) => None,
            (_, 0) => Some(char::REPLACEMENT_CHARACTER),
            (_, value) => Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)),
        };
        Unescaped::Char(char, taken)
    }
}
