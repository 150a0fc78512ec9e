//! How a registry hands out the member list of a closed community.
//!
//! ```text
//! site -> registry   1 LIST 6                   have you a newer one than the sixth?
//! registry -> site   1 211 LIST IyBsZXZlZS…     its text in base64url, piece by piece
//! registry -> site   1 200 OK 1                 so many pieces; none if not
//! ```
//!
//! The list is signed by its authority, so it does not matter who hands it out, nor to whom.

use std::io::Write;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{Engine, display::Base64Display};

use crate::grammar::{Head, ParseError, Words};
use crate::registry::whole;

/// The number of the request and the serial that the asker has, if the line asks for a list.
pub fn parse_list_request(line: &[u8]) -> Option<(u32, u64)> {
    let (number, head, mut words) = Words::open(line).ok()?;
    let Head::Command(command) = head else {
        return None;
    };
    if !command.eq_ignore_ascii_case("LIST") {
        return None;
    }
    Some((number, whole(words.fixed("serial").ok()?)?))
}

/// Asks for a list that is newer than `serial`.
pub fn encode_list_request(number: u32, serial: u64, buffer: &mut Vec<u8>) {
    writeln!(buffer, "{number} LIST {serial}").expect("writing to memory does not fail");
}

/// The answer with this list, or with none that is newer.
pub fn encode_list(number: u32, list: Option<&str>, buffer: &mut Vec<u8>) {
    let pieces = list.unwrap_or_default().as_bytes().chunks(PIECE_BYTES);
    let count = pieces.len();
    for piece in pieces {
        let text = Base64Display::new(piece, &URL_SAFE_NO_PAD);
        writeln!(buffer, "{number} 211 LIST {text}").expect("writing to memory does not fail");
    }
    writeln!(buffer, "{number} 200 OK {count}").expect("writing to memory does not fail");
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListLine {
    /// A piece of the list; more lines follow.
    Piece(Vec<u8>),
    /// The end, after so many pieces.
    End(u32),
    /// Any code from 400, with the reason.
    Refused(u16, String),
}

/// Reads a line of the answer to the request `number`.
///
/// # Errors
/// When it is none.
pub fn parse_list_line(number: u32, line: &[u8]) -> Result<ListLine, ParseError> {
    let (answered, head, mut words) = Words::open(line)?;
    let Head::Code(code) = head else {
        return Err(ParseError::BadCode);
    };
    if answered != number {
        return Err(ParseError::BadNumber);
    }
    match code {
        211 => {
            let _word_for_people = words.fixed("LIST")?;
            let piece = words.fixed("piece")?;
            let bad = ParseError::Bad("piece");
            // The library wants room for its estimate, which is larger than what comes out.
            let mut bytes = vec![0; PIECE_BYTES + 3];
            let decoded = URL_SAFE_NO_PAD.decode_slice(piece, &mut bytes);
            bytes.truncate(decoded.map_err(|_| bad)?);
            Ok(ListLine::Piece(bytes))
        }
        200 => {
            let _word_for_people = words.fixed("OK")?;
            Ok(ListLine::End(words.number("count")?))
        }
        400.. => Ok(ListLine::Refused(code, words.rest())),
        _ => Err(ParseError::BadCode),
    }
}

/// Its text is 800 characters: with its number a line stays below `LINE_MAX`.
const PIECE_BYTES: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LINE_MAX;

    fn read(answer: &[u8]) -> (String, u32) {
        let mut text = Vec::new();
        for line in answer.split(|byte| *byte == b'\n') {
            assert!(line.len() <= LINE_MAX);
            match parse_list_line(7, line).expect("a line of the answer") {
                ListLine::Piece(piece) => text.extend(piece),
                ListLine::End(count) => {
                    return (String::from_utf8(text).expect("text"), count);
                }
                ListLine::Refused(code, text) => panic!("{code} {text}"),
            }
        }
        panic!("no end");
    }

    #[test]
    fn a_list_of_any_length_arrives_as_it_is() {
        for length in [0, 1, 599, 600, 601, 5000] {
            let list = "ü".repeat(length);
            let mut answer = Vec::new();
            encode_list(7, Some(&list), &mut answer);
            let (text, count) = read(&answer);
            assert_eq!(text, list);
            assert_eq!(count as usize, (length * 2).div_ceil(600));
        }
        let mut answer = Vec::new();
        encode_list(7, None, &mut answer);
        assert_eq!(answer, b"7 200 OK 0\n");
    }

    #[test]
    fn a_list_is_asked_for_by_its_serial() {
        let mut line = Vec::new();
        encode_list_request(7, 12, &mut line);
        assert_eq!(line, b"7 LIST 12\n");
        assert_eq!(parse_list_request(b"7 list 12"), Some((7, 12)));
        assert_eq!(parse_list_request(b"7 LIST x"), None);
        assert_eq!(parse_list_request(b"7 SEARCH 12"), None);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let check = |line: &str, expected| {
            assert_eq!(parse_list_line(7, line.as_bytes()), Err(expected), "{line}");
        };
        check("8 200 OK 0", ParseError::BadNumber);
        check("7 211 LIST ****", ParseError::Bad("piece"));
        check(
            &format!("7 211 LIST {}", "A".repeat(900)),
            ParseError::Bad("piece"),
        );
        check("7 LIST 0", ParseError::BadCode);
    }
}
