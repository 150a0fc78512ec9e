//! Our own name server, asked by dig, changed by nsupdate, and copied by a BIND that outlives it.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use levee_dns::{
    Cause, Grant, Kind, OwnZone, OwnZoneSettings, Record, RemoteZone, TsigKey, Value, Zone,
};
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Runtime;

use crate::named::{KEY, Named, SECRET, Stage, dig, dig_with, free_address};

const ZONE: &str = "$TTL 30\n\
    @ IN SOA ns admin 1 60 1 3600 5\n\
    @ IN NS ns\n\
    ns IN A 127.0.0.1\n\
    www IN A 192.0.2.1\n\
    www IN A 192.0.2.2\n\
    *.vh IN A 192.0.2.5\n";

/// A server of ours; it ends with its runtime.
struct Server {
    runtime: Runtime,
    zone: OwnZone,
    address: SocketAddr,
}

impl Server {
    fn start(secondaries: Vec<SocketAddr>) -> Self {
        let key: TsigKey = KEY.parse().unwrap();
        let member: TsigKey = format!("member.:hmac-sha512:{SECRET}").parse().unwrap();
        let grant = |key, scope: &str| Grant {
            key,
            scope: scope.parse().unwrap(),
        };
        let zone = OwnZone::new(OwnZoneSettings {
            zone: "site.test".parse().unwrap(),
            file: ZONE.into(),
            memory: None,
            grants: vec![grant(key, "site.test"), grant(member, "member.site.test")],
            secondaries,
            seed: 1,
        });
        let zone = zone.unwrap();
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(async {
            let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = tcp.local_addr().unwrap();
            let udp = UdpSocket::bind(address).await.unwrap();
            zone.serve(udp, tcp);
            address
        });
        Self {
            runtime,
            zone,
            address,
        }
    }

    fn dig(&self, arguments: &str) -> Vec<String> {
        dig(self.address, arguments)
    }

