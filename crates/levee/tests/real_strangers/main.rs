//! A rescue server carries strangers' pages under its own names. Here a real browser shows what
//! these pages can do to each other and to the rescue server's own site, and a real server what an
//! operator's limits do.
//!
//! The names are `www.helper.test` for the rescue server's own site, `aliases.test` for its
//! aliases, and `www.a.test` and `www.b.test` for two origins, of which the first means harm.
#![allow(clippy::unwrap_used)]

#[path = "../browser.rs"]
mod browser;
mod heads;
mod limits;
#[path = "../support/program.rs"]
mod program;
mod stage;

use std::collections::BTreeSet;

use stage::{Helper, Player};

const HTML: &str = "Content-Type: text/html\r\nCache-Control: no-store\r\n";

/// The rescue server's own site: a visitor has its cookie, then goes to the page of the first
/// origin, and comes back in the end.
fn own(target: &str) -> (&'static str, String) {
    match target.split('?').next().unwrap() {
        "/begin" => (
            "Content-Type: text/html\r\nSet-Cookie: own=1; Domain=helper.test; Path=/\r\n",
            "<!doctype html><script>location = new URLSearchParams(location.search).get('a') \
             + '/a.html' + location.search</script>"
                .to_owned(),
        ),
        _ => (
            HTML,
            "<!doctype html><body>the helper's own</body>".to_owned(),
        ),
    }
}

/// The origin that means harm. It tries everything, says what came of it, and sends the visitor on
/// to the alias of the other.
fn harmful(target: &str) -> (&'static str, String) {
    match target.split('?').next().unwrap() {
        "/a.html" => (
            "Content-Type: text/html\r\nSet-Cookie: of_host=a\r\n\
             Set-Cookie: of_domain=a; Domain=aliases.test; Path=/\r\n\
             Clear-Site-Data: \"cookies\"\r\n",
            format!("<!doctype html><body><script>{HARM}</script>"),
        ),
        "/sw.js" => ("Content-Type: text/javascript\r\n", String::new()),
        _ => (HTML, String::new()),
    }
}

const HARM: &str = "
    const query = new URLSearchParams(location.search);
    const b = query.get('b'), own = query.get('own'), said = {};
    async function fetched(url) {
        try { return await (await fetch(url, { credentials: 'include' })).text(); }
        catch { return 'refused'; }
    }
    async function framed(url) {
        const frame = document.createElement('iframe');
        frame.src = url;
        const loaded = new Promise(done => frame.onload = done);
        document.body.append(frame);
        await loaded;
        try { return frame.contentWindow.document.body.innerText; } catch { return 'refused'; }
    }
    (async () => {
        said.cookies = document.cookie;
        document.cookie = 'evil=a; domain=helper.test; path=/';
        document.cookie = 'tossed=a; domain=aliases.test; path=/';
        localStorage.secret = 'a';
        try { document.domain = 'aliases.test'; } catch {}
        said.fetched_b = await fetched(b + '/secret.html');
        said.fetched_own = await fetched(own + '/secret.html');
        said.framed_b = await framed(b + '/secret.html');
        said.framed_own = await framed(own + '/secret.html');
        said.worker = await navigator.serviceWorker.register('/sw.js')
            .then(() => 'registered', () => 'refused');
        await fetch('/said?' + encodeURIComponent(JSON.stringify(said)));
        location = b + '/b.html' + location.search;
    })();
";

/// The other origin. Its secret page is an old one that opens itself to its whole domain.
fn harmless(target: &str) -> (&'static str, String) {
    match target.split('?').next().unwrap() {
        "/b.html" => (HTML, format!("<!doctype html><script>{LOOK}</script>")),
        "/secret.html" => (
            "Content-Type: text/html\r\nCache-Control: max-age=60\r\n",
            "<!doctype html><body>secret of b<script>try { document.domain = 'aliases.test'; } \
             catch {}</script></body>"
                .to_owned(),
        ),
        _ => (HTML, String::new()),
    }
}

const LOOK: &str = "
    (async () => {
        const said = { cookies: document.cookie, stored: localStorage.secret ?? 'nothing' };
        await fetch('/said?' + encodeURIComponent(JSON.stringify(said)));
        location = new URLSearchParams(location.search).get('own') + '/end';
    })();
";

