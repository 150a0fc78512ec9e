//! Certificates from a real authority (pebble): at the first start, renewed, refused, and gone on
//! with after a kill.
#![allow(clippy::unwrap_used)]

mod advice;
#[path = "../browser.rs"]
mod browser;
mod community;
mod delegation;
mod names;
#[path = "../../../lab/tests/real_faults/own_world.rs"]
mod own_world;
mod pebble;
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/program.rs"]
mod program;
mod records;
mod site;

use std::os::unix::fs::PermissionsExt;

use self::pebble::{EXTERNAL_ID, EXTERNAL_KEY, Looks, Place};
use self::site::Site;

#[test]
fn a_site_without_a_certificate_gets_one_and_speaks_https_without_a_restart() {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"http-01\"\n");
    let levee = site.start();
    // The authority is away: visitors are served by HTTP, and nobody is sent to a port that cannot
    // answer.
    let status = levee.wait_for_status("cannot reach the authority at https://localhost");
    assert!(status.contains("\"missing\""), "{status}");
    assert!(levee.page().contains("cannot reach the authority"));
    assert_eq!(levee.curl_plain("/"), "hello 200 ");
    assert!(levee.openssl(&[]).contains("no peer certificate available"));
    let looks = Looks {
        http: Some(levee.http),
        ..Looks::default()
    };
    let pebble = place.start(&looks);
    assert!(levee.reload().starts_with("reloaded"));
    levee.wait_for_certificate(&place);
    let status = levee.wait_for_status("\"valid\"");
    assert!(status.contains("\"problem\":\"\""), "{status}");
    let sent = format!(" 308 https://site.test:{}/", levee.https);
    assert_eq!(levee.curl_plain("/"), sent);
    // What is kept is nobody else's business.
    let kept = site.path("state/certificates/site.test.pem");
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!site.path("state/certificates/site.test.order").exists());
    // It is there again after a restart, whoever else is not.
    drop((pebble, levee));
    let levee = site.start();
    assert_eq!(levee.curl(&place), "hello");
}

#[test]
fn a_name_can_be_shown_to_be_ours_in_a_handshake() {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"tls-alpn-01\"\n");
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        tls: Some(levee.https),
        ..Looks::default()
    });
    levee.wait_for_certificate(&place);
    // Whoever speaks nothing else, and is nobody's authority, is shown nothing.
    let stranger = levee.openssl(&["-alpn", "acme-tls/1"]);
    assert!(stranger.contains("no peer certificate"), "{stranger}");
    let visitor = levee.openssl(&["-alpn", "acme-tls/1,http/1.1"]);
    assert!(visitor.contains("ALPN protocol: http/1.1"), "{visitor}");
}

#[test]
fn an_authority_that_refuses_every_other_nonce_is_asked_again_at_once() {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"http-01\"\n");
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        refused_nonces: 50,
        ..Looks::default()
    });
    levee.wait_for_certificate(&place);
    let status = levee.wait_for_status("{\"result\":\"issued\",\"count\":1}");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let orders = status["certificates"][0]["orders"].as_array().unwrap();
    // It was not there yet when the site was started.
    let known = ["issued", "unreachable"];
    let told = |order: &serde_json::Value| known.contains(&order["result"].as_str().unwrap());
    assert!(orders.iter().all(told), "{orders:?}");
}

#[test]
fn what_an_authority_refuses_is_told_and_tried_in_another_way() {
    let place = Place::new();
    let site = Site::new(&place, "");
    // Port 80 leads somewhere else.
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        tls: Some(levee.https),
        ..Looks::default()
    });
    let status = levee.wait_for_status("does port 80 of the name lead to this server");
    assert!(status.contains("checked the name by http-01"), "{status}");
    assert!(status.contains("\"cause\":\"check_failed\""), "{status}");
    levee.reload();
    levee.wait_for_certificate(&place);
    levee.wait_for_status("\"cause\":\"\"");
    let metrics = levee.metrics();
    for result in ["check_failed", "issued"] {
        let line = format!("_orders_total{{name=\"site.test\",result=\"{result}\"}} 1\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}

#[test]
fn an_authority_that_knows_its_clients_is_shown_the_account() {
    let place = Place::new();
    let account = format!("eab_id = \"{EXTERNAL_ID}\"\neab_key = \"{EXTERNAL_KEY}\"\n");
    let site = Site::new(&place, &account);
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        external: true,
        ..Looks::default()
    });
    levee.wait_for_certificate(&place);
}

#[test]
fn a_server_that_is_killed_between_order_and_certificate_goes_on_with_the_order() {
    // An authority that looks while nobody is there has refused the order for good.
    let gone_on = (0..5).any(|_| goes_on_after_a_kill());
    assert!(
        gone_on,
        "the authority looked in the wrong moment five times"
    );
}

/// False where the authority looked while the server was dead.
fn goes_on_after_a_kill() -> bool {
    let place = Place::new();
    let site = Site::new(&place, "challenge = \"http-01\"\n");
    let (mut levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        waits: Some(3),
        ..Looks::default()
    });
    let order = site.path("state/certificates/site.test.order");
    let placed = loop {
        let text = std::fs::read_to_string(&order).unwrap_or_default();
        // The authority has been told to look.
        if text.contains("/my-order/") && place.log().contains("POST /chalZ/") {
            break text;
        }
    };
    levee.kill();
    let levee = site.restart(&levee);
    levee.wait_for_certificate(&place);
    if place.log().contains("set INVALID") {
        return false;
    }
    let kept = std::fs::read_to_string(site.path("state/certificates/site.test.pem")).unwrap();
    let key = kept.lines().nth(1).unwrap();
    assert!(placed.contains(key), "it is for another key: {placed}");
    true
}

#[test]
fn an_order_that_cannot_be_written_down_is_not_placed() {
    let place = Place::new();
    let site = Site::new(&place, "");
    // Where the order is written before it is renamed.
    let in_the_way = site.path("state/certificates/site.test.order.new");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let (levee, _pebble) = site.start_before(&place, |levee| Looks {
        http: Some(levee.http),
        ..Looks::default()
    });
    levee.wait_for_status("site.test.order: Is a directory");
    assert!(!place.log().contains("order-plz"), "{}", place.log());
    std::fs::remove_dir(&in_the_way).unwrap();
    levee.reload();
    levee.wait_for_certificate(&place);
}
