//! Every face of a sample status against its golden file, and against hostile names.
//!
//! `UPDATE_GOLDEN=1 cargo test -p levee-observe` rewrites the files; then read the diff.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use levee_observe::{
    Audience, CertificateTrouble, DASHBOARD_HTML, Decision, HotUrl, Kind, Level, MeshStatus, Peer,
    PeerStatus, RegisteredSite, Status, TlsStatus, TrustStatus, UpstreamStatus, asset, metrics,
    metrics_reference, render_auto, render_auto_page, render_metrics, render_page,
    render_registry_metrics, render_registry_page, render_status_text, render_top,
};

fn sample(name: &str) -> Status {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sample")
        .join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Compares `text` with the file at `path`, from the folder of this crate.
fn golden(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    assert_eq!(
        text,
        expected,
        "{} differs; UPDATE_GOLDEN=1 rewrites it",
        path.display()
    );
}

/// Texts that an attacker would like to see taken for something else.
fn hostile() -> Status {
    let evil = "<script>alert(1)</script>\"'&\u{202e}\x1b[2J\r\nlevee_forged 1\\";
    let peer = Peer {
        site: evil.into(),
        alias: evil.into(),
        phase: evil.into(),
        ..Peer::default()
    };
    let mut status = sample("sos.json");
    status.site = evil.into();
    status.version = evil.into();
    status.rescue_servers = vec![peer.clone(), peer.clone()];
    status.origins = vec![peer];
    status.candidates = vec![(evil.into(), 1)];
    status.certificate_troubles = vec![CertificateTrouble {
        file: evil.into(),
        problem: evil.into(),
        in_force_until: Some(0.0),
    }];
    status.registry.address = evil.into();
    status.registry.connected = false;
    status.registry.last_error = evil.into();
    status.registry.refusal = evil.into();
    status.hot = vec![HotUrl {
        url: evil.into(),
        rate: f64::NAN,
        heat: evil.into(),
        holders: vec![evil.into()],
    }];
    status.decisions = vec![Decision {
        at: -5.0,
        text: evil.into(),
    }];
    status.upstreams = vec![UpstreamStatus {
        name: evil.into(),
        ..UpstreamStatus::default()
    }];
    status.levels = vec![Level {
        resource: evil.into(),
        level: f64::INFINITY,
    }];
    status
}

#[test]
fn each_face_of_a_site_in_sos_is_as_written() {
    let status = sample("sos.json");
    golden("tests/golden/sos_page.html", &render_page(&status));
    golden("tests/golden/sos_metrics.txt", &render_metrics(&status));
    golden("tests/golden/sos_auto.txt", &render_auto(&status));
    golden("tests/golden/sos_auto.html", &render_auto_page(&status));
    golden("tests/golden/sos_status.txt", &render_status_text(&status));
    golden("tests/golden/sos_top.txt", &render_top(&status, 80));
}

#[test]
fn each_face_of_a_site_that_rescues_is_as_written() {
    let status = sample("rescue.json");
    golden("tests/golden/rescue_page.html", &render_page(&status));
    golden(
        "tests/golden/rescue_status.txt",
        &render_status_text(&status),
    );
}

#[test]
fn what_last_visitors_of_a_rescue_get_is_told_without_a_rate() {
    let mut status = sample("rescue.json");
    let ending = &mut status.origins[0];
    (ending.used, ending.rate, ending.phase) = (313_000, 0, "ending".into());
    let text = render_status_text(&status);
    assert!(text.contains(": 313.0 kB/s (ending)\n"), "{text}");
}

#[test]
fn a_registry_that_answers_and_does_not_list_the_site_is_told() {
    let mut status = sample("rescue.json");
    status.registry.connected = true;
    status.registry.refusal = "409 Taken".into();
    assert!(render_status_text(&status).contains("does not list this site: 409 Taken\n"));
    assert!(render_page(&status).contains("list this site:</strong> <q>409 Taken</q>"));
    assert!(render_metrics(&status).contains("\nlevee_registry_refuses 1\n"));
}

#[test]
fn a_site_that_is_overrun_does_not_say_that_it_carries_its_visitors() {
    let mut status = sample("rescue.json");
    status.state = "normal".into();
    status.rates.out = status.link.usable;
    let text = render_status_text(&status);
    assert!(
        text.contains("The link of this site is full (100 %)"),
        "{text}"
    );
    assert!(text.contains("It has not called for help yet."), "{text}");
    for (state, resting, tried) in [
        (
            "asking",
            0,
            "It asks for help now; nobody has answered yet.",
        ),
        (
            "nobody_left",
            0,
            "It calls for help, but nobody is left to ask: no other",
        ),
        (
            "nobody_left",
            1,
            "the only member that it could ask did not help, or",
        ),
        (
            "nobody_left",
            3,
            "the 3 members that it could ask did not help, or",
        ),
    ] {
        status.call.state = state.into();
        status.call.resting = resting;
        for face in [render_status_text(&status), render_page(&status)] {
            assert!(face.contains(tried), "{face}");
            assert!(!face.contains("not called for help yet"), "{face}");
        }
    }
    status.trust = Some(TrustStatus {
        state: "out".into(),
        cause: "We are no member: b.example was expelled: it lied".into(),
        ..TrustStatus::default()
    });
    let text = render_status_text(&status);
    assert!(text.contains("It is no member of its community"), "{text}");
    status.registry.address.clear();
    let text = render_status_text(&status);
    assert!(
        text.contains("It is in no community that could help."),
        "{text}"
    );
}

#[test]
fn a_certificate_that_is_no_good_is_named_with_the_one_that_stays() {
    let mut status = sample("rescue.json");
    status.now = 1_000_000.0;
    status.certificate_troubles = vec![CertificateTrouble {
        file: "/etc/a.pem".into(),
        problem: "the certificate in /etc/a.pem expired on Monday; renew it".into(),
        in_force_until: None,
    }];
    let faces = |status: &Status| {
        let (text, top) = (render_status_text(status), render_top(status, 200));
        [text, top, render_page(status)]
    };
    let expired = "The certificate in /etc/a.pem expired on Monday; renew it.";
    for face in faces(&status) {
        assert!(face.contains(expired), "{face}");
        assert!(!face.contains("not taken"), "{face}");
    }
    for (until, stays) in [
        (1_086_400.0, "is valid until 1970-01-13T13:46:40Z."),
        (0.0, "was valid until 1970-01-01T00:00:00Z."),
    ] {
        status.certificate_troubles[0].in_force_until = Some(until);
        let stays = format!("{expired} It was not taken: the one in force stays, it {stays}");
        for face in faces(&status) {
            assert!(face.contains(&stays), "{face}");
        }
    }
}

#[test]
fn the_status_says_who_could_be_asked() {
    let mut status = Status::default();
    assert!(!render_status_text(&status).contains("asked for help"));
    status.registry.address = "127.0.0.1:7070".to_owned();
    status.registry.connected = true;
    let nobody = "Nobody could be asked for help: no other member is known that has room.\n";
    assert!(render_status_text(&status).contains(nobody));
    assert!(render_page(&status).contains(nobody.trim_end()));
    status.rescue_servers = vec![Peer {
        phase: "live".into(),
        ..Peer::default()
    }];
    let all_help = "Everybody who could be asked for help helps already.";
    assert!(render_status_text(&status).contains(all_help));
    assert!(render_page(&status).contains(all_help));
    status.trust = Some(TrustStatus {
        state: "out".into(),
        cause: "We are no member: b.example was expelled: it lied".into(),
        ..TrustStatus::default()
    });
    let excluded = "Nobody could be asked for help. We are no member: b.example was expelled: it \
                    lied.";
    assert!(render_status_text(&status).contains(excluded));
    assert!(render_page(&status).contains(excluded));
    status.trust = None;
    status.rescue_servers.clear();
    status.candidates = vec![
        ("b.example".to_owned(), 400_000),
        ("c.example".to_owned(), 9_000),
    ];
    let both = "Could be asked for help: b.example (400.0 kB/s), c.example (9.0 kB/s).\n";
    assert!(render_status_text(&status).contains(both), "{status:?}");
    // Whether by HTTPS matters where there are visitors by it, and is not known of older ones.
    status.candidates_https = [("b.example".to_owned(), true)].into();
    assert!(render_status_text(&status).contains(both), "{status:?}");
    status.tls = Some(TlsStatus::default());
    let one = "Could be asked for help: b.example (400.0 kB/s, HTTPS), c.example (9.0 kB/s).\n";
    assert!(render_status_text(&status).contains(one), "{status:?}");
    status
        .candidates_https
        .insert("c.example".to_owned(), false);
    let both = "b.example (400.0 kB/s, HTTPS), c.example (9.0 kB/s, no HTTPS).\n";
    assert!(render_status_text(&status).contains(both), "{status:?}");
    let page = render_page(&status);
    assert!(page.contains("(9.0 kB/s, no HTTPS)"), "{page}");
    status.candidates.resize(7, ("d.example".to_owned(), 1));
    assert!(render_status_text(&status).contains(" and 2 more.\n"));
}

/// They are kept for days, and nobody is helped under them.
#[test]
fn aliases_that_are_kept_for_late_visitors_are_told_apart_and_shortly() {
    let mut status = sample("rescue.json");
    let told = |status: &Status| {
        let (text, top) = (render_status_text(status), render_top(status, 120));
        [text, top, render_page(status)]
    };
    for face in told(&status) {
        assert!(!face.contains("Helping blog.example"), "{face}");
        let kept = "1 alias of an ended rescue leads late visitors back: \
                    www-vh2.big.localhost:8081 to blog.example.";
        assert!(face.contains(kept), "{face}");
    }
    let one = status.kept_aliases[0].clone();
    status.kept_aliases = vec![one; 40];
    for face in told(&status) {
        let kept = "40 aliases of ended rescues lead late visitors back: \
                    www-vh2.big.localhost:8081 to blog.example, and 39 more.";
        assert!(face.contains(kept), "{face}");
    }
    status.kept_aliases.clear();
    assert!(
        told(&status)
            .iter()
            .all(|face| !face.contains("late visitors"))
    );
}

#[test]
fn the_status_is_the_same_after_its_json() {
    let status = sample("sos.json");
    let json = status.to_json();
    assert!(json.contains("\"sentence\":\"This site is being rescued by 2 servers"));
    assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), status);
    let older = serde_json::from_str::<Status>("{\"site\":\"a\"}").unwrap();
    assert_eq!(older.site, "a");
}