/// What a page said of itself.
fn said(player: &Player) -> serde_json::Value {
    let asked = player.asked_for("/said?");
    let text = asked.target.strip_prefix("/said?").unwrap();
    let text = percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

fn cookies(text: &str) -> BTreeSet<&str> {
    text.split("; ")
        .filter(|cookie| !cookie.is_empty())
        .collect()
}

/// What a browser needs for these names: all are this machine, and what only secure pages may do
/// they may too, so that it is we who refuse it.
fn flags(origins: &[String]) -> Vec<String> {
    vec![
        "--host-resolver-rules=MAP * 127.0.0.1".to_owned(),
        format!(
            "--unsafely-treat-insecure-origin-as-secure={}",
            origins.join(",")
        ),
    ]
}

#[test]
fn pages_of_two_aliases_and_of_the_site_itself_stay_apart() {
    let (site, a, b) = (
        Player::start(own),
        Player::start(harmful),
        Player::start(harmless),
    );
    let helper = Helper::start(&site, "");
    let to_a = helper.rescue("www.a.test", &a).unwrap();
    let to_b = helper.rescue("www.b.test", &b).unwrap();
    let url_a = format!("http://{}", to_a.alias);
    let url_b = format!("http://{}", to_b.alias);
    let url_own = format!("http://www.helper.test:{}", helper.port());
    let begin = format!("{url_own}/begin?a={url_a}&b={url_b}&own={url_own}");
    let _browser = browser::open(&begin, &flags(&[url_a, url_b, url_own]));

    site.asked_for("/end");
    // No cookie of the site reaches an alias; a cookie for all aliases is for one alone.
    let a_said = said(&a);
    let seen = a_said["cookies"].as_str().unwrap();
    assert_eq!(cookies(seen), BTreeSet::from(["of_host=a", "of_domain=a"]));
    for tried in [
        "fetched_b",
        "fetched_own",
        "framed_b",
        "framed_own",
        "worker",
    ] {
        assert_eq!(a_said[tried], "refused", "{tried}: {a_said}");
    }
    let b_said = said(&b);
    assert_eq!(b_said["stored"], "nothing");
    // What a script sets for the domain of all aliases reaches them all, unless that domain is on
    // the public suffix list: no header forbids it. Servers never see it.
    let seen = b_said["cookies"].as_str().unwrap();
    assert_eq!(cookies(seen), BTreeSet::from(["tossed=a"]));
    let everything = a.asked().into_iter().chain(b.asked());
    let with_cookie: Vec<_> = everything
        .filter(|asked| !asked.cookie.is_empty())
        .collect();
    assert!(with_cookie.is_empty(), "{with_cookie:#?}");
    // Nor could it touch the site's own, or take it away.
    assert_eq!(site.asked_for("/end").cookie, "own=1");
}

/// An origin whose data, module and font come by redirects to its alias.
fn redirecting(target: &str) -> (&'static str, String) {
    match target.split('?').next().unwrap() {
        "/page.html" => (HTML, format!("<!doctype html><script>{READ}</script>")),
        "/data.json" => ("Cache-Control: max-age=60\r\n", "\"the data\"".to_owned()),
        "/module.js" => (
            "Content-Type: text/javascript\r\nCache-Control: max-age=60\r\n",
            "export default 'the module'".to_owned(),
        ),
        _ => (HTML, String::new()),
    }
}

const READ: &str = "
    (async () => {
        const to = new URLSearchParams(location.search).get('alias'), said = {};
        const read = async () => await (await fetch('/to?' + to + '/data.json')).json();
        said.data = await read().catch(() => 'refused');
        const module = async () => (await import('/to?' + to + '/module.js')).default;
        said.module = await module().catch(() => 'refused');
        await fetch('/said?' + encodeURIComponent(JSON.stringify(said)));
    })();
";

/// The origin's own name, which redirects `/to?URL` to URL as an origin in SOS does.
fn in_sos(target: &str) -> (&'static str, String) {
    match target.strip_prefix("/to?") {
        // The answers are static; two URLs are all that a test has.
        Some(url) => (
            Box::leak(format!("HTTP/1.1 302 Found\r\nLocation: {url}\r\n").into_boxed_str()),
            String::new(),
        ),
        None => redirecting(target),
    }
}

#[test]
fn a_page_reads_its_own_data_and_modules_that_are_redirected() {
    let (site, origin) = (Player::start(own), Player::start(in_sos));
    let helper = Helper::start(&site, "");
    let rescue = helper.rescue("www.a.test", &origin).unwrap();
    let page = format!(
        "http://www.a.test:{}/page.html?alias=http://{}",
        origin.port, rescue.alias
    );
    let _browser = browser::open(&page, &flags(&[]));
    let said = said(&origin);
    assert_eq!(said["data"], "the data", "{said}");
    assert_eq!(said["module"], "the module", "{said}");
}
