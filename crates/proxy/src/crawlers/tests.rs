//! What a request shows, and what is concluded from it.

use super::*;

fn rules() -> Arc<CrawlerRules> {
    Arc::new(CrawlerRules {
        names: CrawlerNames::new(&[], &["goodbot".to_owned()]),
        by_behaviour: Behaviour::Watched,
        allowed: vec!["192.0.2.128/25".parse().unwrap()],
        fetches_max: 1,
    })
}

fn traits(address: &str) -> Traits<'static> {
    let address = address.parse().unwrap();
    Traits {
        agent: b"Mozilla/5.0 Firefox/140.0",
        agent_hash: 1,
        address,
        certainty: certainty(address, Relayed::No),
        bytes: 1000,
    }
}

/// The hash of a page.
fn page(number: u64) -> Option<u64> {
    Some(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// What a hundred different pages are taken for in the end.
fn after_a_hundred(rules: &Arc<CrawlerRules>, one: Traits<'static>) -> Visitor {
    let mut crawlers = Crawlers::default();
    let find = |number: u64| {
        let now = Timestamp::from_milliseconds(number);
        crawlers.find(now, rules, &one, || page(number))
    };
    (0..100).map(find).last().unwrap().visitor
}

const BY_BEHAVIOUR: Visitor = Visitor::Crawler(RecognisedBy::Behaviour);

#[test]
fn a_name_is_enough_and_an_allowed_one_excuses_everything() {
    let mut crawlers = Crawlers::default();
    let mut one = traits("192.0.2.1");
    one.agent = b"SomeBot/1.0";
    let found = crawlers.find(Timestamp::ZERO, &rules(), &one, || page(1));
    assert_eq!(found.visitor, Visitor::Crawler(RecognisedBy::Name));
    one.agent = b"GoodBot/1.0";
    assert_eq!(after_a_hundred(&rules(), one), Visitor::Reader);
}

#[test]
fn many_pages_from_one_block_are_a_crawlers_unless_it_is_allowed_or_unknown() {
    assert_eq!(after_a_hundred(&rules(), traits("192.0.2.1")), BY_BEHAVIOUR);
    assert_eq!(
        after_a_hundred(&rules(), traits("192.0.2.200")),
        Visitor::Reader
    );
    assert_eq!(
        after_a_hundred(&rules(), traits("127.0.0.1")),
        Visitor::Reader
    );
    let mut relayed = traits("192.0.2.1");
    relayed.certainty = certainty(relayed.address, Relayed::Yes);
    assert_eq!(after_a_hundred(&rules(), relayed), Visitor::Reader);
    let mut ignored = (*rules()).clone();
    ignored.by_behaviour = Behaviour::Ignored;
    let ignored = Arc::new(ignored);
    assert_eq!(
        after_a_hundred(&ignored, traits("192.0.2.1")),
        Visitor::Reader
    );
}

#[test]
fn what_pages_are_made_of_makes_no_crawler_but_is_a_crawlers_where_it_is_one() {
    let mut crawlers = Crawlers::default();
    let now = Timestamp::from_milliseconds(1);
    let one = traits("192.0.2.1");
    let mut find = |page: Option<u64>| crawlers.find(now, &rules(), &one, || page);
    for _ in 0..1000 {
        assert_eq!(find(None).visitor, Visitor::Reader);
    }
    let before: u64 = (0..60).map(|number| find(page(number)).before).sum();
    assert!((47_000..50_000).contains(&before), "{before}");
    assert_eq!(find(None).visitor, BY_BEHAVIOUR);
    let block = Block::of("192.0.2.77".parse().unwrap());
    let again = |crawlers: &mut Crawlers, block| crawlers.look_again(now, Visitor::Reader, block);
    assert_eq!(again(&mut crawlers, Some(block)), BY_BEHAVIOUR);
    assert_eq!(again(&mut crawlers, None), Visitor::Reader);
    assert_eq!(crawlers.blocks(now), 1);
}