#[test]
fn hostile_names_never_become_markup() {
    let status = hostile();
    for page in [render_page(&status), render_auto_page(&status)] {
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains("\x1b"));
        assert!(!page.contains('\u{202e}'));
        assert!(page.contains("&lt;script&gt;"));
    }
}

#[test]
fn hostile_names_never_forge_a_line() {
    let status = hostile();
    for text in [render_metrics(&status), render_auto(&status)] {
        let forged = |line: &&str| line.starts_with("levee_forged");
        assert_eq!(text.lines().filter(forged).count(), 0, "{text}");
        assert!(!text.contains('\x1b') && !text.contains('\r'));
    }
    let auto = render_auto(&status);
    assert!(auto.lines().all(|line| line.contains(": ")), "{auto}");
    let plain = render_status_text(&status);
    assert!(
        !plain.chars().any(|c| c.is_control() && c != '\n'),
        "{plain}"
    );
    // Of the screen's own sequences each is a colour, or clears the rest of a line or the screen.
    for sequence in render_top(&status, 80).split('\x1b').skip(1) {
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        assert!(
            matches!(&sequence[end..=end], "m" | "K" | "J"),
            "{sequence}"
        );
    }
    assert!(serde_json::from_str::<Status>(&status.to_json()).is_ok());
}

