//! A member list from the authority's desk to the question who somebody is.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use levee_trust::{
    Identity, ListError, Member, MemberList, NotAMember, PublicKey, Role, Roster, SignedList,
    UnixMillis,
};
use levee_vocab::HostName;
use proptest::prelude::*;

const NOW: UnixMillis = UnixMillis(1_795_280_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn authority() -> Identity {
    Identity::from_seed(&[1; 32])
}

fn key(byte: u8) -> PublicKey {
    Identity::from_seed(&[byte; 32]).key()
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

fn member(byte: u8, role: Role) -> Member {
    Member {
        role,
        key: key(byte),
    }
}

/// Two sites and a registry.
fn list() -> MemberList {
    let mut list = MemberList::new(name("mutual-aid.example"));
    for (site, byte) in [("www.example.org", 2), ("www.example.net", 3)] {
        list.add(name(site), member(byte, Role::Site)).unwrap();
    }
    list.add(name("registry.example"), member(4, Role::Registry))
        .unwrap();
    list.renewed(NOW, DAY * 90)
}

fn roster(list: &MemberList) -> Roster {
    let mut roster = Roster::new(authority().key());
    let signed = SignedList::sign(list.clone(), &authority());
    assert_eq!(roster.take(signed.text()), Ok(true));
    roster
}

#[test]
fn a_list_is_a_readable_text_and_reads_as_it_was_written() {
    let mut list = list();
    list.expel(&name("www.example.net"), " it altered\n pages ")
        .unwrap();
    let signed = SignedList::sign(list.clone(), &authority());
    let lines: Vec<&str> = signed.text().lines().collect();
    assert_eq!(
        lines[..5],
        [
            "# levee member list 1",
            "community: mutual-aid.example",
            "serial: 1",
            "issued: 2026-11-21T16:53:20Z",
            "expires: 2027-02-19T16:53:20Z",
        ]
    );
    let expelled = format!("expelled: www.example.net {} it altered pages", key(3));
    assert_eq!(lines[7], expelled);
    let read = SignedList::parse(signed.text(), &authority().key()).unwrap();
    assert_eq!(read, signed);
    assert_eq!(read.list(), &list);
}

#[test]
fn only_the_authority_makes_lists() {
    let forged = SignedList::sign(list(), &Identity::from_seed(&[9; 32]));
    let failure = SignedList::parse(forged.text(), &authority().key());
    assert_eq!(failure, Err(ListError::Forged(authority().key())));
}

#[test]
fn a_list_from_before_is_not_taken_again() {
    let first = list();
    let second = first.clone().renewed(NOW, DAY);
    let mut roster = roster(&second);
    let old = SignedList::sign(first, &authority());
    assert_eq!(roster.take(old.text()), Ok(false));
    assert_eq!(roster.serial(), 2);
}

#[test]
fn who_is_a_member_is_said_by_key_and_by_name() {
    let roster = roster(&list());
    let site = name("www.example.org");
    assert_eq!(roster.check(&site, &key(2), NOW), Ok(Role::Site));
    assert_eq!(roster.who(&key(4), NOW).unwrap().1, Role::Registry);
    let said = roster.check(&site, &key(3), NOW).unwrap_err();
    let is = name("www.example.net");
    assert_eq!(said, NotAMember::WrongName { said: site, is });
    let said = roster.who(&key(9), NOW).unwrap_err();
    assert_eq!(said, NotAMember::UnknownKey(key(9)));
}

#[test]
fn who_was_removed_is_unknown_and_who_was_expelled_knows_why() {
    let mut list = list();
    list.remove(&name("www.example.org")).unwrap();
    list.expel(&name("www.example.net"), "it altered pages")
        .unwrap();
    let roster = roster(&list.renewed(NOW, DAY));
    let said = roster.who(&key(2), NOW).unwrap_err();
    assert_eq!(said.cause(), "not_a_member");
    let said = roster.who(&key(3), NOW).unwrap_err().to_string();
    assert_eq!(said, "www.example.net was expelled: it altered pages");
}

#[test]
fn who_was_expelled_and_is_added_again_is_a_member() {
    let mut list = list();
    list.expel(&name("www.example.net"), "a mistake").unwrap();
    list.add(name("www.example.net"), member(3, Role::Site))
        .unwrap();
    assert!(list.expelled().is_empty());
    let roster = roster(&list.renewed(NOW, DAY));
    assert!(roster.who(&key(3), NOW).is_ok());
}

#[test]
fn a_list_holds_between_its_dates_and_asks_to_be_renewed_in_its_last_third() {
    let list = list();
    let (issued, expires) = (list.issued, list.expires);
    let roster = roster(&list);
    let ask = |at| {
        roster
            .who(&key(2), at)
            .map(|_| ())
            .map_err(|why| why.cause())
    };
    assert_eq!(ask(issued), Ok(()));
    assert_eq!(ask(UnixMillis(issued.0 - 60_000)), Ok(()));
    assert_eq!(
        ask(UnixMillis(issued.0 - 61_000)),
        Err("member_list_not_yet_valid")
    );
    assert_eq!(ask(UnixMillis(expires.0 - 1)), Ok(()));
    assert_eq!(ask(expires), Err("member_list_expired"));
    let signed = roster.newest().unwrap();
    assert!(!signed.is_due(issued.after(DAY * 59)));
    assert!(signed.is_due(issued.after(DAY * 61)));
    assert!(signed.is_due(issued.after(DAY * 1000)));
}

#[test]
fn without_a_list_nobody_is_a_member() {
    let roster = Roster::new(authority().key());
    assert_eq!(roster.who(&key(2), NOW).unwrap_err(), NotAMember::NoList);
    assert_eq!(roster.serial(), 0);
}

/// A list with other lines than ours would write, signed all the same.
fn signed_text(covered: &str) -> String {
    let signature = authority().sign(levee_trust::Purpose::MemberList, covered.as_bytes());
    format!("{covered}signature: {signature}\n")
}

#[test]
fn a_line_that_makes_no_sense_is_named() {
    let good = list().to_string();
    let check = |covered: &str, expected| {
        let read = SignedList::parse(&signed_text(covered), &authority().key());
        assert_eq!(read.map(|_| ()), expected, "{covered}");
    };
    check(&good, Ok(()));
    check(&format!("{good}later: words of a later version\n"), Ok(()));
    check(&format!("{good}member: x\n"), Err(ListError::BadLine(9)));
    check(&format!("{good}nonsense\n"), Err(ListError::BadLine(9)));
    check(&format!("{good}serial: 2\n"), Err(ListError::Twice(9)));
    let twin = format!("{good}member: other.example site {}\n", key(2));
    check(&twin, Err(ListError::Twice(9)));
    check(
        &good.replace("serial: 1\n", ""),
        Err(ListError::Missing("serial")),
    );
    let late = good.replace("2027-02-19", "2026-02-19");
    check(&late, Err(ListError::NeverHolds));
    check("x\n", Err(ListError::NotAList));
    let unsigned = SignedList::parse(&good, &authority().key());
    assert_eq!(unsigned, Err(ListError::NotSigned));
}

proptest! {
    #[test]
    fn any_altered_byte_of_a_list_is_noticed(at in any::<prop::sample::Index>(), to in 0u8..128) {
        let text = SignedList::sign(list(), &authority()).text().to_owned();
        let mut bytes = text.clone().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        let altered = String::from_utf8(bytes).unwrap();
        prop_assert!(SignedList::parse(&altered, &authority().key()).is_err());
    }

    #[test]
    fn no_text_makes_the_reader_fail(text in "\\PC*") {
        let _ = SignedList::parse(&text, &authority().key());
        let _ = SignedList::parse(&signed_text(&text), &authority().key());
    }
}
