//! `levee certificate local`, believed by curl and openssl.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

fn run(folder: &Path, program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program)
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn levee(folder: &Path, arguments: &[&str]) -> (bool, String) {
    run(folder, env!("CARGO_BIN_EXE_levee"), arguments)
}

#[test]
fn an_authority_of_ones_own_certifies_names_wildcards_and_addresses() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let make = |names: &[&str]| {
        let arguments = [&["certificate", "local", "--folder", "ours"], names].concat();
        levee(folder, &arguments)
    };
    let (done, told) = make(&["blog.test", "*.aliases.test", "127.0.0.1"]);
    assert!(
        done && told.contains("curl --cacert ours/root.pem"),
        "{told}"
    );
    let verify = |name: &str, file: &str| {
        let how = ["-verify_hostname", name];
        let arguments = [
            &["verify", "-x509_strict", "-CAfile", "ours/root.pem"],
            &how[..],
        ];
        run(
            folder,
            "openssl",
            &[&arguments.concat()[..], &[file]].concat(),
        )
    };
    let (done, said) = verify("blog.test", "ours/blog.test.pem");
    assert!(done, "{said}");
    let (done, said) = verify("www-vh1.aliases.test", "ours/blog.test.pem");
    assert!(done, "{said}");
    assert!(!verify("other.test", "ours/blog.test.pem").0);
    // The authority stays the same, so whoever trusts it need not be told again.
    let root = std::fs::read(folder.join("ours/root.pem")).unwrap();
    assert!(make(&["*.second.test"]).0);
    assert_eq!(std::fs::read(folder.join("ours/root.pem")).unwrap(), root);
    let (done, said) = verify("www.second.test", "ours/_.second.test.pem");
    assert!(done, "{said}");
    let (done, told) = make(&["no name"]);
    assert!(!done && told.contains("`no name`"), "{told}");
    // The server takes it.
    let text = "[site]\nname = \"blog.test\"\nfolder = \".\"\n[tls]\n\
                certificate = \"ours/blog.test.pem\"\nkey = \"ours/blog.test.key\"\n";
    std::fs::write(folder.join("levee.toml"), text).unwrap();
    let (good, told) = levee(folder, &["check", "levee.toml"]);
    assert!(good && !told.contains("warning"), "{told}");
}