#[test]
fn a_terminal_screen_keeps_to_its_width() {
    for width in [40, 80, 200] {
        for line in render_top(&hostile(), width).lines() {
            let mut seen = 0;
            let mut sequence = false;
            for letter in line.chars() {
                sequence |= letter == '\x1b';
                seen += usize::from(!sequence);
                sequence &= !letter.is_ascii_alphabetic();
            }
            assert!(seen <= width, "{seen} columns: {line}");
        }
    }
}

#[test]
fn metric_names_say_thing_and_unit() {
    let mut names = std::collections::BTreeSet::new();
    for metric in metrics() {
        let name = metric.name;
        assert!(names.insert(name), "{name} stands twice");
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            name.starts_with("levee_") && name.chars().all(good),
            "{name}"
        );
        let counts = metric.kind == Kind::Counter;
        // `promtool check metrics` knows the label for this kind only.
        let has_quantiles = metric.labels.contains(&"quantile");
        assert_eq!(
            has_quantiles,
            metric.kind == Kind::Summary,
            "{}",
            metric.name
        );
        assert_eq!(name.ends_with("_total"), counts, "{name}");
        for unit in ["_ms", "_milliseconds", "_kb", "_percent", "_kilobytes"] {
            assert!(!name.contains(unit), "{name} is not in base units");
        }
        let unit_word = metric.unit.split(' ').next_back().unwrap();
        match metric.unit {
            "seconds" => assert!(name.ends_with("_seconds"), "{name}"),
            "bytes" if counts => assert!(name.ends_with("_bytes_total"), "{name}"),
            "bytes" => assert!(name.ends_with("_bytes"), "{name}"),
            "ratio" => assert!(name.ends_with("_ratio"), "{name}"),
            "bytes a second" | "accounted bytes a second" => {
                assert!(name.ends_with("_bytes_per_second"), "{name}");
            }
            "1 or 0" | "always 1" => {}
            _ => assert!(
                name.contains(unit_word),
                "{name} does not name its unit {unit_word}"
            ),
        }
        assert!(
            metric.help.ends_with('.') && !metric.help.contains('\n'),
            "{name}"
        );
        assert!(
            !metric.help.contains('|'),
            "{name} would break the page's table"
        );
        assert!(matches!(
            metric.level,
            Audience::Operator | Audience::Detail
        ));
    }
}

