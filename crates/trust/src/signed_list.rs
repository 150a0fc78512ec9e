//! A member list as it travels: its text and the authority's signature.
//!
//! The signature covers the bytes of every line before it, as they stand. So a list is passed on
//! exactly as it came, and whoever reads one with lines of a later version still can check it.

use std::fmt;
use std::str::FromStr;

use levee_vocab::HostName;
use thiserror::Error;

use crate::member_list::{LIST_HEADER, Member, MemberList};
use crate::{BadSignature, Identity, KeyError, ListFull, PublicKey, Purpose, UnixMillis};

/// A member list that the authority has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedList {
    list: MemberList,
    text: String,
}

/// Why a text is no list of this authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ListError {
    /// It is not the beginning of one.
    #[error("not a member list: its first line is not `{LIST_HEADER}`")]
    NotAList,
    /// More bytes than any list has.
    #[error("longer than {LIST_BYTES_MAX} bytes")]
    TooLong,
    /// A line makes no sense.
    #[error("line {0} is not understood")]
    BadLine(usize),
    /// A name or a key stands there twice: it would not be clear who is meant.
    #[error("line {0} names a member or a key for the second time")]
    Twice(usize),
    /// Too many members.
    #[error("{0}")]
    Full(#[from] ListFull),
    /// One of the lines that every list has is not there.
    #[error("the line `{0}:` is missing")]
    Missing(&'static str),
    /// The last line is not the signature.
    #[error("the signature at its end is missing")]
    NotSigned,
    /// Its serial is 0, by which members say that they have no list.
    #[error("its serial is 0, but the first list of a community has 1")]
    NoSerial,
    /// It ends before it begins to hold.
    #[error("it expires before it was issued")]
    NeverHolds,
    /// Somebody else signed it, or it was altered.
    #[error("it is not signed by the authority {0}, or was altered since")]
    Forged(PublicKey),
    /// The authority's folder was restored or copied, and signed on from an old state.
    #[error("another list {0} is in force: sign this one again, by `levee community renew`")]
    SerialTaken(u64),
}

impl SignedList {
    /// Signs `list` with the authority's key.
    pub fn sign(list: MemberList, authority: &Identity) -> Self {
        let covered = list.to_string();
        let signature = authority.sign(Purpose::MemberList, covered.as_bytes());
        let text = format!("{covered}{SIGNATURE}{signature}\n");
        Self { list, text }
    }

    /// Reads a list and checks that `authority` signed it. Whether it still holds is asked later,
    /// of the [`crate::Roster`].
    ///
    /// # Errors
    /// When it is no list, or not of this authority.
    pub fn parse(text: &str, authority: &PublicKey) -> Result<Self, ListError> {
        if text.len() > LIST_BYTES_MAX {
            return Err(ListError::TooLong);
        }
        if text.lines().next() != Some(LIST_HEADER) {
            return Err(ListError::NotAList);
        }
        let (covered, signature) = split_signature(text).ok_or(ListError::NotSigned)?;
        let forged = |BadSignature| ListError::Forged(*authority);
        // Before its lines are looked at: what strangers wrote is not worth reading.
        authority
            .verify(Purpose::MemberList, covered.as_bytes(), &signature)
            .map_err(forged)?;
        let list = read(covered)?;
        let text = text.to_owned();
        Ok(Self { list, text })
    }

    /// What it says.
    pub const fn list(&self) -> &MemberList {
        &self.list
    }

    /// The text as it was signed, to be passed on.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether less than a third of its time is left: the authority should renew it.
    pub fn is_due(&self, now: UnixMillis) -> bool {
        let MemberList {
            issued, expires, ..
        } = &self.list;
        expires.since(now) < expires.since(*issued) / 3
    }
}

impl fmt::Display for SignedList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is covered, and the signature in the last line.
fn split_signature(text: &str) -> Option<(&str, crate::Signature)> {
    let whole = text.strip_suffix('\n')?;
    let start = whole.rfind('\n')? + 1;
    let signature: Result<_, KeyError> = whole[start..].strip_prefix(SIGNATURE)?.parse();
    Some((&text[..start], signature.ok()?))
}

/// The lines that every list has, as far as they were found.
#[derive(Default)]
struct Lines {
    community: Option<HostName>,
    serial: Option<u64>,
    issued: Option<UnixMillis>,
    expires: Option<UnixMillis>,
}

fn read(covered: &str) -> Result<MemberList, ListError> {
    let mut lines = Lines::default();
    // The name is filled in at the end; until then any will do.
    let mut entries = Vec::new();
    for (index, line) in covered.lines().enumerate() {
        let bad = ListError::BadLine(index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once(": ").ok_or(bad)?;
        match name {
            "community" => fill(&mut lines.community, value, index)?,
            "serial" => fill(&mut lines.serial, value, index)?,
            "issued" => fill(&mut lines.issued, value, index)?,
            "expires" => fill(&mut lines.expires, value, index)?,
            "member" => entries.push((index + 1, read_member(value).ok_or(bad)?)),
            "expelled" => entries.push((index + 1, read_expelled(value).ok_or(bad)?)),
            // A line of a later version.
            _ => {}
        }
    }
    let missing = ListError::Missing;
    let mut list = MemberList::new(lines.community.ok_or(missing("community"))?);
    list.serial = lines.serial.ok_or(missing("serial"))?;
    list.issued = lines.issued.ok_or(missing("issued"))?;
    list.expires = lines.expires.ok_or(missing("expires"))?;
    if list.serial == 0 {
        return Err(ListError::NoSerial);
    }
    if list.expires <= list.issued {
        return Err(ListError::NeverHolds);
    }
    enter(list, entries)
}

enum Line {
    Member(HostName, Member),
    Expelled(HostName, Member, String),
}

/// Expelled first: a member stands on the list although its key was expelled once.
fn enter(mut list: MemberList, lines: Vec<(usize, Line)>) -> Result<MemberList, ListError> {
    let mut keys = std::collections::BTreeSet::new();
    let (members, expelled): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .partition(|(_, line)| matches!(line, Line::Member(..)));
    for (number, line) in expelled.into_iter().chain(members) {
        match line {
            Line::Expelled(name, member, reason) => {
                list.add(name.clone(), member)?;
                list.expel(&name, &reason);
            }
            Line::Member(name, member) => {
                let is_known = list.member(&name).is_some();
                if is_known || !keys.insert(member.key) {
                    return Err(ListError::Twice(number));
                }
                list.add(name, member)?;
            }
        }
    }
    Ok(list)
}

fn fill<T: FromStr>(slot: &mut Option<T>, text: &str, index: usize) -> Result<(), ListError> {
    let value = text.parse().map_err(|_| ListError::BadLine(index + 1))?;
    match slot.replace(value) {
        Some(_) => Err(ListError::Twice(index + 1)),
        None => Ok(()),
    }
}

fn read_member(text: &str) -> Option<Line> {
    let mut words = text.split(' ');
    let name = words.next()?.parse().ok()?;
    let role = words.next()?.parse().ok()?;
    let key = words.next()?.parse().ok()?;
    let member = Member { role, key };
    words.next().is_none().then_some(Line::Member(name, member))
}

fn read_expelled(text: &str) -> Option<Line> {
    let mut words = text.splitn(3, ' ');
    let name = words.next()?.parse().ok()?;
    let key = words.next()?.parse().ok()?;
    let reason = words.next().unwrap_or_default().to_owned();
    let role = crate::Role::Site;
    Some(Line::Expelled(name, Member { role, key }, reason))
}

const SIGNATURE: &str = "signature: ";
/// Longest text of a list: every member and every expulsion with the longest names and reasons
/// would not fit, ten thousand usual ones do.
pub const LIST_BYTES_MAX: usize = 4 << 20;
