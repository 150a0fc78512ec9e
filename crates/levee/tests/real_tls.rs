//! HTTPS of the real server, asked by curl and openssl: versions, HTTP/2, resumption, renewal,
//! what `levee check` tells.
#![allow(clippy::unwrap_used)]

#[path = "support/program.rs"]
mod program;

use std::path::Path;
use std::process::Command;

use program::Program;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

/// A site with a certificate, in a folder of its own.
struct Site {
    folder: tempfile::TempDir,
}

/// A levee that serves it, ended with the test.
struct Levee {
    _program: Program,
    port: u16,
    admin: String,
}

impl Site {
    fn new() -> Self {
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(site.path("public")).unwrap();
        std::fs::write(site.path("public/index.html"), "hello").unwrap();
        site.settle("");
        site.certify("site", "site.example", "90");
        site
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn settle(&self, more: &str) {
        let text = format!(
            "[site]\nname = \"site.example\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
             [tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"site.pem\"\nkey = \"site.key\"\n\
             {more}[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        std::fs::write(self.path("levee.toml"), text).unwrap();
    }

    /// Makes `file.pem` and `file.key`, good for so many days from now.
    fn certify(&self, file: &str, name: &str, days: &str) {
        let (key, pem) = (format!("{file}.key"), format!("{file}.pem"));
        let names = format!("subjectAltName=DNS:{name}");
        let made = Command::new("openssl")
            .current_dir(self.folder.path())
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-subj", "/CN=it"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-days", days, "-addext", &names])
            .args(["-keyout", &key, "-out", &pem])
            .output();
        let made = made.unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    /// Makes `site.pem` and `site.key`, good in the first 90 days of `year`.
    fn certify_for(&self, year: i32) {
        let mut params = CertificateParams::new(vec!["site.example".to_owned()]).unwrap();
        params.not_before = date_time_ymd(year, 1, 1);
        params.not_after = date_time_ymd(year, 4, 1);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        std::fs::write(self.path("site.pem"), made.pem()).unwrap();
        std::fs::write(self.path("site.key"), key.serialize_pem()).unwrap();
    }

    /// Waits until `levee status` says `wanted`, and gives all that it says.
    fn wait_for_status(&self, levee: &Levee, wanted: &str) -> String {
        loop {
            let (_, told) = self.levee(&["status", "--admin", &levee.admin]);
            if told.contains(wanted) {
                return told;
            }
        }
    }

    fn levee(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(self.folder.path())
            .args(arguments)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn start(&self) -> Levee {
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        command
            .current_dir(self.folder.path())
            .args(["serve", "-c", "levee.toml"]);
        let program = Program::start(&mut command);
        Levee {
            port: program.port(", https://site.example:"),
            admin: format!("127.0.0.1:{}", program.port("admin http://127.0.0.1:")),
            _program: program,
        }
    }
}

impl Levee {
    /// What curl gets, with the version of HTTP that was spoken.
    fn curl(&self, site: &Site, arguments: &[&str]) -> String {
        let port = &self.port;
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20"])
            .args(["--write-out", " %{http_version}", "--cacert"])
            .arg(site.path("site.pem"))
            .args(["--resolve", &format!("site.example:{port}:127.0.0.1")])
            .args(arguments)
            .arg(format!("https://site.example:{port}/"))
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// What openssl tells of connections that it opened and closed.
    fn openssl(&self, folder: &Path, arguments: &[&str]) -> String {
        let request = "GET / HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n\r\n";
        std::fs::write(folder.join("request"), request).unwrap();
        let output = Command::new("openssl")
            .current_dir(folder)
            .args(["s_client", "-connect", &format!("127.0.0.1:{}", self.port)])
            .args(["-servername", "site.example", "-ign_eof"])
            .args(arguments)
            .stdin(std::fs::File::open(folder.join("request")).unwrap())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn curl_gets_the_page_in_every_version_that_is_spoken() {
    let site = Site::new();
    let levee = site.start();
    assert_eq!(
        levee.curl(&site, &["--http1.1", "--tls-max", "1.2"]),
        "hello 1.1"
    );
    assert_eq!(levee.curl(&site, &["--http1.1", "--tlsv1.3"]), "hello 1.1");
    assert_eq!(
        levee.curl(&site, &["--http2", "--tls-max", "1.2"]),
        "hello 2"
    );
    assert_eq!(levee.curl(&site, &["--http2", "--tlsv1.3"]), "hello 2");
    let old = levee.curl(
        &site,
        &["--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"],
    );
    assert!(!old.contains("hello"), "{old}");
}

#[test]
fn openssl_resumes_in_both_versions() {
    let site = Site::new();
    let levee = site.start();
    let folder = site.folder.path();
    for version in ["-tls1_2", "-tls1_3"] {
        let first = levee.openssl(folder, &[version, "-sess_out", "session.pem"]);
        assert!(first.contains("\nNew, TLSv1"), "{first}");
        assert!(first.contains("hello"), "{first}");
        let second = levee.openssl(folder, &[version, "-sess_in", "session.pem"]);
        assert!(second.contains("\nReused, TLSv1"), "{second}");
        assert!(second.contains("hello"), "{second}");
    }
}

#[test]
fn a_reload_takes_up_a_renewed_certificate_and_keeps_the_old_one_when_the_new_is_broken() {
    let site = Site::new();
    let levee = site.start();
    assert_eq!(levee.curl(&site, &[]), "hello 2");
    let good = std::fs::read(site.path("site.pem")).unwrap();
    std::fs::write(site.path("site.pem"), "no certificate").unwrap();
    let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
    assert!(
        !done && told.contains("site.pem") && told.contains("stays"),
        "{told}"
    );
    site.wait_for_status(&levee, "has no certificate in it");
    std::fs::write(site.path("site.pem"), &good).unwrap();
    assert_eq!(levee.curl(&site, &[]), "hello 2");
    // Another one's key, and none.
    site.certify("other", "other.example", "90");
    let key = std::fs::read(site.path("site.key")).unwrap();
    std::fs::copy(site.path("other.key"), site.path("site.key")).unwrap();
    for problem in ["does not belong", "cannot read site.key"] {
        let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
        assert!(!done && told.contains(problem), "{told}");
        // It begins a sentence there.
        site.wait_for_status(&levee, &problem[1..]);
        let _ = std::fs::remove_file(site.path("site.key"));
    }
    std::fs::write(site.path("site.key"), &key).unwrap();
    assert_eq!(levee.curl(&site, &[]), "hello 2");
    site.certify("site", "site.example", "90");
    let before = levee.curl(&site, &[]);
    assert!(
        before.contains("self-signed"),
        "the new one is not in force: {before}"
    );
    let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
    assert!(done, "{told}");
    // The cores take it up after the answer.
    while levee.curl(&site, &[]) != "hello 2" {}
}

#[test]
fn a_reload_never_puts_a_certificate_in_force_whose_time_is_not_now() {
    let site = Site::new();
    let levee = site.start();
    let files = ["site.pem", "site.key"].map(|file| site.path(file));
    let good = files.each_ref().map(|file| std::fs::read(file).unwrap());
    std::fs::write(site.path("good.pem"), &good[0]).unwrap();
    for (year, problem) in [(2024, "expired on Mon, 01 Apr 2024"), (2099, "valid only")] {
        site.certify_for(year);
        let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
        assert!(!done && told.contains(problem), "{told}");
        assert!(told.contains("stays, it is valid until 20"), "{told}");
        let told = site.wait_for_status(&levee, problem);
        assert!(
            told.contains("The certificate in ") && told.contains("site.pem "),
            "{told}"
        );
        assert!(
            told.contains("the one in force stays, it is valid until 20"),
            "{told}"
        );
        let shown = levee.openssl(site.folder.path(), &["-CAfile", "good.pem"]);
        assert!(shown.contains("Verify return code: 0 (ok)"), "{shown}");
    }
    for (file, bytes) in files.iter().zip(&good) {
        std::fs::write(file, bytes).unwrap();
    }
    let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
    assert!(done && told.trim() == "reloaded", "{told}");
    loop {
        let (_, told) = site.levee(&["status", "--admin", &levee.admin]);
        if !told.contains("certificate") {
            break;
        }
    }
}

#[test]
fn a_start_with_an_expired_certificate_goes_on_and_says_so() {
    let site = Site::new();
    site.certify_for(2024);
    let levee = site.start();
    let told = site.wait_for_status(&levee, "expired on Mon, 01 Apr 2024");
    assert!(!told.contains("stays"), "{told}");
    // Nothing gets worse by it, so this is no failure.
    let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
    assert!(done && told.contains("site.pem expired on"), "{told}");
    site.certify("site", "site.example", "90");
    let (done, told) = site.levee(&["reload", "--admin", &levee.admin]);
    assert!(done && told.trim() == "reloaded", "{told}");
    while levee.curl(&site, &[]) != "hello 2" {}
}

#[test]
fn check_tells_what_is_wrong_with_certificates() {
    let site = Site::new();
    let check = || site.levee(&["check", "levee.toml"]);
    let (good, told) = check();
    assert!(good && !told.contains("warning"), "{told}");
    site.certify("other", "other.example", "90");
    std::fs::copy(site.path("other.key"), site.path("site.key")).unwrap();
    let (good, told) = check();
    assert!(!good && told.contains("does not belong"), "{told}");
    site.certify("site", "other.example", "90");
    let (good, told) = check();
    assert!(
        good && told.contains("no certificate is for site.example"),
        "{told}"
    );
    std::fs::remove_file(site.path("site.key")).unwrap();
    let (good, told) = check();
    assert!(
        !good && told.contains("cannot read") && told.contains("site.key"),
        "{told}"
    );
    std::fs::write(site.path("levee.toml"), "[tls]\nredirect = true\n").unwrap();
    let (good, told) = check();
    assert!(
        !good && told.contains("does nothing without a certificate"),
        "{told}"
    );
}
