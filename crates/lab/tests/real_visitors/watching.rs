//! What the operator sees in the middle of the crowd: dashboard and status page in a browser, and
//! `levee status` and `levee top` in a terminal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::browser::{self, Look, Window};
use crate::stage::{Community, ORIGIN, Place};
use levee_lab::processes::levee_beside;

#[test]
fn the_operator_sees_the_crowd_and_who_helps() {
    let community = Community::start(&ORIGIN);
    let _crowd = community.in_lasting_crowd();
    let origin = &community.origin;
    let status = origin.wait("both rescue servers at work", |status| {
        let helpers = status["rescue_servers"].as_array().unwrap();
        let works = |peer: &&Value| peer["used"].as_u64() > Some(0);
        helpers.iter().filter(works).count() == 2
    });
    let aliases: Vec<&str> = status["rescue_servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|peer| peer["alias"].as_str().unwrap())
        .collect();

    let dashboard = browser::dom(&format!("http://{}/dashboard", origin.admin), Look::Live);
    shows_the_rescue(&dashboard, &community);
    assert_eq!(dashboard.matches("<canvas").count(), 2, "two charts");
    for alias in &aliases {
        assert!(
            dashboard.contains(alias),
            "the title of its circle names {alias}"
        );
    }
    let page = browser::dom(&format!("http://{}/", origin.admin), Look::Loaded);
    shows_the_rescue(&page, &community);
    pictures(origin);
    in_the_terminal(origin, &community);

    let history: Value = serde_json::from_str(&origin.admin_text("/history.json")).unwrap();
    let snapshots = history["snapshots"].as_array().unwrap();
    for rate in ["out", "requests", "redirects"] {
        let first = &snapshots.last().unwrap()[rate];
        let moves = snapshots.iter().any(|snapshot| snapshot[rate] != *first);
        assert!(moves, "{rate} stands still");
    }
}

/// State, helpers by name, the hot post, and a decision with its reason.
fn shows_the_rescue(dom: &str, community: &Community) {
    assert!(dom.contains("being rescued by 2 servers"), "{dom}");
    for member in &community.members {
        assert!(dom.contains(&member.address.to_string()), "{dom}");
    }
    let origin = &community.origin;
    let post = format!("{}{}", origin.address.host, origin.site.post().path);
    assert!(dom.contains(&post), "{post} is hot: {dom}");
    assert!(dom.contains("state changed from normal to sos"), "{dom}");
    assert!(dom.contains("above 50 %"), "the reason: {dom}");
}

/// Every page in every window. With `KEEP_SCREENSHOTS` they stay in that folder, to be looked at.
fn pictures(origin: &Place) {
    let folder = tempfile::tempdir().unwrap();
    let keep = std::env::var_os("KEEP_SCREENSHOTS");
    let keep = keep.as_ref().map_or(folder.path(), Path::new);
    for (path, look) in [("/dashboard", Look::Live), ("/", Look::Loaded)] {
        for window in [Window::Screen, Window::Phone] {
            let name = format!("crowd-{window:?}{}.png", path.replace('/', "-"));
            let picture = keep.join(name);
            let url = format!("http://{}{path}", origin.admin);
            browser::screenshot(&url, look, window, &picture);
            let bytes = std::fs::read(&picture).unwrap();
            assert!(bytes.starts_with(b"\x89PNG"), "{path}");
            assert!(bytes.len() > 20_000, "{path} is all but empty");
        }
    }
}

fn in_the_terminal(origin: &Place, community: &Community) {
    let admin = origin.admin.to_string();
    let levee = levee_beside().unwrap();
    let output = Command::new(&levee)
        .args(["status", "--admin", &admin])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(
        told.starts_with(&format!("{} (sos)\n", origin.address)),
        "{told}"
    );
    let output = Command::new(&levee)
        .args(["status", "--json", "--admin", &admin])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["state"], "sos");

    let mut top = Command::new(&levee)
        .args(["top", "--admin", &admin])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(top.stdout.take().unwrap()).lines();
    // A frame ends where the next one clears the screen.
    let is_next = |line: &String| line.contains("\x1b[2J");
    let lines = lines.map(Result::unwrap);
    let frame: Vec<String> = lines
        .enumerate()
        .take_while(|(index, line)| *index == 0 || !is_next(line))
        .map(|(_, line)| line)
        .collect();
    // It would go on for ever.
    top.kill().unwrap();
    top.wait().unwrap();
    let frame = frame.join("\n");
    assert!(frame.contains(" SOS "), "{frame}");
    for member in &community.members {
        assert!(frame.contains(&member.address.to_string()), "{frame}");
    }
}
