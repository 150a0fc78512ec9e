//! The cache as a whole: its limit under churn, spaces apart, variants, notes.

use std::time::Duration;

use http::StatusCode;
use levee_vocab::{Purge, PurgeKind, PurgeScope};

use super::*;
use crate::cacheability::{Credentials, Keeping, Sharing};
use crate::flight::{ResponseHead, Spaces};

const NOBODY: [(Bytes, Bytes); 0] = [];

fn stored(body: Vec<u8>) -> Arc<Stored> {
    let head = ResponseHead {
        reading: crate::flight::Reading::Unsaid,
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

fn own(site: &str) -> Space {
    Space::Own(site.parse().unwrap())
}

/// As visitors of a site ask for it by its own name.
fn object(space: &Space, target: &str) -> ObjectKey {
    let base = match space {
        Space::Own(site) => Bytes::from(format!("http://{site}")),
        Space::Origin(..) => Bytes::new(),
    };
    ObjectKey {
        space: space.clone(),
        base,
        target: Bytes::from(target.to_owned()),
    }
}

fn key(space: &Space, target: &str) -> CacheKey {
    CacheKey::plain(object(space, target))
}

fn forget(cache: &Cache, spaces: &Spaces) {
    let all = Purge {
        scope: PurgeScope::All,
        kind: PurgeKind::Hard,
    };
    cache.purge(spaces, &all, Timestamp::ZERO);
}

fn body_of(cache: &Cache, object: &ObjectKey) -> Option<Bytes> {
    let now = Timestamp::from_seconds(2);
    match cache.find(object.borrowed(), NOBODY.as_slice(), now) {
        Found::Object(stored) => match &stored.body {
            Body::Memory(bytes) => Some(bytes.clone()),
            Body::File { .. } => None,
        },
        Found::Passes(_) | Found::Nothing => None,
    }
}

#[test]
fn the_limit_holds_under_churn_of_many_keys_and_forgetting_frees_all() {
    let limit = 8 << 20;
    let cache = Cache::new(limit, 1 << 20, None);
    let empty = cache.bytes().0;
    let site = own("a.example");
    let mut random = levee_vocab::Random::from_seed(7);
    let mut unkept = 0;
    for number in 0..200_000 {
        let size = match random.within(0..100) {
            0 => random.within(0..1 << 20),
            _ => random.within(0..2000),
        };
        let target = format!("/object/{number}");
        let object = stored(vec![b'x'; size as usize]);
        unkept += usize::from(cache.insert(key(&site, &target), object).is_err());
        if number % 64 == 0 {
            assert!(cache.bytes().0 <= limit, "at {number}");
        }
    }
    let (held, _) = cache.bytes();
    assert!(held <= limit && held > limit / 2, "{held}");
    assert_eq!(unkept, 0);
    forget(&cache, &Spaces::Own);
    // What is left are slots and index, which are used again.
    let (left, _) = cache.bytes();
    assert!(left < limit / 5, "{empty} when empty, {left} after");
}

#[test]
fn what_the_cache_says_it_weighs_is_what_its_objects_weigh() {
    let cache = Cache::new(64 << 20, 1 << 20, None);
    let (empty, _) = cache.bytes();
    let site = own("a.example");
    for number in 0..1000 {
        let target = format!("/{number}");
        let object = stored(vec![b'x'; 10_000]);
        cache.insert(key(&site, &target), object).unwrap();
    }
    let per_object = (cache.bytes().0 - empty) / 1000;
    assert!((12_500..14_500).contains(&per_object), "{per_object}");
}

#[test]
fn spaces_with_the_same_path_never_mix() {
    let cache = Cache::new(1 << 20, 1 << 16, None);
    let space = |name: &str, port| Space::Origin(name.parse().unwrap(), port);
    let spaces = [
        own("a.example.org"),
        own("b.example.org"),
        space("a.example.org", 80),
        space("a.example.org", 81),
        space("b.example.org", 80),
    ];
    for space in &spaces {
        let object = stored(space.to_string().into_bytes());
        cache.insert(key(space, "/"), object).unwrap();
    }
    let check = |gone: &[usize]| {
        for (number, space) in spaces.iter().enumerate() {
            let found = body_of(&cache, &object(space, "/"));
            let is_there = !gone.contains(&number);
            let expected = is_there.then(|| Bytes::from(space.to_string()));
            assert_eq!(found, expected);
        }
    };
    forget(&cache, &Spaces::One(spaces[2].clone()));
    check(&[2]);
    let page = Purge::url("/", PurgeKind::Hard).unwrap();
    let purge = |spaces: &Spaces| cache.purge(spaces, &page, Timestamp::ZERO);
    assert_eq!(purge(&Spaces::One(spaces[1].clone())), 1);
    check(&[1, 2]);
    assert_eq!(purge(&Spaces::One(spaces[3].clone())), 1);
    check(&[1, 2, 3]);
    assert_eq!(purge(&Spaces::Own), 1);
    check(&[0, 1, 2, 3]);
}

#[test]
fn one_purge_takes_a_page_away_under_all_names_and_both_schemes() {
    let cache = Cache::new(1 << 20, 1 << 16, None);
    let site = own("a.example");
    let bases = [
        "http://a.example",
        "https://a.example",
        "http://www.a.example:8080",
    ];
    let at = |base: &'static str| ObjectKey {
        base: Bytes::from_static(base.as_bytes()),
        ..object(&site, "/")
    };
    for base in bases {
        let page = stored(base.as_bytes().to_vec());
        cache.insert(CacheKey::plain(at(base)), page).unwrap();
    }
    for base in bases {
        assert_eq!(body_of(&cache, &at(base)).unwrap(), base);
    }
    let page = Purge::url("https://a.example/", PurgeKind::Hard).unwrap();
    assert_eq!(cache.purge(&Spaces::Own, &page, Timestamp::ZERO), 3);
    assert!(
        bases
            .iter()
            .all(|base| body_of(&cache, &at(base)).is_none())
    );
}

#[test]
fn notes_say_what_is_for_one_and_what_varies() {
    let cache = Cache::new(1 << 20, 1 << 16, None);
    let now = Timestamp::from_seconds(2);
    let later = now + Duration::from_secs(10);
    let (site, neighbour) = (own("a.example"), own("b.example"));
    let of = |space: &Space, at| {
        let object = object(space, "/basket");
        cache.find(object.borrowed(), NOBODY.as_slice(), at)
    };
    let find = |at| of(&site, at);
    cache.note_pass(key(&site, "/basket"), later, KeptBy::Nobody);
    assert!(matches!(of(&neighbour, now), Found::Nothing));
    assert!(matches!(find(now), Found::Passes(KeptBy::Nobody)));
    assert!(matches!(find(later), Found::Nothing));
    cache
        .insert(key(&site, "/basket"), stored(b"x".to_vec()))
        .unwrap();
    assert!(matches!(find(now), Found::Object(_)));
    let basket = Purge::url("/basket", PurgeKind::Hard).unwrap();
    cache.purge(&Spaces::Own, &basket, Timestamp::ZERO);
    assert!(matches!(find(now), Found::Nothing));
}

#[test]
fn a_tiny_cache_refuses_what_does_not_fit_and_goes_on() {
    for limit in [0, 100, 1000, 5000] {
        let cache = Cache::new(limit, 1 << 20, None);
        for number in 0..100 {
            let target = format!("/{number}");
            let _ = cache.insert(key(&own("a.example"), &target), stored(vec![0; 500]));
            assert!(cache.bytes().0 <= limit);
        }
    }
}
