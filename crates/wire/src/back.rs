//! The word that a visitor carries back from a rescue server to its origin (H5): a parameter of the
//! query, `levee-back=`, in the Location of the redirect.
//!
//! A rescue server that cannot answer sends the visitor back, and nothing but the URL is sure to
//! come along: Referer is left out by many browsers and by all privacy proxies, cookies belong to
//! another name. So the URL itself says who sends, why, and since when; a MAC vouches for it.
//!
//! ```text
//!   byte   0            1..3                  3..12
//!          reason+key   age of the rescue,    MAC, 72 bits
//!                       in steps of 4 s
//! ```
//!
//! Twelve bytes are sixteen letters of base64url (RFC 4648 section 5), which no client encodes.
//! [`cut_back`] takes the parameter out of a target wherever it stands, [`push_back`] appends it,
//! and the one undoes the other exactly. What a word is worth is decided elsewhere: this file knows
//! no key and no clock.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Name of the parameter.
pub const BACK_PARAMETER: &str = "levee-back";

/// Bytes of the MAC. Who guesses has one try for each request: a million tries a second find one
/// right word in some seventy million years.
pub const BACK_MAC_BYTES: usize = 9;

/// Most bytes that [`push_back`] appends.
pub const BACK_BYTES_MAX: usize = 1 + BACK_PARAMETER.len() + 1 + LETTERS;

const BYTES: usize = 3 + BACK_MAC_BYTES;
const LETTERS: usize = BYTES / 3 * 4;
const _: () = assert!(
    BYTES.is_multiple_of(3),
    "no padding, and one text for each word"
);

/// What a visitor carries back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackWord {
    /// Says who sent it, and proves it.
    Signed(BackToken),
    /// Says only that the visitor was sent back: by a server that has lost its key. So is read
    /// whatever is no token, and more than one.
    Unsigned,
}

/// The signed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackToken {
    /// Why the visitor was sent back.
    pub reason: BackReason,
    /// Seven bits by which the origin finds the key among those of its rescue servers.
    pub key_hint: u8,
    /// Age of the rescue in steps of [`BackToken::AGE_STEP_SECONDS`], counted round.
    pub age: u16,
    /// Over all this and the URL.
    pub mac: [u8; BACK_MAC_BYTES],
}

/// Why a visitor was sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackReason {
    /// The rescue server does not hold the object.
    Missing,
    /// The rescue server has no capacity left; it may hold the object.
    Busy,
}

/// A target without the parameter, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutBack<'a> {
    /// The target as it was before [`push_back`]. A copy only where something follows the
    /// parameter, which no server of ours sends.
    pub target: Cow<'a, str>,
    /// What the parameter said.
    pub word: BackWord,
}

impl BackToken {
    /// Seconds in a step of the age: 65,536 of them are three days, and a word is good for a
    /// minute.
    pub const AGE_STEP_SECONDS: u64 = 4;

    /// Bits of the key hint.
    pub const HINT_MASK: u8 = 0x7F;

    /// The bytes under the MAC, beside those of the URL.
    pub const fn claim(&self) -> [u8; 3] {
        let reason = match self.reason {
            BackReason::Missing => 0,
            BackReason::Busy => !Self::HINT_MASK,
        };
        let [high, low] = self.age.to_be_bytes();
        [reason | (self.key_hint & Self::HINT_MASK), high, low]
    }

    fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let ([first, high, low], mac) = bytes.split_first_chunk()?;
        if length != BYTES {
            return None;
        }
        Some(Self {
            reason: match first & !Self::HINT_MASK {
                0 => BackReason::Missing,
                _ => BackReason::Busy,
            },
            key_hint: first & Self::HINT_MASK,
            age: u16::from_be_bytes([*high, *low]),
            mac: mac.try_into().ok()?,
        })
    }

    fn push(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; BYTES];
        bytes[..3].copy_from_slice(&self.claim());
        bytes[3..].copy_from_slice(&self.mac);
        let mut letters = [0; LETTERS];
        let written = URL_SAFE_NO_PAD.encode_slice(bytes, &mut letters);
        out.extend_from_slice(&letters[..written.unwrap_or_default()]);
    }
}

