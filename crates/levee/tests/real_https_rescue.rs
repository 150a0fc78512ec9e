//! A crowd by HTTPS is carried by a rescue server under its own certificate: curl and Chromium are
//! sent to the alias by HTTPS, and never to one by HTTP.
#![allow(clippy::unwrap_used)]

mod browser;
#[path = "support/program.rs"]
mod program;

use std::panic::{catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use program::Program;

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most visits of the crowd, a few dozen a second.
const VISITS_MAX: usize = 2000;
/// Scripts of the page, each of which may be redirected by itself.
const MODULES: u32 = 8;

fn levee(folder: &Path, arguments: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    Program::start(command.current_dir(folder).args(arguments))
}

/// Settings of a member of the community whose registry has this port.
fn settings_of(site: &str, port: u16, more: &str) -> String {
    format!(
        "[site]\nname = \"{site}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
         [community]\nregistry = \"127.0.0.1:{port}\"\naddress = \"127.0.0.1\"\n\
         rescue_listen = \"127.0.0.1:0\"\nallow_private = true\n\
         alias_domain = \"aliases.localhost\"\n\
         [rescue]\ninterval = \"100 ms\"\nregistry_period = \"1 s\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n{more}"
    )
}

/// An origin on a narrow link, somebody who can help, and their community.
struct Community {
    folder: tempfile::TempDir,
    origin: Program,
    rescue: Program,
    /// Offers more, and has no HTTPS.
    plain: Program,
    registry: Program,
}

impl Community {
    /// With an origin on a link like this.
    fn start(rate: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let names = ["site.localhost", "*.aliases.localhost"];
        let made = Command::new(env!("CARGO_BIN_EXE_levee"))
            .current_dir(folder.path())
            .args(["certificate", "local", "--folder", "ours"])
            .args(names)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        std::fs::create_dir(at("public")).unwrap();
        let filling = "<!-- -->".repeat(2000);
        let modules: String = (0..MODULES)
            .map(|nth| format!("<script type=module src=/module.js?{nth}></script>"))
            .collect();
        let page = format!(
            "<!doctype html><p id=at></p><script>document.getElementById('at').textContent \
             = location.href</script><p id=modules></p>{modules}{filling}"
        );
        std::fs::write(at("public/index.html"), page).unwrap();
        let module = "document.getElementById('modules').textContent += import.meta.url + ' '";
        std::fs::write(at("public/module.js"), module).unwrap();
        let list = ["registry", "--listen", "127.0.0.1:0", "--allow-private"];
        let registry = levee(folder.path(), &list);
        let port = registry.port("127.0.0.1:");
        let tls = "[tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"ours/site.localhost.pem\"\n\
                   key = \"ours/site.localhost.key\"\nredirect = true\n";
        let settings = |name: &str, site: &str, more: &str| {
            let text = settings_of(site, port, more);
            std::fs::write(at(name), text).unwrap();
        };
        settings(
            "rescue.toml",
            "other.localhost",
            &format!("[link]\nrate = \"50 MB/s\"\n{tls}"),
        );
        let larger = "[link]\nrate = \"80 MB/s\"\n";
        settings("plain.toml", "plain.localhost", larger);
        settings(
            "origin.toml",
            "site.localhost",
            &format!("[link]\nrate = \"{rate}\"\n[integrity]\nsampling = \"100 ms\"\n{tls}"),
        );
        let rescue = levee(folder.path(), &["serve", "-c", "rescue.toml"]);
        let plain = levee(folder.path(), &["serve", "-c", "plain.toml"]);
        let origin = levee(folder.path(), &["serve", "-c", "origin.toml"]);
        Self {
            folder,
            origin,
            rescue,
            plain,
            registry,
        }
    }

    fn url(&self) -> String {
        let port = self.origin.port("https://site.localhost:");
        format!("https://site.localhost:{port}/")
    }

    /// Where every alias begins.
    fn alias_port(&self) -> String {
        let port = self.rescue.port("https://other.localhost:");
        format!(".aliases.localhost:{port}/")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("ours/root.pem")
    }

    /// What the origin tells of itself.
    fn status(&self) -> serde_json::Value {
        Self::status_of(&self.origin)
    }

    /// Waits until the origin knows both who can help.
    fn meet(&self) {
        let began = Instant::now();
        while self.status()["candidates"].as_array().map(Vec::len) != Some(2) {
            assert!(began.elapsed() < PATIENCE, "{}", self.status());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    fn status_of(server: &Program) -> serde_json::Value {
        let port = server.port("admin http://127.0.0.1:");
        let url = format!("http://127.0.0.1:{port}/status.json");
        let output = Command::new("curl").args(["--silent", &url]).output();
        serde_json::from_slice(&output.unwrap().stdout).unwrap()
    }

    /// What openssl says that the certificate's key is: for a browser that is to know it.
    fn key_hash(&self) -> String {
        let script = "openssl x509 -in ours/site.localhost.pem -pubkey -noout \
                      | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary \
                      | openssl base64";
        let output = Command::new("sh")
            .current_dir(self.folder.path())
            .args(["-c", script])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// What curl gets; it believes `root` alone.
fn curl(root: &Path, url: &str, told: &str, arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "10", "--cacert"])
        .arg(root)
        .args(["--output", "/dev/null", "--write-out", told])
        .args(arguments)
        .arg(url)
        .output()
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Whether it was decided at `server`.
fn decided(server: &Program, what: &str) -> bool {
    let status = Community::status_of(server);
    let decisions = status["decisions"].as_array().unwrap();
    decisions.iter().any(|one| one.to_string().contains(what))
}

/// Who offers more has registered that it has no HTTPS, and was never asked.
fn is_spared(community: &Community) {
    assert!(!decided(&community.origin, "plain.localhost"));
    let helpers = &community.status()["rescue_servers"];
    let other = |one: &serde_json::Value| one["site"].to_string().contains("other.localhost");
    assert!(helpers.as_array().unwrap().iter().all(other), "{helpers}");
    let plain = Community::status_of(&community.plain);
    assert_eq!(plain["state"], "normal");
    assert!(!decided(&community.plain, "site.localhost"), "{plain}");
    let admin = community.origin.port("admin http://127.0.0.1:");
    let shown = Command::new(env!("CARGO_BIN_EXE_levee"))
        .args(["status", "--admin", &format!("127.0.0.1:{admin}")])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let asked = shown
        .lines()
        .find(|line| line.starts_with("Could be asked"));
    assert!(asked.unwrap().contains("plain.localhost"), "{shown}");
    assert!(asked.unwrap().contains(", no HTTPS)"), "{shown}");
}

/// Visitors who come one after the other until it is over, also when a test fails.
struct Crowd {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Crowd {
    fn come(community: &Community) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        // It must not hold the servers: they end when the test does.
        let (root, url) = (community.root(), community.url());
        let told = "%{http_code} %{redirect_url}";
        let ends = Arc::clone(&is_over);
        let come = move || {
            let visits = (0..VISITS_MAX).take_while(|_| !ends.load(Ordering::Relaxed));
            visits.map(|_| curl(&root, &url, told, &[])).collect()
        };
        let thread = Some(std::thread::spawn(come));
        Self { is_over, thread }
    }

    /// What they saw.
    fn leave(mut self) -> Vec<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn a_crowd_by_https_is_carried_under_the_certificate_of_who_carries_it() {
    let community = Community::start("100 kB/s");
    community.meet();
    let crowd = Crowd::come(&community);
    let alias = community.alias_port();
    let began = Instant::now();
    // A visitor who follows gets the page from the alias, and believes its certificate.
    loop {
        let told = "%{http_code} %{url_effective} %{ssl_verify_result} %{size_download} \
                    %header{access-control-allow-origin}/";
        let got = curl(&community.root(), &community.url(), told, &["--location"]);
        if got.starts_with("200 https://") && got.contains(&alias) {
            assert!(got.contains(" 0 16"), "not the whole page: {got}");
            // The origin's own pages may read it, at the port that they come from.
            assert!(got.ends_with(&format!(" {}", community.url())), "{got}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{got}");
    }
    is_spared(&community);
    // So does a browser, which would refuse any other: where the page comes from the origin, it
    // runs scripts that were redirected, which it would not if they were for somebody else.
    loop {
        let seen = browser::dom_trusting(&community.url(), &community.key_hash());
        let part = |mark: &str| {
            let rest = seen.split(mark).nth(1).unwrap_or_default();
            rest.split("</p>").next().unwrap_or_default().to_owned()
        };
        let at = part("<p id=\"at\">");
        if at == community.url() && part("<p id=\"modules\">").contains(&alias) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{seen:.400}");
    }
    // So do the looks of the origin, which finds nothing to complain of.
    loop {
        let looks = &community.status()["integrity"]["looks"];
        assert_eq!(
            (&looks["forged"], &looks["foreign"]),
            (&0.into(), &0.into())
        );
        if looks["authentic"].as_u64().unwrap() > 0 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{looks}");
    }
    // Nobody was sent to an alias that everybody on the way can read.
    for visit in crowd.leave() {
        let place = visit.split(' ').nth(1).unwrap_or_default();
        assert!(place.is_empty() || place.starts_with("https://"), "{visit}");
    }
}

#[test]
fn a_test_that_fails_in_a_crowd_leaves_no_server_behind() {
    let servers = Mutex::new(Vec::new());
    let failed = catch_unwind(|| {
        let community = Community::start("100 kB/s");
        let programs = [&community.origin, &community.rescue, &community.plain];
        let pids = programs.map(|program| program.process.id());
        servers.lock().unwrap().extend(pids);
        let _crowd = Crowd::come(&community);
        resume_unwind(Box::new("an assertion fails"));
    });
    assert!(failed.is_err());
    let servers = servers.into_inner().unwrap();
    assert_eq!(servers.len(), 3);
    for pid in servers {
        let process = PathBuf::from(format!("/proc/{pid}"));
        assert!(!process.exists(), "{} lives", process.display());
    }
}

/// Nobody is sent to HTTPS then, so whoever offers most can help, with or without it.
#[test]
fn before_the_first_certificate_comes_visitors_by_http_are_helped() {
    let community = Community::start("5 MB/s");
    // Its certificate never comes: nobody listens there.
    let more = "[link]\nrate = \"100 kB/s\"\n\
                [tls]\nlisten = [\"127.0.0.1:0\"]\nredirect = true\n\
                [acme]\nagree = true\ndirectory = \"https://127.0.0.1:1/directory\"\n\
                [state]\nfolder = \"state\"\n";
    let text = settings_of("young.test", community.registry.port("127.0.0.1:"), more);
    std::fs::write(community.folder.path().join("young.toml"), text).unwrap();
    let young = levee(community.folder.path(), &["serve", "-c", "young.toml"]);
    let port = young.port("http://young.test:");
    let url = format!("http://young.test:{port}/");
    let found = format!("young.test:{port}:127.0.0.1");
    let plain = community.plain.port("http://plain.localhost:");
    let began = Instant::now();
    while !Community::status_of(&young)["candidates"]
        .to_string()
        .contains("plain.localhost")
    {
        assert!(began.elapsed() < PATIENCE, "it is not found");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    loop {
        let told = "%{http_code} %{redirect_url}";
        let got = curl(&community.root(), &url, told, &["--resolve", &found]);
        // On a busy machine another one may be quicker to answer than the best.
        if got.starts_with("302 ") && got.contains(&format!(":{plain}/")) {
            assert!(got.contains(".aliases.localhost:"), "{got}");
            break;
        }
        let status = Community::status_of(&young);
        assert!(began.elapsed() < PATIENCE, "{got}: {status}");
    }
}

/// Holds a drill; it succeeded, what it printed, and what it complained of.
fn drill(community: &Community, more: &[&str]) -> (bool, String, String) {
    let admin = community.origin.port("admin http://127.0.0.1:");
    let output = Command::new(env!("CARGO_BIN_EXE_levee"))
        .current_dir(community.folder.path())
        .args(["drill", "--json", "--rate", "20", "--time", "1s", "--admin"])
        .arg(format!("127.0.0.1:{admin}"))
        .args(more)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn a_drill_goes_by_https_where_visitors_do() {
    let community = Community::start("5 MB/s");
    let (_, _, complaint) = drill(&community, &["--ca", "origin.toml"]);
    assert!(complaint.contains("no certificate in it"), "{complaint}");
    let (_, _, complaint) = drill(&community, &[]);
    assert!(complaint.contains("--ca FILE"), "{complaint}");
    let began = Instant::now();
    loop {
        let (is_well, printed, complaint) = drill(&community, &["--ca", "ours/root.pem"]);
        // Who helps is known when the registry has been asked.
        if is_well {
            let report: serde_json::Value = serde_json::from_str(&printed).unwrap();
            assert!(
                report["members"][0]["visits"].as_u64().unwrap() > 0,
                "{printed}"
            );
            let port = community.origin.port("https://site.localhost:");
            assert_eq!(report["site"], format!("site.localhost:{port}"));
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{printed}{complaint}");
    }
}
