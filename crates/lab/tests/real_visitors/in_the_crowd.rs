//! The origin in the middle of a flash crowd, as visitors with programs of their own see it: curl,
//! wrk, and a browser.

use std::process::Command;
use std::time::Duration;

use levee_lab::crowd::client::Failure;
use serde_json::Value;

use crate::browser::{self, Look};
use crate::stage::{Community, ORIGIN, Place, until};

/// Long enough for everything that happens in it, and over soon after.
const CROWD: Duration = Duration::from_secs(16);

/// Connections that two rescue servers may keep for their next fetches. The crowd has more by far.
const KEPT_FOR_FETCHES: u64 = 16;

#[test]
fn curl_and_wrk_in_mid_crowd_do_no_harm_and_take_none() {
    let mut community = Community::start(&ORIGIN);
    let crowd = community.in_mid_crowd(CROWD);
    let origin = &community.origin;
    let post = origin.site.post();
    for path in [&post.path, &origin.site.preview] {
        let expected = origin.site.body(path);
        // A visitor may be among the few whom the origin serves itself.
        let landed = until("a redirected curl", || {
            let fetched = curl(origin, path);
            assert!(fetched.body == *expected, "{path} is not whole");
            assert!(fetched.redirects <= 1, "{path}: {}", fetched.redirects);
            (fetched.redirects == 1).then_some(fetched.landed)
        });
        community.member_of(landed.strip_prefix("http://").unwrap());
    }
    wrk(origin, &post.path);
    until("the end of the crowd", || crowd.is_over().then_some(()));
    // With wrk on top the link is too small even for the redirects, so some visitors are late,
    // refused, or told by a rescue server that its fetch took too long. None gets anything wrong.
    let records = crowd.ledger().records();
    for record in &records {
        match record.result {
            Ok(_) | Err(Failure::Late | Failure::Refused | Failure::NotAsked) => {}
            Err(Failure::Status(504)) => {}
            Err(failure) => panic!("a visitor of the crowd got {failure:?}: {record:?}"),
        }
    }
    let answered = records
        .iter()
        .filter(|record| record.result.is_ok())
        .count();
    assert!(
        answered * 2 > records.len(),
        "{answered} of {}",
        records.len()
    );
    let calm = origin.wait("a normal origin", |status| {
        status["state"] == "normal" && status["rescue_servers"].as_array().unwrap().is_empty()
    });
    let link = &calm["link"];
    assert!(link["peak"].as_u64() <= link["capacity"].as_u64(), "{link}");
    let open = |status: &Value| status["connections"][0].as_u64().unwrap();
    origin.wait("its visitors' connections closed", |status| {
        open(status) <= KEPT_FOR_FETCHES
    });
    assert_eq!(curl(origin, &post.path).redirects, 0);
    assert!(community.is_whole());
}

#[test]
fn a_browser_in_mid_crowd_ends_at_an_alias_with_everything_on_the_page() {
    let community = Community::start(&ORIGIN);
    let (origin, helper) = (&community.origin, &community.members[0]);
    let images: Vec<&str> = (origin.site.objects.keys())
        .filter(|path| path.ends_with(".png"))
        .map(|path| path.trim_start_matches('/'))
        .take(IMAGES)
        .collect();
    origin.publish("look.html", &page_that_looks_at_itself(&images));
    let address = format!("http://{}/look.html", origin.address);
    for member in &community.members {
        member.publish("from-here.html", &page_that_leaves_cookies(&address));
    }
    let _crowd = community.in_lasting_crowd();
    let start = format!("http://{}/from-here.html", helper.address);
    let seen = until("a redirected browser", || {
        let seen = report(&browser::dom(&start, Look::Live));
        let is_at = |place: &Place| seen["host"] == place.address.to_string().as_str();
        (!is_at(origin)).then_some(seen)
    });
    let alias = seen["host"].as_str().unwrap();
    community.member_of(alias);
    let widths = seen["widths"].as_array().unwrap();
    assert_eq!(widths.len(), IMAGES);
    assert!(
        widths.iter().all(|width| width.as_u64() > Some(0)),
        "{seen}"
    );
    let canonical = format!("<{address}>; rel=\"canonical\"");
    assert_eq!(seen["link"], canonical.as_str());
    assert_eq!(seen["robots"], "noindex");
    // The member's own page had its cookie, and nothing of it came to the alias.
    assert!(
        seen["had"].as_str().unwrap().contains("own=secret"),
        "{seen}"
    );
    assert_eq!(seen["cookie"], "", "{seen}");
}

/// Images on the page that a browser looks at.
const IMAGES: usize = 8;

/// A page that writes down where it is, what came with it, and what the browser let it see.
fn page_that_looks_at_itself(images: &[&str]) -> String {
    let images: String = images
        .iter()
        .map(|image| format!("<img src=\"{image}\">"))
        .collect();
    format!(
        "<!doctype html><title>look</title>{images}<pre id=seen></pre><script>
         addEventListener('load', async () => {{
           const head = await fetch(location.pathname, {{ method: 'HEAD' }});
           document.getElementById('seen').textContent = JSON.stringify({{
             host: location.host, had: decodeURIComponent(location.hash),
             widths: [...document.images].map((image) => image.naturalWidth),
             cookie: document.cookie, link: head.headers.get('link'),
             robots: head.headers.get('x-robots-tag') }});
         }});</script>"
    )
}

/// A member's own page: it leaves cookies as widely as a browser allows, and goes on to `next`.
fn page_that_leaves_cookies(next: &str) -> String {
    format!(
        "<!doctype html><title>from here</title><script>
         document.cookie = 'own=secret; path=/';
         document.cookie = 'wide=secret; path=/; domain=localhost';
         location.replace('{next}#' + encodeURIComponent(document.cookie));</script>"
    )
}

/// What the page wrote down.
fn report(dom: &str) -> Value {
    let (_, rest) = dom
        .split_once("<pre id=\"seen\">")
        .unwrap_or_else(|| panic!("{dom}"));
    let text = rest.split("</pre>").next().unwrap();
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {dom}"))
}

struct Fetched {
    body: Vec<u8>,
    redirects: u32,
    /// Where it was in the end.
    landed: String,
}

/// `curl -L`, as a person types it.
fn curl(place: &Place, path: &str) -> Fetched {
    let told = "%{stderr}%{http_code} %{num_redirects} %{url_effective}";
    let output = Command::new("curl")
        .args([
            "--silent",
            "--location",
            "--max-time",
            "20",
            "--write-out",
            told,
        ])
        .arg(format!("http://{}{path}", place.address))
        .output()
        .expect("curl is installed (Debian's package `curl`)");
    let told = String::from_utf8(output.stderr).unwrap();
    let words: Vec<&str> = told.split(' ').collect();
    assert!(output.status.success(), "curl: {}, {told}", output.status);
    assert_eq!(words[0], "200", "{told}");
    Fetched {
        body: output.stdout,
        redirects: words[1].parse().unwrap(),
        landed: words[2].to_owned(),
    }
}

/// Ten connections that ask as fast as they are answered, for five seconds.
fn wrk(place: &Place, path: &str) {
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", "10", "--duration", "5s"])
        .arg(format!("--header=Host: {}", place.address))
        // wrk asks the system for the name, which may not know that it is this machine.
        .arg(format!("http://{}{path}", place.socket()))
        .output()
        .expect("wrk is installed (Debian's package `wrk`)");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("Requests/sec:"), "{told}");
    for line in told.lines().filter(|line| line.contains("Socket errors")) {
        // Connections may be refused or closed for lack of capacity, never broken.
        assert!(line.contains("read 0, write 0"), "{told}");
    }
}
