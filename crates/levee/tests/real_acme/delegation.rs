//! Records for an authority in a zone of two name servers, to which another zone's names lead.

use crate::names::{NameServer, key};
use crate::own_world::{is_inside, run};
use crate::pebble::{Looks, Place};
use crate::site::Site;

/// The zone that we may change; the second name server fetches it.
const OURS: &str = "$TTL 1\n@ IN SOA ns1 admin 1 1 1 3600 1\n@ IN NS ns1\n@ IN NS ns2\n\
    ns1 IN A 127.0.0.1\nns2 IN A 127.0.0.2\n@ IN A 127.0.0.1\n";
/// One that nobody changes.
const THEIRS: &str = "$TTL 1\n@ IN SOA ns admin 1 60 30 3600 1\n@ IN NS ns\nns IN A 127.0.0.1\n\
    @ IN A 127.0.0.1\n_acme-challenge IN CNAME hop\nhop IN CNAME shop.proofs.site.test.\n\
    _acme-challenge.www IN CNAME nowhere\n";

/// BIND with both zones, at port 53 of `host`, `ours` being what stands in its statement of ours.
fn bind(host: [u8; 4], ours: &str) -> NameServer {
    let zones = format!(
        "zone \"site.test\" {{ file \"ours.db\"; notify no; {ours} }};\n\
         zone \"shop.test\" {{ type primary; file \"theirs.db\"; }};\n"
    );
    let mut files = vec![("theirs.db", THEIRS)];
    if ours.contains("primary;") {
        files.push(("ours.db", OURS));
    }
    NameServer::bind_with((host, 53).into(), &files, &zones)
}

#[test]
fn a_name_elsewhere_may_lead_into_our_zone_and_the_authority_waits_for_all_name_servers() {
    let this = "delegation::a_name_elsewhere_may_lead_into_our_zone_and_the_authority_waits_for_\
                all_name_servers";
    if !is_inside(this) {
        return;
    }
    run(&["ip", "address", "add", "127.0.0.2/8", "dev", "lo"]);
    let folder = tempfile::tempdir().unwrap();
    let resolver = folder.path().join("resolv.conf");
    std::fs::write(&resolver, "nameserver 127.0.0.1\n").unwrap();
    run(&[
        "mount",
        "--bind",
        resolver.to_str().unwrap(),
        "/etc/resolv.conf",
    ]);
    let update = "type primary; update-policy { grant site zonesub TXT; };";
    let first = bind([127, 0, 0, 1], update);
    let second = bind([127, 0, 0, 2], "type secondary; primaries { 127.0.0.1; };");

    let place = Place::new();
    let names = "challenge = \"dns-01\"\nnames = [\"shop.test\", \"www.shop.test\"]\n\
                 [dns]\nserver = \"127.0.0.1:53\"\nzone = \"site.test\"\nkey = \"dns.key\"\n";
    let site = Site::new(&place, names);
    std::fs::write(site.path("dns.key"), key("site")).unwrap();
    // The authority asks the slower one, past the names that lead to it.
    let looks = Looks {
        names: Some(53),
        names_host: Some("127.0.0.2"),
        ..Looks::default()
    };
    second.signal("-STOP");
    let _pebble = place.start(&looks);
    let levee = site.start();
    let question = "shop.proofs.site.test TXT";
    while first.dig(question).is_empty() {
        std::thread::yield_now();
    }
    second.signal("-CONT");
    levee.wait_for_status("\"shop.test\",\"state\":\"valid\"");
    while !first.dig(question).is_empty() {
        std::thread::yield_now();
    }
    // The other one leads where nobody may change anything.
    let status = levee.wait_for_status("which leads to nowhere.shop.test");
    assert!(status.contains("have it lead into site.test"), "{status}");
    assert!(
        status.contains("{\"result\":\"issued\",\"count\":1}"),
        "{status}"
    );
}