#[test]
fn each_metric_stands_once_on_the_page() {
    let text = render_metrics(&sample("sos.json"));
    let mut series = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(series.insert(name), "{name} stands twice");
        value.parse::<f64>().unwrap();
    }
    let twice = render_metrics(&hostile());
    let peers = twice
        .lines()
        .filter(|line| line.starts_with("levee_rescue_server_rate"));
    assert_eq!(peers.count(), 1, "two rescues by one peer are one series");
}

#[test]
fn the_reference_page_has_every_metric() {
    golden("../../docs/reference/metrics.md", &metrics_reference());
}

#[test]
fn the_grafana_dashboard_asks_for_metrics_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana-dashboard.json");
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let known: Vec<_> = metrics().iter().map(|metric| metric.name).collect();
    let in_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut asked = 0;
    for (at, _) in text.match_indices("levee_") {
        let name = text[at..].split(|c| !in_name(c)).next().unwrap();
        assert!(known.contains(&name), "{name} is not a metric");
        asked += 1;
    }
    assert!(asked > 10);
}

#[test]
fn pages_load_nothing_from_elsewhere() {
    let page = render_page(&sample("sos.json"));
    for html in [page.as_str(), DASHBOARD_HTML] {
        // The names of upstreams are texts that nobody loads.
        for way in ["src=", "href=", "url(", "@import"] {
            let mut parts = html.split(way).skip(1);
            let is_ours = |part: &str| part.starts_with("\"/") || part.starts_with("\"#");
            assert!(parts.all(is_ours), "{way} leads elsewhere: {html}");
        }
        assert!(!html.contains(" style="), "the content policy forbids it");
        assert!(!html.contains(" onclick") && !html.contains("<script>"));
        for part in html.split("/assets/").skip(1) {
            let end = part.find('"').unwrap();
            let path = format!("/assets/{}", &part[..end]);
            assert!(asset(&path).is_some(), "{path} is not there");
        }
    }
    for script in ["/assets/dashboard.js", "/assets/stage.js"] {
        let body = asset(script).unwrap().body;
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
        ] {
            assert!(!body.contains(sink), "{script} uses {sink}");
        }
    }
}

#[test]
fn a_registry_shows_what_it_knows_and_no_figures_of_visitors() {
    let peer = |peer: &str, state: &str| PeerStatus {
        peer: peer.to_owned(),
        state: state.to_owned(),
        cause: "<script>it does not answer</script>".to_owned(),
        agreed_seconds_ago: (state == "linked").then_some(1.5),
        ..PeerStatus::default()
    };
    let registry = MeshStatus {
        entries: 40,
        sites: vec![RegisteredSite {
            site: "www.here.example".to_owned(),
            free: 54_000,
            seconds_left: 21.0,
        }],
        peers: vec![
            peer("a:7070", "self"),
            peer("b:7070", "linked"),
            peer("c:7070", "away"),
        ],
        refused: [("412".to_owned(), 3)].into(),
        ..MeshStatus::default()
    };
    let page = render_registry_page(&registry);
    assert!(page.contains("40 sites are registered; 1 of 2 other registries is away."));
    assert!(page.contains("&lt;script&gt;it does not answer") && !page.contains("<script"));
    assert!(page.contains("something newer is known"));
    assert!(page.contains("<td>www.here.example<td class=n>54.0 kB/s<td class=n>21 s"));
    let metrics = render_registry_metrics(&registry);
    for line in [
        "levee_registry_entries 40\n",
        "levee_registry_peer_up{peer=\"b:7070\"} 1\n",
        "levee_registry_peer_up{peer=\"c:7070\"} 0\n",
        "levee_registry_peer_agreed_age_seconds{peer=\"b:7070\"} 1.5\n",
        "levee_registry_refused_requests_total{code=\"412\"} 3\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(!metrics.contains("a:7070") && !metrics.contains("levee_requests_total"));
}
