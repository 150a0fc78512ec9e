//! Helping is safe for both sides: who is redirected and who never is, what an alias answers, and
//! what names lead to whom.

use std::thread;
use std::time::Duration;

use crate::http::{self, Answer};
use crate::stage::{Community, Draft, ORIGIN, until};

#[test]
fn only_what_a_rescue_server_may_answer_is_redirected() {
    // A wider line than in the other tests: there must be room for those who cannot be redirected.
    let wide = Draft {
        link: "200 kB/s",
        ..ORIGIN
    };
    let community = Community::start(&wide);
    let _crowd = community.in_lasting_crowd();
    let origin = &community.origin;
    let host = origin.address.to_string();
    let target = format!("{}?a=1&b=%20", origin.site.post().path);
    let get = |lines: &str| http::get(origin.socket(), &host, &target, lines);

    let redirect = until("a redirect", || {
        Some(get("")).filter(|answer| answer.status == 302)
    });
    let alias = redirect.leads_to().to_owned();
    community.member_of(&alias);
    assert_eq!(
        redirect.header("location"),
        format!("http://{alias}{target}")
    );
    assert_eq!(redirect.header("cache-control"), "no-store");
    assert!(redirect.body.is_empty());

    // All at once, because each may have to wait until the link has room for it.
    let answers: Vec<(&str, Answer)> = thread::scope(|scope| {
        let asking: Vec<_> = NEVER_REDIRECTED
            .iter()
            .flat_map(|lines| [lines; 3])
            .map(|lines| scope.spawn(|| (*lines, get(lines))))
            .collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (lines, answer) in &answers {
        assert!([200, 503].contains(&answer.status), "{lines}: {answer:?}");
    }
    for lines in NEVER_REDIRECTED {
        let mut served = answers.iter().filter(|(asked, _)| asked == lines);
        assert!(served.any(|(_, answer)| answer.status == 200), "{lines}");
    }
}

/// Headers that say that the origin itself is wanted.
const NEVER_REDIRECTED: &[&str] = &[
    "Authorization: Basic eDp5\r\n",
    "Cookie: session=1\r\n",
    "Cache-Control: no-cache\r\n",
    "Pragma: no-cache\r\n",
];

#[test]
fn an_alias_serves_reads_sends_writes_home_and_leads_back_when_it_is_over() {
    let community = Community::start(&ORIGIN);
    let crowd = community.in_mid_crowd(Duration::from_secs(4));
    let origin = &community.origin;
    let status = origin.status();
    let alias = status["rescue_servers"][0]["alias"].as_str().unwrap();
    let helper = community.member_of(alias);
    let alias = format!(
        "{}:{}",
        alias.split(':').next().unwrap(),
        helper.address.port
    );
    let post = &origin.site.post().path;
    let target = format!("{post}?q=1");

    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {alias}\r\nContent-Length: 3\r\n");
        let answer = http::ask(helper.socket(), &head, b"a=1");
        assert_eq!(answer.status, 307, "{method}");
        let home = format!("http://{}{target}", origin.address);
        assert_eq!(answer.header("location"), home, "{method}");
    }
    let answer = http::get(
        helper.socket(),
        &alias,
        post,
        "Authorization: Basic eDp5\r\n",
    );
    assert_eq!(answer.status, 307, "the origin knows whom it lets in");

    let page = until("the page under the alias", || {
        Some(http::get(helper.socket(), &alias, post, "")).filter(|page| page.status == 200)
    });
    assert!(page.body == *origin.site.body(post));
    let canonical = format!("<http://{}{post}>; rel=\"canonical\"", origin.address);
    assert_eq!(page.header("link"), canonical);
    assert_eq!(page.header("x-robots-tag"), "noindex");
    // Under its own name the page is at home, whoever serves it.
    let host = origin.address.to_string();
    let page = http::get(helper.socket(), &host, post, "");
    assert!(page.body == *origin.site.body(post));
    assert_eq!((page.header("link"), page.header("x-robots-tag")), ("", ""));

    until("the end of the crowd", || crowd.is_over().then_some(()));
    // Not by asking for pages meanwhile: a rescue goes on while its rescue servers carry much.
    origin.wait("a site at rest", |status| status["state"] == "normal");
    let way_back = until("an alias that leads back", || {
        Some(http::get(helper.socket(), &alias, &target, "")).filter(|page| page.status == 302)
    });
    assert_eq!(way_back.leads_to(), origin.address.to_string());
    let there = http::get(origin.socket(), way_back.leads_to(), &target, "");
    assert_eq!(there.status, 200, "no way leads in a circle");
}

#[test]
fn strange_names_get_the_site_or_421_as_the_operator_wants() {
    let refusing = Draft {
        site: "unknown_host = \"refuse\"",
        ..ORIGIN
    };
    let community = Community::start(&refusing);
    let strange = "stranger.example";
    let (origin, serving) = (&community.origin, &community.members[0]);
    assert_eq!(http::get(origin.socket(), strange, "/", "").status, 421);
    let own = origin.address.to_string();
    assert_eq!(
        http::get(origin.socket(), &own, "/index.html", "").status,
        200
    );
    let page = http::get(serving.socket(), strange, "/index.html", "");
    assert_eq!(page.status, 200);
    let own = serving.address.to_string();
    let same = http::get(serving.socket(), &own, "/index.html", "");
    assert_eq!(page.body, same.body);
}
