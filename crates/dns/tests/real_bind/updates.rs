//! What our updates do to a zone of BIND, and what BIND says to those it does not take.

use std::net::SocketAddr;
use std::time::Duration;

use levee_dns::{
    Cause, Change, Edit, Expected, Kind, Record, RemoteZone, TsigKey, Value, Zone, ZoneError,
};

use crate::named::{KEY, Named, SECRET, Stage, free_address};

/// A zone with one address for `www`, whose key may change everything.
const ZONE: &str = "$TTL 30\n\
    @ IN SOA ns admin 1 60 30 3600 5\n\
    @ IN NS ns\n\
    ns IN A 127.0.0.1\n\
    www IN A 192.0.2.1\n\
    other IN CNAME www\n";

/// A primary for `site.test` whose `update-policy` grants that.
fn primary(grant: &str) -> Named {
    Named::start_as(&Stage {
        name: "site.test",
        zone: Some(ZONE),
        at: None,
        statement: &format!("type primary; update-policy {{ grant community. {grant}; }};"),
    })
}

fn zone(server: SocketAddr, key: &str) -> RemoteZone {
    let key: TsigKey = key.parse().unwrap();
    RemoteZone::new(server, "site.test".parse().unwrap(), key)
}

fn address(text: &str) -> Value {
    Value::Address(text.parse().unwrap())
}

fn record(name: &str, value: &str) -> Record {
    Record {
        name: name.parse().unwrap(),
        value: address(value),
        ttl: Duration::from_secs(10),
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

fn cause(result: Result<(), ZoneError>) -> Cause {
    result.unwrap_err().cause
}

#[test]
fn addresses_and_texts_enter_and_leave_a_name() {
    let named = primary("zonesub ANY");
    let zone = zone(named.address(), KEY);
    run(async {
        zone.add(record("www.site.test", "192.0.2.2"))
            .await
            .unwrap();
        zone.add(record("www.site.test", "2001:db8::2"))
            .await
            .unwrap();
        assert_eq!(named.dig("www.site.test A"), ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(named.dig("www.site.test AAAA"), ["2001:db8::2"]);
        let name = "www.site.test".parse().unwrap();
        zone.remove(name, address("192.0.2.2")).await.unwrap();
        assert_eq!(named.dig("www.site.test A"), ["192.0.2.1"]);

        let long = "x".repeat(300);
        let name: levee_dns::DomainName = "_acme-challenge.www.site.test".parse().unwrap();
        let texts = vec![Value::Text("one".into()), Value::Text(long)];
        let ttl = Duration::from_secs(1);
        let replaced = zone.replace(name.clone(), Kind::Text, texts.clone(), ttl);
        replaced.await.unwrap();
        let mut read = zone.read(&name, Kind::Text).await.unwrap();
        read.sort();
        assert_eq!(read, texts);
        zone.replace(name.clone(), Kind::Text, vec![], ttl)
            .await
            .unwrap();
        assert_eq!(zone.read(&name, Kind::Text).await.unwrap(), []);
    });
}

#[test]
fn a_change_that_expects_what_is_no_longer_so_changes_nothing() {
    let named = primary("zonesub ANY");
    let zone = zone(named.address(), KEY);
    let expecting = |values: &[&str]| Change {
        expected: vec![Expected {
            name: "www.site.test".parse().unwrap(),
            kind: Kind::A,
            values: values.iter().map(|value| address(value)).collect(),
        }],
        edits: vec![Edit::Add(record("www.site.test", "192.0.2.9"))],
    };
    run(async {
        for wrong in [&["192.0.2.7"][..], &[]] {
            let conflict = cause(zone.change(expecting(wrong)).await);
            assert!(matches!(conflict, Cause::Conflict { .. }), "{conflict:?}");
        }
        assert_eq!(named.dig("www.site.test A"), ["192.0.2.1"]);
        zone.change(expecting(&["192.0.2.1"])).await.unwrap();
        assert_eq!(named.dig("www.site.test A"), ["192.0.2.1", "192.0.2.9"]);
    });
}

#[test]
fn each_refusal_has_its_cause() {
    let named = primary("zonesub ANY");
    let change = |key: &str, zone_name: &str, name: &str| {
        let key: TsigKey = key.parse().unwrap();
        let zone = RemoteZone::new(named.address(), zone_name.parse().unwrap(), key);
        cause(run(zone.add(record(name, "192.0.2.3"))))
    };
    let unknown = format!("nobody.:hmac-sha256:{SECRET}");
    let got = change(&unknown, "site.test", "www.site.test");
    assert!(matches!(got, Cause::BadKey { .. }), "{got:?}");
    let got = change("community.:hmac-sha256:AAAA", "site.test", "www.site.test");
    assert!(matches!(got, Cause::BadSignature { .. }), "{got:?}");
    let got = change(KEY, "other.test", "www.other.test");
    assert!(matches!(got, Cause::NotAuthoritative { .. }), "{got:?}");
    let got = change(KEY, "site.test", "www.other.test");
    assert!(matches!(got, Cause::NotInZone { .. }), "{got:?}");
    let read = run(zone(named.address(), KEY).read(&"other.site.test".parse().unwrap(), Kind::A));
    let got = cause(read.map(|_| ()));
    assert!(matches!(got, Cause::OtherName { .. }), "{got:?}");
    assert_eq!(
        named.dig("www.site.test A"),
        ["192.0.2.1"],
        "nothing was changed"
    );
}

#[test]
fn a_key_without_the_right_is_refused_and_an_absent_server_is_told() {
    let named = primary("name ns.site.test A");
    let zone_at = |server| zone(server, KEY).with_wait(Duration::from_secs(1));
    let add = |zone: RemoteZone| {
        let added = run(zone.add(record("www.site.test", "192.0.2.3")));
        added.unwrap_err()
    };
    let got = add(zone_at(named.address()));
    assert!(matches!(got.cause, Cause::Refused { .. }), "{got}");
    let got = add(zone_at(free_address()));
    assert!(matches!(got.cause, Cause::Unreachable { .. }), "{got}");
    // A listener that never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let got = add(zone_at(silent.local_addr().unwrap()));
    assert!(matches!(got.cause, Cause::TimedOut { .. }), "{got}");
}

#[test]
fn clocks_that_differ_are_named_as_the_cause() {
    let named = primary("zonesub ANY");
    let zone = zone(named.address(), KEY).with_clock(|| 1_000_000_000);
    let got = cause(run(zone.add(record("www.site.test", "192.0.2.3"))));
    assert_eq!(got, Cause::BadTime);
}

#[test]
fn a_server_that_was_killed_knows_what_it_confirmed() {
    let mut named = primary("zonesub ANY");
    let zone = zone(named.address(), KEY);
    run(zone.add(record("www.site.test", "192.0.2.2"))).unwrap();
    named.kill();
    let got = cause(run(zone.add(record("www.site.test", "192.0.2.3"))));
    assert!(matches!(got, Cause::Unreachable { .. }), "{got:?}");
    named.restart();
    assert_eq!(
        named.dig("www.site.test A"),
        ["192.0.2.1", "192.0.2.2"],
        "{}",
        named.log()
    );
}
