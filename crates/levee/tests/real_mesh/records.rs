//! Registries by SRV records from a real BIND: their order, their changes, their absence; and a
//! community whose registries are all gone.

use std::collections::BTreeMap;

use levee::registry_finder::{Found, RegistryPlaces, start};
use levee::serve::small_runtime;
use levee_vocab::Random;
use serde_json::Value;

use crate::own_world::is_inside;
use crate::registries::get;
use crate::town::{DOMAIN, Town};

/// Found by DNS, and the last one by the list of the settings only.
const PORTS: [u16; 4] = [7071, 7072, 7073, 7074];
const COMMUNITY: &str = "registry_domain = \"community.test\"\nregistries = [\"127.0.0.1:7074\"]\n";

#[test]
fn sites_follow_the_records_of_their_registries_and_outlive_all_of_them() {
    if !is_inside("records::sites_follow_the_records_of_their_registries_and_outlive_all_of_them") {
        return;
    }
    let mut town = Town::with_records(&["10 60 7071 a", "10 40 7072 b", "20 0 7073 c"]);
    let registries = town.starts_registries(&PORTS);
    let news = town.starts_site("news.localhost", COMMUNITY);
    news.reaches("all four are known", |status| {
        status["registry"]["all"]
            .as_array()
            .is_some_and(|all| all.len() == 4)
    });
    let known = news.registries();
    assert_eq!(known[2..], ["127.0.0.1:7073", "127.0.0.1:7074"]);
    draws_by_weight();

    town.changes_records(&["delete SRV 10 60 7071 a", "add SRV 5 0 7073 c"]);
    let wanted = ["127.0.0.1:7073", "127.0.0.1:7072", "127.0.0.1:7074"];
    news.reaches("changed records are followed", |_| {
        news.registries() == wanted
    });
    let bob = town.starts_site("bob.localhost", COMMUNITY);
    news.reaches("bob is found", |status| knows(status, "bob.localhost"));
    news.reaches("a registry that is named is asked", |status| {
        status["registry"]["address"] != "127.0.0.1:7071"
    });

    town.named.kill();
    let carol = town.starts_site("carol.localhost", COMMUNITY);
    bob.reaches("who knows the list only is found", |status| {
        knows(status, "carol.localhost")
    });
    // Found as soon as she is registered, and her status is told once in each interval.
    carol.reaches("she knows the registry of the list only", |_| {
        carol.registries() == ["127.0.0.1:7074"]
    });
    news.reaches("that DNS is away is told", |status| {
        let told = status["registry"]["lookup_error"].as_str().unwrap();
        told.contains("_levee-registry._tcp.community.test")
    });
    assert_eq!(news.registries(), wanted, "those that were known stay");

    drop(registries);
    news.reaches("all registries are away, each with its cause", |status| {
        let all = status["registry"]["all"].as_array().unwrap();
        let is_away = |place: &Value| place["state"] == "away" && place["cause"] != "";
        all.len() == 3 && all.iter().all(is_away)
    });
    let page = get(news.admin, "/");
    assert!(page.contains("We go on with the last candidates"), "{page}");
    assert!(page.contains("Looking for registries fails:"), "{page}");
    let admin = news.admin.to_string();
    let told = town.levee(&["drill", "--admin", &admin, "--rate", "5/s", "--time", "1s"]);
    println!("{told}");
    assert!(told.contains("bob.localhost"), "{told}");
}

/// Of many sites as many prefer a registry as its weight says.
fn draws_by_weight() {
    let places = RegistryPlaces {
        list: vec![],
        domain: Some(DOMAIN.parse().unwrap()),
    };
    let mut first: BTreeMap<u16, u32> = BTreeMap::new();
    small_runtime().unwrap().block_on(async {
        for seed in 0..100 {
            let mut known = start(places.clone(), None, Random::from_seed(seed));
            let found = known.wait_for(|found: &Found| found.registries.len() == 3);
            let chosen = found.await.unwrap().registries[0].port();
            *first.entry(chosen).or_default() += 1;
        }
    });
    println!("of 100 sites: {first:?}");
    assert_eq!(first.keys().collect::<Vec<_>>(), [&7071, &7072]);
    assert!((45..75).contains(&first[&7071]), "{first:?}");
}

fn knows(status: &Value, site: &str) -> bool {
    status["candidates"].to_string().contains(site)
}

#[test]
fn whoever_knows_registries_by_dns_only_gets_newer_member_lists_too() {
    if !is_inside("records::whoever_knows_registries_by_dns_only_gets_newer_member_lists_too") {
        return;
    }
    let town = Town::with_records(&["10 0 7071 a"]);
    let told = town.levee(&["community", "init", DOMAIN]);
    let authority = told.split('"').nth(1).unwrap();
    for (name, role) in [("a.community.test", "registry"), ("news.localhost", "site")] {
        let file = format!("{name}/identity.key");
        let key = town.levee(&["community", "identity", &file]);
        town.levee(&["community", "add", name, key.trim(), "--role", role]);
    }
    let words = format!(
        "registry --listen 127.0.0.1:7071 --allow-private --authority {authority} \
         --state a.community.test --members members.list"
    );
    let _registry = town.starts(&words.split(' ').collect::<Vec<_>>());
    let community = format!("registry_domain = \"{DOMAIN}\"\nauthority = \"{authority}\"\n");
    let news = town.starts_site("news.localhost", &community);
    news.reaches("the list has come", |status| status["trust"]["serial"] == 3);
    let key = town.levee(&["community", "identity", "bob/identity.key"]);
    town.levee(&["community", "add", "bob.localhost", key.trim()]);
    news.reaches("the newer list has come", |status| {
        status["trust"]["serial"] == 4
    });
}
