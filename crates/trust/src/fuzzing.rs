//! What fuzzing holds against the readers of member lists and keys: properties that every input
//! must have.
//!
//! The targets in `fuzz/` call these with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`. What it makes up as a list is signed here first, so
//! that the lines are read at all.

#[cfg(test)]
#[path = "../../../fuzz/kept.rs"]
mod kept;

use crate::{Identity, PublicKey, Purpose, Role, Roster, Signature, SignedList, UnixMillis};

/// A target and the property that it tries.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders.
pub const TARGETS: [Target; 2] = [("keys", keys), ("member_list", member_list)];

/// A list of anything is refused, or reads again as it is printed, and each member on it is found
/// by its key.
pub fn member_list(data: &[u8]) {
    let authority = Identity::from_seed(&[1; 32]);
    let text = String::from_utf8_lossy(data);
    // Without a signature of its own it may be anything, but never a list.
    assert!(SignedList::parse(&text, &authority.key()).is_err());
    let signature = authority.sign(Purpose::MemberList, text.as_bytes());
    let signed = format!("{text}signature: {signature}\n");
    let Ok(read) = SignedList::parse(&signed, &authority.key()) else {
        return;
    };
    assert_eq!(read.text(), signed);
    let printed = SignedList::sign(read.list().clone(), &authority);
    let again = SignedList::parse(printed.text(), &authority.key());
    assert_eq!(again.as_ref(), Ok(&printed));
    assert_eq!(printed.list(), read.list());
    let mut roster = Roster::new(authority.key());
    assert_eq!(roster.take(&signed), Ok(true));
    for (name, member) in read.list().members() {
        let role = roster.check(name, &member.key, read.list().issued);
        assert_eq!(role, Ok(member.role));
    }
}

/// A key, a signature, a date, a role or a key file: each is refused, or reads again as it is
/// printed, and no value has two texts.
pub fn keys(data: &[u8]) {
    if let Some(key) = PublicKey::from_spki(data) {
        assert!(data.ends_with(key.as_bytes()));
        let bytes = PublicKey::from_bytes(*key.as_bytes());
        assert_eq!(bytes.to_string().parse(), Ok(key));
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(identity) = Identity::from_file_text(&text) {
        let again = Identity::from_file_text(&identity.to_file_text());
        assert_eq!(again.map(|again| again.key()), Ok(identity.key()));
        let secret = identity.to_pkcs8();
        let shown = format!("{identity:?}");
        assert!(!secret.is_empty() && shown.len() < 80, "{shown}");
    }
    for line in text.lines() {
        if let Ok(key) = line.parse::<PublicKey>() {
            assert_eq!(key.to_string(), line);
        }
        if let Ok(signature) = line.parse::<Signature>() {
            assert_eq!(signature.to_string(), line);
        }
        if let Ok(date) = line.parse::<UnixMillis>() {
            assert_eq!(date.to_string().parse(), Ok(date));
        }
        if let Ok(role) = line.parse::<Role>() {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        super::kept::try_all(&super::TARGETS);
    }
}
