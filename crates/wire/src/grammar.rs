//! What the lines of both protocols have in common.
//!
//! `<number> <word> <fixed parameters> <key=value parameters>`, separated by spaces. The word is a
//! command when it begins with a letter, and the code of an answer when it is three digits
//! (dotslash 4.4.2). Keys that the receiver does not know are ignored, so that old and new versions
//! understand each other.

use std::str::{FromStr, SplitAsciiWhitespace};

use thiserror::Error;

/// Why a line is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Nothing but spaces.
    #[error("line is empty")]
    Empty,
    /// Bytes other than printable ASCII, spaces and tabs.
    #[error("line is not plain text")]
    NotText,
    /// The first word is not a sequence number.
    #[error("line does not begin with a sequence number from 1 to 4294967295")]
    BadNumber,
    /// Nothing after the sequence number.
    #[error("no command and no answer code after the sequence number")]
    NoCommand,
    /// The second word is neither a command nor a code.
    #[error("command is not letters, digits, hyphens and underscores, at most 32")]
    BadCommand,
    /// The second word begins with a digit but is not a three-digit code.
    #[error("answer code does not have three digits")]
    BadCode,
    /// A fixed parameter is not there.
    #[error("parameter {0} is missing")]
    Missing(&'static str),
    /// A parameter does not mean anything.
    #[error("parameter {0} is not understood")]
    Bad(&'static str),
    /// The same key twice: the two sides might disagree which one counts.
    #[error("parameter {0} is given twice")]
    Repeated(&'static str),
    /// More fixed parameters than the message has.
    #[error("too many parameters")]
    Surplus,
}

/// The sequence number with which `line` begins, so that even a line that makes no sense can be
/// answered by its number.
pub fn leading_number(line: &[u8]) -> Option<u32> {
    let digits = line
        .split(|byte| *byte == b' ' || *byte == b'\t')
        .find(|word| !word.is_empty())?;
    number(std::str::from_utf8(digits).ok()?)
}

/// The words of a line, taken one after the other.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    words: SplitAsciiWhitespace<'a>,
}

/// Whether a line asks or answers.
pub(crate) enum Head<'a> {
    Command(&'a str),
    Code(u16),
}

impl<'a> Words<'a> {
    /// The sequence number, the command or code, and the words after them.
    pub(crate) fn open(line: &'a [u8]) -> Result<(u32, Head<'a>, Self), ParseError> {
        let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ' || *byte == b'\t';
        if !line.iter().all(is_text) {
            return Err(ParseError::NotText);
        }
        let text = std::str::from_utf8(line).map_err(|_| ParseError::NotText)?;
        let mut words = text.split_ascii_whitespace();
        let first = words.next().ok_or(ParseError::Empty)?;
        let number = number(first).ok_or(ParseError::BadNumber)?;
        let head = head(words.next().ok_or(ParseError::NoCommand)?)?;
        Ok((number, head, Self { words }))
    }

    /// The next fixed parameter as text.
    pub(crate) fn fixed(&mut self, name: &'static str) -> Result<&'a str, ParseError> {
        self.optional().ok_or(ParseError::Missing(name))
    }

    /// The next fixed parameter as a value.
    pub(crate) fn value<T: FromStr>(&mut self, name: &'static str) -> Result<T, ParseError> {
        self.fixed(name)?.parse().map_err(|_| ParseError::Bad(name))
    }

    /// The next fixed parameter as a number without sign.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<u32, ParseError> {
        digits(self.fixed(name)?).ok_or(ParseError::Bad(name))
    }

    /// The next fixed parameter as a port that can be connected to.
    pub(crate) fn port(&mut self, name: &'static str) -> Result<u16, ParseError> {
        let port = u16::try_from(self.number(name)?).map_err(|_| ParseError::Bad(name))?;
        match port {
            0 => Err(ParseError::Bad(name)),
            port => Ok(port),
        }
    }

    /// The next fixed parameter, if there is one more.
    pub(crate) fn optional(&mut self) -> Option<&'a str> {
        let word = self.words.clone().next()?;
        if word.contains('=') {
            return None;
        }
        self.words.next()
    }

    /// The rest, without taking it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.words.clone()
    }

    /// What follows the fixed parameters.
    pub(crate) fn skip_fixed(mut self) -> Self {
        while self.optional().is_some() {}
        self
    }

    /// The rest as keys and values.
    pub(crate) fn pairs(self) -> impl Iterator<Item = Result<(&'a str, &'a str), ParseError>> {
        self.words
            .map(|word| word.split_once('=').ok_or(ParseError::Surplus))
    }

    /// Checks that the rest is only keys and values, none of which matter here.
    pub(crate) fn close(self) -> Result<(), ParseError> {
        self.pairs().try_for_each(|pair| pair.map(|_| ()))
    }

    /// The rest as text for people, one space between words.
    pub(crate) fn rest(self) -> String {
        self.words.collect::<Vec<_>>().join(" ")
    }
}

/// Fills `slot` with what `parsed` gives, unless the key was there before.
pub(crate) fn fill<T>(
    slot: &mut Option<T>,
    name: &'static str,
    parsed: Option<T>,
) -> Result<(), ParseError> {
    let value = parsed.ok_or(ParseError::Bad(name))?;
    match slot.replace(value) {
        Some(_) => Err(ParseError::Repeated(name)),
        None => Ok(()),
    }
}

/// Digits only: `u32::from_str` would take a plus sign too.
pub(crate) fn digits(text: &str) -> Option<u32> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// `1` or `0`.
pub(crate) fn flag(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<u32> {
    digits(text).filter(|&number| number > 0)
}

fn head(word: &str) -> Result<Head<'_>, ParseError> {
    if word.as_bytes()[0].is_ascii_digit() {
        let code = digits(word).filter(|_| word.len() == 3);
        let code = code.and_then(|code| u16::try_from(code).ok());
        return Ok(Head::Code(code.ok_or(ParseError::BadCode)?));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_command = word.as_bytes()[0].is_ascii_alphabetic() && word.bytes().all(fits);
    match is_command && word.len() <= COMMAND_MAX {
        true => Ok(Head::Command(word)),
        false => Err(ParseError::BadCommand),
    }
}

/// Longest command. Ours have at most ten letters; the rest is room for those to come.
const COMMAND_MAX: usize = 32;
