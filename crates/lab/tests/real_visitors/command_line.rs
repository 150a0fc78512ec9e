//! `levee check`, `levee explain` and their kin as a person types them, and the names by which the
//! admin address may be asked.

use std::fs;
use std::path::Path;
use std::process::Command;

use levee_lab::processes::{Process, levee_beside};

use crate::http;

struct Said {
    success: bool,
    out: String,
    err: String,
}

fn levee(folder: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(levee_beside().unwrap())
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    // A person's mistake ends with 1, never with a panic.
    assert!([0, 1].contains(&output.status.code().unwrap()));
    Said {
        success: output.status.success(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn check_tells_every_mistake_with_its_line_and_explain_where_values_come_from() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("public")).unwrap();
    let write = |text: &str| fs::write(folder.path().join("levee.toml"), text).unwrap();
    write(
        "[site]\nname = \"news.example.org\"\nfoldr = \"public\"\n\
         [link]\nrate = 54\n\
         [rescue]\nthreshold_alert = \"95 %\"\ninterval = \"soon\"\n",
    );
    let said = levee(folder.path(), &["check", "levee.toml"]);
    assert!(!said.success && said.out.is_empty());
    for (line, part) in [
        (3, "did you mean `site.folder`"),
        (5, "link.rate"),
        (8, "rescue.interval"),
    ] {
        let start = format!("levee.toml: line {line}: ");
        let found = said
            .err
            .lines()
            .any(|told| told.contains(&start) && told.contains(part));
        assert!(found, "line {line}: {}", said.err);
    }
    assert!(!levee(folder.path(), &["explain", "levee.toml"]).success);

    // What each value says for itself is right, but together they are not.
    write("[site]\nfolder = \"public\"\n[rescue]\nthreshold_alert = \"95 %\"\n");
    let said = levee(folder.path(), &["check", "levee.toml"]);
    assert!(said.err.contains("levee.toml: line 4: ") && said.err.contains("[40 %, 60 %]"));

    write("[site]\nname = \"news.example.org\"\nfolder = \"public\"\n[link]\nrate = \"54 kB/s\"\n");
    let said = levee(folder.path(), &["check", "levee.toml"]);
    assert_eq!(said.out, "levee.toml: good, site news.example.org\n");
    assert!(said.success && said.err.is_empty());
    let said = levee(folder.path(), &["explain", "levee.toml"]);
    let told = |name: &str| {
        let mut lines = said.out.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(told("link.rate"), "link.rate 54 kB/s line 5");
    assert_eq!(told("link.usable"), "link.usable 80 % default");
    assert_eq!(told("community.registry"), "community.registry - not set");
}

#[test]
fn a_server_that_is_not_there_is_told_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["status", "top"] {
        // Port 1 is the system's; nobody here listens on it.
        let said = levee(folder.path(), &[command, "--admin", "127.0.0.1:1"]);
        assert!(!said.success);
        assert!(
            said.err.contains("no levee answers at 127.0.0.1:1"),
            "{}",
            said.err
        );
        assert!(said.err.contains("--admin"), "the way out: {}", said.err);
    }
    let said = levee(folder.path(), &["check", "missing.toml"]);
    assert!(said.err.contains("missing.toml"), "{}", said.err);
}

#[test]
fn the_admin_address_answers_to_the_names_that_the_operator_gave_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("public")).unwrap();
    let settings = folder.path().join("levee.toml");
    fs::write(
        &settings,
        "[site]\nfolder = \"public\"\nlisten = [\"127.0.0.1:0\"]\n\
         [admin]\nlisten = \"127.0.0.1:0\"\nnames = [\"levee.lan\"]\n",
    )
    .unwrap();
    let arguments = ["serve", "-c", settings.to_str().unwrap()];
    let binary = levee_beside().unwrap();
    let server = Process::start("levee", &binary, &arguments, folder.path()).unwrap();
    let admin = server.ready().admin.unwrap();
    let asked_as = |name: &str| http::get(admin, &format!("{name}:{}", admin.port()), "/", "");
    assert_eq!(asked_as("levee.lan").status, 200);
    assert_eq!(asked_as("127.0.0.1").status, 200);
    assert_eq!(asked_as("stranger.example").status, 421);
}
