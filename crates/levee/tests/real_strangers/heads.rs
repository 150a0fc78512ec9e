//! What an alias says, and what it does not say for the origin.

use crate::own;
use crate::stage::{Helper, Player};

fn origin(target: &str) -> (&'static str, String) {
    let lines = match target {
        "/private" => "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\n",
        "/open" => "Cache-Control: max-age=60\r\nAccess-Control-Allow-Origin: *\r\n",
        _ => {
            "Cache-Control: max-age=60\r\nStrict-Transport-Security: max-age=9; includeSubDomains\r\n\
             Clear-Site-Data: \"cookies\"\r\nService-Worker-Allowed: /\r\nX-Mine: yes\r\n"
        }
    };
    (lines, "a page".to_owned())
}

#[test]
fn an_alias_says_nothing_that_reaches_beyond_it() {
    let (site, origin) = (Player::start(own), Player::start(origin));
    let helper = Helper::start(&site, "");
    let rescue = helper.rescue("www.a.test", &origin).unwrap();
    let own_name = format!("http://www.a.test:{}", origin.port);
    // Fetched, and from the cache.
    for _ in 0..2 {
        let page = helper.get(&rescue.alias, "/page", "");
        assert_eq!((page.status, page.body.as_str()), (200, "a page"));
        let gone = [
            "Strict-Transport-Security",
            "Clear-Site-Data",
            "Service-Worker-Allowed",
        ];
        for name in gone {
            assert_eq!(page.field(name), "", "{name}");
        }
        assert_eq!(page.field("X-Mine"), "yes");
        assert_eq!(page.field("Origin-Agent-Cluster"), "?1");
        assert_eq!(page.field("Access-Control-Allow-Origin"), own_name);
        let open = helper.get(&rescue.alias, "/open", "");
        assert_eq!(open.field("Access-Control-Allow-Origin"), "*");
        let said = open.head.to_ascii_lowercase();
        assert_eq!(said.matches("access-control-allow-origin").count(), 1);
    }
}

#[test]
fn what_outlives_a_rescue_or_asks_for_a_password_is_for_the_origin() {
    let (site, origin) = (Player::start(own), Player::start(origin));
    let helper = Helper::start(&site, "");
    let rescue = helper.rescue("www.a.test", &origin).unwrap();
    let worker = helper.get(&rescue.alias, "/sw.js", "Service-Worker: script\r\n");
    assert_eq!(worker.status, 403);
    let back = helper.get(&rescue.alias, "/private", "");
    assert_eq!((back.status, back.field("WWW-Authenticate")), (302, ""));
    let to = format!("http://www.a.test:{}/private?levee-back=", origin.port);
    assert!(back.field("Location").starts_with(&to), "{}", back.head);
}
