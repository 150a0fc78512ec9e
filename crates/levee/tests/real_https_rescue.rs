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

/// The control interval of all members. One that says nothing for two and a half is dead to the
/// others, and on a busy machine a process may have to wait for longer than a quarter of a second.
#[derive(Clone, Copy)]
enum Pace {
    /// Many changes in a short time.
    Brisk,
    /// Nobody is lost.
    Steady,
}

/// Settings of a member of the community whose registry has this port.
fn settings_of(pace: Pace, site: &str, port: u16, more: &str) -> String {
    let interval = match pace {
        Pace::Brisk => "100 ms",
        Pace::Steady => "1 s",
    };
    format!(
        "[site]\nname = \"{site}\"\nlisten = [\"127.0.0.1:0\"]\nfolder = \"public\"\n\
         [community]\nregistry = \"127.0.0.1:{port}\"\naddress = \"127.0.0.1\"\n\
         rescue_listen = \"127.0.0.1:0\"\nallow_private = true\n\
         alias_domain = \"aliases.localhost\"\n\
         [rescue]\ninterval = \"{interval}\"\nregistry_period = \"1 s\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n{more}"
    )
}

/// HTTPS by the certificate that each server here has.
const TLS: &str = "[tls]\nlisten = [\"127.0.0.1:0\"]\n\
                   certificate = \"ours/site.localhost.pem\"\n\
                   key = \"ours/site.localhost.key\"\n";

/// A folder with a page and a certificate, and a registry that nobody knows yet.
struct Place {
    pace: Pace,
    folder: tempfile::TempDir,
    registry: Program,
}

impl Place {
    fn lay(pace: Pace) -> Self {
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
        Self {
            pace,
            folder,
            registry,
        }
    }

    /// Starts a member with these settings beside its own.
    fn serve(&self, file: &str, site: &str, more: &str) -> Program {
        let port = self.registry.port("127.0.0.1:");
        let text = settings_of(self.pace, site, port, more);
        std::fs::write(self.folder.path().join(file), text).unwrap();
        levee(self.folder.path(), &["serve", "-c", file])
    }

    /// Who can help, and has HTTPS.
    fn serve_rescue(&self) -> Program {
        let more = format!("[link]\nrate = \"50 MB/s\"\n{TLS}redirect = true\n");
        self.serve("rescue.toml", "other.localhost", &more)
    }

    /// Who can help, offers more, and has no HTTPS.
    fn serve_plain(&self) -> Program {
        let more = "[link]\nrate = \"80 MB/s\"\n";
        self.serve("plain.toml", "plain.localhost", more)
    }

    /// An origin on a link like this; `tls` is what is set for HTTPS.
    fn serve_origin(&self, rate: &str, tls: &str) -> Program {
        let more = format!("[link]\nrate = \"{rate}\"\n[integrity]\nsampling = \"100 ms\"\n{tls}");
        self.serve("origin.toml", "site.localhost", &more)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("ours/root.pem")
    }
}

/// An origin on a narrow link, somebody who can help, and their community.
struct Community {
    place: Place,
    origin: Program,
    rescue: Program,
    /// Offers more, and has no HTTPS.
    plain: Program,
}