/// Appends `word` to `target`, a path with or without a query, in `out`.
pub fn push_back(target: &str, word: BackWord, out: &mut Vec<u8>) {
    out.extend_from_slice(target.as_bytes());
    out.push(match target.contains('?') {
        true => b'&',
        false => b'?',
    });
    out.extend_from_slice(BACK_PARAMETER.as_bytes());
    out.push(b'=');
    match word {
        BackWord::Signed(token) => token.push(out),
        BackWord::Unsigned => {}
    }
}

/// Takes the parameter out of `target`, a path with its query; none where there is none, which
/// costs a look at the first letter of each parameter.
pub fn cut_back(target: &str) -> Option<CutBack<'_>> {
    let question = target.bytes().position(|byte| byte == b'?')?;
    let (path, query) = (&target[..question], &target[question + 1..]);
    let first = parameters(query).position(|one| value_of(one).is_some())?;
    let mut left = String::new();
    let (mut words, mut behind) = (0, 0);
    let mut word = BackWord::Unsigned;
    let mut before_bytes = 0;
    for (index, parameter) in parameters(query).enumerate() {
        match value_of(parameter) {
            Some(value) => {
                words += 1;
                word = read_word(&value);
            }
            None if index < first => before_bytes += parameter.len() + 1,
            None => {
                behind += 1;
                left.push('&');
                left.push_str(parameter);
            }
        }
    }
    // The mark before the parameter goes with it: `?` where it is the first, `&` elsewhere.
    let before = match first {
        0 => path,
        _ => &target[..question + before_bytes],
    };
    let target = match (behind, first) {
        (0, _) => Cow::Borrowed(before),
        (_, 0) => Cow::Owned(format!("{before}?{}", &left[1..])),
        (_, _) => Cow::Owned(format!("{before}{left}")),
    };
    let word = match words {
        1 => word,
        _ => BackWord::Unsigned,
    };
    Some(CutBack { target, word })
}

fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split('&')
}

/// The value of `parameter` where it is ours. An encoded letter is that letter (RFC 3986 section
/// 6.2.2.2), so a proxy that encodes more than it must hides nothing.
fn value_of(parameter: &str) -> Option<Cow<'_, str>> {
    if !parameter.starts_with(['l', '%']) {
        return None;
    }
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    // Told by its length where it cannot be ours: nothing is decoded for most queries.
    let encoded = name.bytes().filter(|&byte| byte == b'%').count();
    if name.len() != BACK_PARAMETER.len() + 2 * encoded {
        return None;
    }
    (decoded(name) == BACK_PARAMETER).then(|| decoded(value))
}

fn read_word(value: &str) -> BackWord {
    BackToken::read(value).map_or(BackWord::Unsigned, BackWord::Signed)
}

