//! What somebody sees who types a command: the real program, and a real server that it speaks to.
#![allow(clippy::unwrap_used)]

#[path = "support/program.rs"]
mod program;

use std::process::Command;

use program::Program;

/// Whether it succeeds, and all that it says.
fn levee(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    let output = command.args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    (output.status.success(), said)
}

#[test]
fn whoever_has_never_seen_it_learns_what_it_is_and_how_to_begin() {
    for help in ["-h", "--help"] {
        let (_, said) = levee(&[help]);
        let first = "A web server and reverse proxy for sites that help each other";
        assert!(said.starts_with(first), "{said}");
        assert!(said.contains("levee serve ./public"), "{said}");
    }
    let (is_good, said) = levee(&["serve"]);
    assert!(!is_good);
    for way in ["serve [OPTIONS] <FOLDER>", "serve [OPTIONS] -c <FILE>"] {
        assert!(said.contains(way), "{said}");
    }
}

#[test]
fn a_server_is_found_at_localhost_and_no_other_name_is_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(
        Command::new(env!("CARGO_BIN_EXE_levee"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "localhost:0"])
            .arg(folder.path()),
    );
    let admin = format!("localhost:{}", server.port("admin http://127.0.0.1:"));
    let (is_good, said) = levee(&["status", "--admin", &admin]);
    assert!(is_good && said.contains("localhost"), "{said}");
    let (is_good, said) = levee(&["status", "--admin", "web1:9100"]);
    assert!(!is_good && said.contains("`localhost:8080`"), "{said}");
}

#[test]
fn a_reload_names_what_was_changed_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("levee.toml");
    let write = |site: &str, more: &str| {
        let text = format!(
            "[site]\nname = \"{site}\"\nfolder = \".\"\nlisten = [\"127.0.0.1:0\"]\n\
             [community]\nregistry = \"127.0.0.1:9\"\naddress = \"127.0.0.1\"\n\
             rescue_listen = \"127.0.0.1:0\"\nalias_domain = \"aliases.example.net\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{more}"
        );
        std::fs::write(&file, text).unwrap();
    };
    write("www.example.org", "");
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    let server = Program::start(command.args(["serve", "-c"]).arg(&file));
    let admin = format!("127.0.0.1:{}", server.port("admin http://127.0.0.1:"));
    let reload = || levee(&["reload", "--admin", &admin]);
    assert_eq!(reload(), (true, "reloaded\n".to_owned()));
    write(
        "blog.example.com",
        "[limits]\ntunnels = 3\n[rescue]\nservers_max = 2\n",
    );
    // It is told again as long as it waits.
    for _ in 0..2 {
        let told = "reloaded; these take effect at the next start: site.name, limits.tunnels\n";
        assert_eq!(reload(), (true, told.to_owned()));
    }
    write("www.example.org", "");
    assert_eq!(reload(), (true, "reloaded\n".to_owned()));
}