impl Community {
    /// With an origin on a link like this.
    fn start(pace: Pace, rate: &str) -> Self {
        let place = Place::lay(pace);
        let rescue = place.serve_rescue();
        let plain = place.serve_plain();
        let origin = place.serve_origin(rate, &format!("{TLS}redirect = true\n"));
        Self {
            place,
            origin,
            rescue,
            plain,
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
        self.place.root()
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
            .current_dir(self.place.folder.path())
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
    // It must not hold the servers: they end when the test does.
    fn come(root: PathBuf, url: String) -> Self {
        let is_over = Arc::<AtomicBool>::default();
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
    let community = Community::start(Pace::Brisk, "100 kB/s");
    community.meet();
    let crowd = Crowd::come(community.root(), community.url());
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
        let community = Community::start(Pace::Brisk, "100 kB/s");
        let programs = [&community.origin, &community.rescue, &community.plain];
        let pids = programs.map(|program| program.process.id());
        servers.lock().unwrap().extend(pids);
        let _crowd = Crowd::come(community.root(), community.url());
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

/// Waits until `is_so` of what the server tells of itself.
fn wait_until(server: &Program, is_so: impl Fn(&serde_json::Value) -> bool) {
    let began = Instant::now();
    loop {
        let status = Community::status_of(server);
        if is_so(&status) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{status}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Who helps the server, as its status has it.
fn helpers(status: &serde_json::Value) -> Vec<String> {
    let helpers = status["rescue_servers"].as_array().unwrap();
    let mut helpers: Vec<_> = helpers.iter().map(|one| one["site"].to_string()).collect();
    helpers.sort();
    helpers
}

/// Visits until somebody gets the page from an alias at this port.
fn visit_until_served(root: &Path, url: &str, port: u16) {
    let began = Instant::now();
    let alias = format!(".aliases.localhost:{port}/ 16");
    loop {
        let told = "%{http_code} %{url_effective} %{size_download}";
        let got = curl(root, url, told, &["--location"]);
        if got.starts_with("200 ") && got.contains(&alias) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{got}");
    }
}

/// Both kinds of visitors come, and the first who helps cannot have those by HTTPS: the origin says
/// whom it looks for, takes who joins later, and keeps the first for the others.
#[test]
fn visitors_by_https_are_sent_to_who_joins_after_one_without_it() {
    let place = Place::lay(Pace::Steady);
    let plain = place.serve_plain();
    let origin = place.serve_origin("100 kB/s", TLS);
    let url = |scheme: &str| {
        let begin = format!("{scheme}://site.localhost:");
        format!("{begin}{}/", origin.port(&begin))
    };
    let helps = |status: &serde_json::Value, sites: &[&str]| {
        let helpers = helpers(status);
        let is_it = |(helper, site): (&String, &&str)| helper.contains(site);
        helpers.len() == sites.len() && helpers.iter().zip(sites).all(is_it)
    };
    wait_until(&origin, |status| {
        status["candidates"].to_string().contains("plain.localhost")
    });
    let by_http = Crowd::come(place.root(), url("http"));
    wait_until(&origin, |status| helps(status, &["plain.localhost"]));
    let plain_port = plain.port("http://plain.localhost:");
    visit_until_served(&place.root(), &url("http"), plain_port);

    let by_https = Crowd::come(place.root(), url("https"));
    let looked_for = "visitors by HTTPS need help of their own";
    wait_until(&origin, |status| {
        status["decisions"].to_string().contains(looked_for)
    });
    assert!(helps(&Community::status_of(&origin), &["plain.localhost"]));

    let rescue = place.serve_rescue();
    let rescue_port = rescue.port("https://other.localhost:");
    visit_until_served(&place.root(), &url("https"), rescue_port);
    wait_until(&origin, |status| {
        helps(status, &["other.localhost", "plain.localhost"])
    });
    visit_until_served(&place.root(), &url("http"), plain_port);
    assert!(!decided(&origin, "rescue with plain.localhost ended"));

    // Nobody who came by HTTPS was sent anywhere else.
    let at = format!(".aliases.localhost:{rescue_port}/");
    for visit in by_https.leave() {
        let place = visit.split(' ').nth(1).unwrap_or_default();
        let is_it = place.starts_with("https://") && place.ends_with(&at);
        assert!(place.is_empty() || is_it, "{visit}");
    }
    by_http.leave();
}

/// Nobody is sent to HTTPS then, so whoever offers most can help, with or without it.
#[test]
fn before_the_first_certificate_comes_visitors_by_http_are_helped() {
    let community = Community::start(Pace::Steady, "5 MB/s");
    // Its certificate never comes: nobody listens there.
    let more = "[link]\nrate = \"100 kB/s\"\n\
                [tls]\nlisten = [\"127.0.0.1:0\"]\nredirect = true\n\
                [acme]\nagree = true\ndirectory = \"https://127.0.0.1:1/directory\"\n\
                [state]\nfolder = \"state\"\n";
    let young = community.place.serve("young.toml", "young.test", more);
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
        .current_dir(community.place.folder.path())
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
    let community = Community::start(Pace::Steady, "5 MB/s");
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