/// `text` with each `%` and two digits as the byte that they mean. Bytes that are no ASCII stay as
/// they are: nothing of ours has any.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let byte = after
            .get(..2)
            .filter(|two| two.bytes().all(|x| x.is_ascii_hexdigit()));
        match byte.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                rest = &after[2..];
            }
            Some(_) | None => {
                plain.push('%');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: BackToken = BackToken {
        reason: BackReason::Missing,
        key_hint: 5,
        age: 258,
        mac: [9; BACK_MAC_BYTES],
    };
    const TEXT: &str = "BQECCQkJCQkJCQkJ";

    fn check(target: &str, expected: Option<(&str, BackWord)>) {
        let cut = cut_back(target);
        let found = cut.as_ref().map(|cut| (&*cut.target, cut.word));
        assert_eq!(found, expected, "{target}");
    }

    fn with(target: &str, word: BackWord) -> String {
        let mut out = Vec::new();
        push_back(target, word, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_word_is_short_and_reads_as_it_was_written() {
        let signed = BackWord::Signed(TOKEN);
        let text = with("/a", signed);
        assert_eq!(text, format!("/a?levee-back={TEXT}"));
        assert_eq!(text.len() - "/a".len(), BACK_BYTES_MAX);
        check(&text, Some(("/a", signed)));
        check("/a?levee-back=", Some(("/a", BackWord::Unsigned)));
    }

    #[test]
    fn a_word_is_found_wherever_it_stands_and_nothing_else_is() {
        let signed = BackWord::Signed(TOKEN);
        check(
            &format!("/a?b=c&levee-back={TEXT}"),
            Some(("/a?b=c", signed)),
        );
        check(
            &format!("/a?levee-back={TEXT}&b=c"),
            Some(("/a?b=c", signed)),
        );
        check(
            &format!("/a?b&levee-back={TEXT}&&c"),
            Some(("/a?b&&c", signed)),
        );
        check(&format!("/a?&levee-back={TEXT}"), Some(("/a?", signed)));
        check(
            &format!("/a?l%65vee%2Dback=%42{}", &TEXT[1..]),
            Some(("/a", signed)),
        );
        for target in [
            "/a",
            "*",
            "/a?",
            "/a?b=levee-back",
            "/a?levee-backs=1",
            "/a?Levee-Back=1",
            "/a/levee-back=1",
            "/a%3Flevee-back=1",
            "/a?%",
            "/a?%zz=1&l",
            "/a?xlevee-back=1",
        ] {
            check(target, None);
        }
    }

    #[test]
    fn what_is_no_word_is_taken_out_and_says_nothing() {
        let long = format!("{TEXT}A");
        let twice = format!("{TEXT}&levee-back={TEXT}");
        for value in [
            "",
            "1",
            &TEXT[1..],
            &long,
            &twice,
            "BQECCQkJCQkJCQk=",
            "%00%ff%",
        ] {
            check(
                &format!("/a?b&levee-back={value}"),
                Some(("/a?b", BackWord::Unsigned)),
            );
        }
        check("/a?levee-back", Some(("/a", BackWord::Unsigned)));
        check(
            "/a?levee-back=x&b&levee-back&c",
            Some(("/a?b&c", BackWord::Unsigned)),
        );
    }

    fn token() -> impl Strategy<Value = BackToken> {
        let reason = prop_oneof![Just(BackReason::Missing), Just(BackReason::Busy)];
        (
            reason,
            0..128_u8,
            any::<u16>(),
            any::<[u8; BACK_MAC_BYTES]>(),
        )
            .prop_map(|(reason, key_hint, age, mac)| BackToken {
                reason,
                key_hint,
                age,
                mac,
            })
    }

    proptest! {
        /// What was appended is taken out again, and the target is as it was.
        #[test]
        fn a_target_comes_back_as_it_went(
            target in "/[a-z%&=?/.]{0,20}",
            token in token(),
        ) {
            let word = BackWord::Signed(token);
            let cut = CutBack { target: Cow::Borrowed(&*target), word };
            let sent = with(&target, word);
            prop_assert_eq!(cut_back(&sent), Some(cut));
        }

        /// Whatever comes, nothing of ours is left, and what is left was there in this order.
        #[test]
        fn nothing_of_ours_is_left(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("levee-back=1"), Just("levee%2dback"), Just("l%65vee-back=%"),
                    Just("a=b"), Just(""), Just("l"), Just("levee-bac"),
                ],
                0..6,
            ),
        ) {
            let target = format!("/p?{}", parts.join("&"));
            let ours = |part: &&&str| part.contains("back");
            let others: Vec<&str> = parts.iter().filter(|part| !ours(part)).copied().collect();
            match cut_back(&target) {
                Some(cut) => {
                    prop_assert_eq!(cut_back(&cut.target), None);
                    let left = match others.is_empty() {
                        true => "/p".to_owned(),
                        false => format!("/p?{}", others.join("&")),
                    };
                    prop_assert_eq!(&*cut.target, left);
                }
                None => prop_assert_eq!(others.len(), parts.len()),
            }
        }
    }
}
