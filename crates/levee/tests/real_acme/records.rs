//! Names that are shown to be ours by a record in DNS: BIND's, and that of our own name server.

use crate::names::{NameServer, key};
use crate::pebble::{Looks, Place};
use crate::ports::free_address;
use crate::site::Site;

/// What stands in the settings of a site whose zone BIND keeps.
fn by_bind(site: &Site, server: std::net::SocketAddr) -> String {
    std::fs::write(site.path("dns.key"), key("site")).unwrap();
    let path = site.path("levee.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let dns = format!("[dns]\nserver = \"{server}\"\nzone = \"site.test\"\nkey = \"dns.key\"\n");
    let text = format!("{text}{dns}");
    std::fs::write(path, &text).unwrap();
    text
}

#[test]
fn a_record_that_a_killed_server_left_in_dns_shows_that_the_name_is_ours_and_goes_afterwards() {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"dns-01\"\n");
    let server = free_address();
    by_bind(&site, server);
    // The authority looks after some seconds.
    let looks = Looks {
        waits: Some(6),
        names: Some(server.port()),
        ..Looks::default()
    };
    let _pebble = place.start(&looks);
    let mut levee = site.start();
    // The name server is away.
    let status = levee.wait_for_status("cannot be reached by TCP");
    assert!(
        status.contains("cannot put the TXT record _acme-challenge.site.test into DNS"),
        "{status}"
    );
    let bind = NameServer::bind(server, free_address());
    levee.reload();
    let question = "_acme-challenge.site.test TXT";
    let shown = loop {
        let shown = bind.dig(question);
        if !shown.is_empty() && place.log().contains("POST /chalZ/") {
            break shown;
        }
    };
    levee.kill();
    assert_eq!(bind.dig(question), shown, "nobody took it out");
    let kept = site.path("state/certificates/records-in-dns.json");
    let written = std::fs::read_to_string(&kept).unwrap();
    assert!(written.contains(shown.trim_matches('"')), "{written}");
    let levee = site.restart(&levee);
    levee.wait_for_certificate(&place);
    bind.wait_for_no_record("site.test");
    levee.wait_for_status("\"problem\":\"\"");
}

#[test]
fn a_server_that_is_stopped_in_the_middle_of_an_order_takes_its_record_out_of_dns() {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"dns-01\"\n");
    let bind = NameServer::bind(free_address(), free_address());
    by_bind(&site, bind.address);
    // The authority looks when nobody is there any more.
    let looks = Looks {
        waits: Some(200),
        names: Some(bind.address.port()),
        ..Looks::default()
    };
    let _pebble = place.start(&looks);
    let mut levee = site.start();
    let question = "_acme-challenge.site.test TXT";
    while bind.dig(question).is_empty() || !place.log().contains("POST /chalZ/") {
        std::thread::yield_now();
    }
    levee.stop();
    assert_eq!(bind.dig(question), "");
    let kept = site.path("state/certificates/records-in-dns.json");
    assert_eq!(std::fs::read_to_string(kept).unwrap().trim(), "[]");
    let order = site.path("state/certificates/site.test.order");
    assert!(
        order.exists(),
        "the order is gone on with at the next start"
    );
}

#[test]
fn a_wildcard_is_shown_to_be_ours_by_a_record_in_our_own_zone() {
    let place = Place::new();
    let names = free_address().port();
    let zone = "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\n\
                ns IN A 127.0.0.1\n@ IN A 127.0.0.1\n";
    let dns = format!(
        "names = [\"site.test\", \"*.site.test\"]\n\
         [dns]\nlisten = \"127.0.0.1:{names}\"\nzone = \"site.test\"\nzone_file = \"zone\"\n"
    );
    let site = Site::new(&place, &dns);
    std::fs::write(site.path("zone"), zone).unwrap();
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        names: Some(names),
        ..Looks::default()
    });
    levee.wait_for_certificate(&place);
    levee.wait_for_status("\"*.site.test\",\"state\":\"valid\"");
    let root = place.root_file();
    let below = [
        "-servername",
        "www.site.test",
        "-verify_hostname",
        "www.site.test",
    ];
    let how = ["-CAfile", root.to_str().unwrap(), "-verify_return_error"];
    let shown = levee.openssl(&[&below[..], &how].concat());
    assert!(shown.contains("Verify return code: 0 (ok)"), "{shown}");
}
