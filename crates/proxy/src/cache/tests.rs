//! The cache as a whole: its limit under churn, spaces apart, variants, notes.

use std::time::Duration;

use http::StatusCode;
use levee_vocab::{Purge, PurgeKind, PurgeScope};

use super::*;
use crate::cacheability::{Credentials, Keeping, Sharing};
use crate::flight::ResponseHead;

const NOBODY: [(Bytes, Bytes); 0] = [];

fn stored(body: Vec<u8>) -> Arc<Stored> {
    let head = ResponseHead {
        forwarding: crate::flight::Forwarding::unkept(crate::flight::Why::UriMiss),
        status: StatusCode::OK,
        lines: Bytes::from_static(b"content-type: text/plain\r\n"),
        tags: Tags::default(),
        length: None,
        age_initial: Duration::ZERO,
        received: Timestamp::from_seconds(1),
    };
    let keeping = Keeping {
        unshared: Vec::new(),
        lifetime: Duration::from_secs(60),
        stale_while_revalidate: Duration::ZERO,
        stale_if_error: Duration::ZERO,
        sharing: Sharing(Credentials::Authorization),
        vary: None,
    };
    Arc::new(Stored::new(
        Arc::new(head),
        Body::Memory(body.into()),
        &keeping,
    ))
}

fn key(space: Space, target: &str) -> CacheKey {
    CacheKey::plain(ObjectKey {
        space,
        target: Bytes::from(target.to_owned()),
    })
}

fn forget(cache: &Cache, space: &Space) {
    let all = Purge {
        scope: PurgeScope::All,
        kind: PurgeKind::Hard,
    };
    cache.purge(space, &all, Timestamp::ZERO);
}

fn body_of(cache: &Cache, space: &Space, target: &str) -> Option<Bytes> {
    let now = Timestamp::from_seconds(2);
    match cache.find(space, target.as_bytes(), NOBODY.as_slice(), now) {
        Found::Object(stored) => match &stored.body {
            Body::Memory(bytes) => Some(bytes.clone()),
            Body::File { .. } => None,
        },
        Found::Passes | Found::Nothing => None,
    }
}

#[test]
fn the_limit_holds_under_churn_of_many_keys_and_forgetting_frees_all() {
    let limit = 8 << 20;
    let cache = Cache::new(limit, 1 << 20, None);
    let empty = cache.bytes().0;
    let mut random = levee_vocab::Random::from_seed(7);
    let mut unkept = 0;
    for number in 0..200_000 {
        let size = match random.within(0..100) {
            0 => random.within(0..1 << 20),
            _ => random.within(0..2000),
        };
        let target = format!("/object/{number}");
        let object = stored(vec![b'x'; size as usize]);
        unkept += usize::from(cache.insert(key(Space::Own, &target), object).is_err());
        if number % 64 == 0 {
            assert!(cache.bytes().0 <= limit, "at {number}");
        }
    }
    let (held, _) = cache.bytes();
    assert!(held <= limit && held > limit / 2, "{held}");
    assert_eq!(unkept, 0);
    forget(&cache, &Space::Own);
    // What is left are slots and index, which are used again.
    let (left, _) = cache.bytes();
    assert!(left < limit / 5, "{empty} when empty, {left} after");
}

#[test]
fn what_the_cache_says_it_weighs_is_what_its_objects_weigh() {
    let cache = Cache::new(64 << 20, 1 << 20, None);
    let (empty, _) = cache.bytes();
    for number in 0..1000 {
        let target = format!("/{number}");
        let object = stored(vec![b'x'; 10_000]);
        cache.insert(key(Space::Own, &target), object).unwrap();
    }
    let per_object = (cache.bytes().0 - empty) / 1000;
    assert!((11_000..13_000).contains(&per_object), "{per_object}");
}

#[test]
fn two_spaces_with_the_same_path_never_mix() {
    let cache = Cache::new(1 << 20, 1 << 16, None);
    let space = |name: &str, port| Space::Origin(name.parse().unwrap(), port);
    let spaces = [
        Space::Own,
        space("a.example.org", 80),
        space("a.example.org", 81),
        space("b.example.org", 80),
    ];
    for space in &spaces {
        let object = stored(space.to_string().into_bytes());
        cache.insert(key(space.clone(), "/"), object).unwrap();
    }
    forget(&cache, &spaces[1]);
    for (number, space) in spaces.iter().enumerate() {
        let found = body_of(&cache, space, "/");
        let expected = (number != 1).then(|| Bytes::from(space.to_string()));
        assert_eq!(found, expected);
    }
}

#[test]
fn notes_say_what_is_for_one_and_what_varies() {
    let cache = Cache::new(1 << 20, 1 << 16, None);
    let now = Timestamp::from_seconds(2);
    let later = now + Duration::from_secs(10);
    let find = |at| cache.find(&Space::Own, b"/basket", NOBODY.as_slice(), at);
    cache.note_pass(key(Space::Own, "/basket"), later);
    assert!(matches!(find(now), Found::Passes));
    assert!(matches!(find(later), Found::Nothing));
    cache
        .insert(key(Space::Own, "/basket"), stored(b"x".to_vec()))
        .unwrap();
    assert!(matches!(find(now), Found::Object(_)));
    let basket = Purge::url("/basket", PurgeKind::Hard).unwrap();
    cache.purge(&Space::Own, &basket, Timestamp::ZERO);
    assert!(matches!(find(now), Found::Nothing));
}

#[test]
fn a_tiny_cache_refuses_what_does_not_fit_and_goes_on() {
    for limit in [0, 100, 1000, 5000] {
        let cache = Cache::new(limit, 1 << 20, None);
        for number in 0..100 {
            let target = format!("/{number}");
            let _ = cache.insert(key(Space::Own, &target), stored(vec![0; 500]));
            assert!(cache.bytes().0 <= limit);
        }
    }
}