    /// What `nsupdate` says to these lines, signed by that key.
    fn nsupdate(&self, key: &str, lines: &str) -> String {
        let mut process = Command::new("nsupdate")
            .args(["-y", key])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (ip, port) = (self.address.ip(), self.address.port());
        let text = format!("server {ip} {port}\nzone site.test\n{lines}\nsend\n");
        let mut input = process.stdin.take().unwrap();
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        let output = process.wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn dig_gets_answers_denials_and_refusals() {
    let server = Server::start(vec![]);
    for carrier in ["", "+tcp", "+noedns"] {
        let asked = server.dig(&format!("{carrier} www.site.test A"));
        assert_eq!(asked, ["192.0.2.1", "192.0.2.2"], "{carrier}");
    }
    assert_eq!(server.dig("www-vh7.vh.site.test A"), ["192.0.2.5"]);
    assert_eq!(server.dig("site.test NS"), ["ns.site.test."]);
    let nobody = dig_with(server.address, "nobody.site.test A");
    assert!(nobody.contains("status: NXDOMAIN"), "{nobody}");
    assert!(
        nobody.contains("AUTHORITY: 1") && nobody.contains("SOA"),
        "{nobody}"
    );
    let elsewhere = dig_with(server.address, "example.org A");
    assert!(elsewhere.contains("status: REFUSED"), "{elsewhere}");
    assert!(!elsewhere.contains(" ra;"), "{elsewhere}");
    let all = dig_with(server.address, "site.test AXFR");
    assert!(all.contains("Transfer failed"), "{all}");
    let key = format!("-y hmac-sha256:community:{SECRET}");
    let all = dig_with(server.address, &format!("{key} site.test AXFR"));
    assert!(
        all.contains("*.vh.site.test.") && !all.contains("; Couldn't verify"),
        "{all}"
    );
}

#[test]
fn nsupdate_changes_what_its_key_may_change() {
    let server = Server::start(vec![]);
    let key = format!("hmac-sha256:community:{SECRET}");
    let said = server.nsupdate(&key, "update add www.site.test 5 A 192.0.2.9");
    assert_eq!(said, "");
    assert_eq!(server.dig("www.site.test A").len(), 3);
    let said = server.nsupdate(&key, "update delete www.site.test A 192.0.2.9");
    assert_eq!(said, "");
    let said = server.nsupdate(
        &key,
        "prereq yxdomain x.site.test\nupdate add x.site.test 5 A 192.0.2.9",
    );
    assert!(said.contains("NXDOMAIN"), "{said}");
    let said = server.nsupdate(&key, "update delete www.site.test A 192.0.2.1");
    assert!(said.contains("REFUSED"), "the zone file's: {said}");
    assert_eq!(server.dig("www.site.test A"), ["192.0.2.1", "192.0.2.2"]);

    let member = format!("hmac-sha512:member:{SECRET}");
    let said = server.nsupdate(&member, "update add www-vh1.member.site.test 5 A 192.0.2.7");
    assert_eq!(said, "");
    assert_eq!(server.dig("www-vh1.member.site.test A"), ["192.0.2.7"]);
    let said = server.nsupdate(&member, "update add www.site.test 5 A 192.0.2.7");
    assert!(said.contains("REFUSED"), "another's: {said}");

    for (wrong, told) in [
        (format!("hmac-sha256:nobody:{SECRET}"), "BADKEY"),
        ("hmac-sha256:community:AAAA".to_owned(), "BADSIG"),
    ] {
        let said = server.nsupdate(&wrong, "update add y.site.test 5 A 192.0.2.7");
        assert!(said.contains(told), "{said}");
    }
    assert_eq!(server.dig("y.site.test A"), [""; 0]);
    assert_eq!(server.zone.counts().updates, 3);
}

#[test]
fn our_client_and_our_server_understand_each_other() {
    let server = Server::start(vec![]);
    let at = |key: &str| {
        let key: TsigKey = key.parse().unwrap();
        RemoteZone::new(server.address, "site.test".parse().unwrap(), key)
    };
    let record = Record {
        name: "www.site.test".parse().unwrap(),
        value: Value::Address("192.0.2.9".parse().unwrap()),
        ttl: Duration::from_secs(5),
    };
    server.runtime.block_on(async {
        at(KEY).add(record.clone()).await.unwrap();
        let read = at(KEY).read(&record.name, Kind::A).await.unwrap();
        assert_eq!(read.len(), 3);
        let unknown = at(&format!("x.:hmac-sha256:{SECRET}"))
            .add(record.clone())
            .await;
        let cause = unknown.unwrap_err().cause;
        assert!(matches!(cause, Cause::BadKey { .. }), "{cause}");
        let late = at(KEY)
            .with_clock(|| 1_000_000_000)
            .add(record.clone())
            .await;
        assert_eq!(late.unwrap_err().cause, Cause::BadTime);
    });
}

#[test]
fn a_secondary_learns_of_changes_at_once_and_answers_when_we_are_dead() {
    let at = free_address();
    let server = Server::start(vec![at]);
    let port = server.address.port();
    let secondary = Named::start_as(&Stage {
        name: "site.test",
        zone: None,
        at: Some(at),
        statement: &format!(
            "type secondary; primaries {{ 127.0.0.1 port {port} key \"community.\"; }};"
        ),
    });
    assert_eq!(secondary.dig("www.site.test A").len(), 2);
    let record = Record {
        name: "www.site.test".parse().unwrap(),
        value: Value::Address("192.0.2.9".parse().unwrap()),
        ttl: Duration::from_secs(5),
    };
    server.runtime.block_on(server.zone.add(record)).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while secondary.dig("www.site.test A").len() < 3 {
        assert!(Instant::now() < end, "not told: {}", secondary.log());
        std::thread::yield_now();
    }
    drop(server);
    assert_eq!(secondary.dig("www.site.test A").len(), 3);
    assert_eq!(secondary.dig("www-vh1.vh.site.test A"), ["192.0.2.5"]);
}
