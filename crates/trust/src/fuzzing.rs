//! What fuzzing holds against the reader of member lists: properties that every input must have.
//!
//! The target in `fuzz/` calls this with what libFuzzer makes up, and a test with everything that
//! is kept in `fuzz/corpus` and `fuzz/crashes`. What it makes up is signed here first, so that the
//! lines are read at all.

use crate::{Identity, Purpose, Roster, SignedList};

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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn everything_that_fuzzing_has_kept_still_has_its_properties() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        let corpus = fs::read_dir(root.join("corpus/member_list")).expect("a corpus");
        let crashes = fs::read_dir(root.join("crashes/member_list"));
        let mut tried = 0;
        for entry in corpus.chain(crashes.into_iter().flatten()) {
            let path = entry.expect("a file").path();
            super::member_list(&fs::read(&path).expect("readable"));
            tried += 1;
        }
        assert!(tried >= 4, "the corpus has {tried}");
    }
}
