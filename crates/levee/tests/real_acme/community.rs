//! A community that needs no certificate from anybody's hand: the origin's name and the rescue
//! server's aliases lie in two zones at two name servers, and both are shown to be theirs there.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::browser;
use crate::names::{NameServer, key};
use crate::pebble::{Looks, Pebble, Place};
use crate::ports::free_address;
use crate::program::Program;
use crate::site::{Levee, Site};

/// Longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most visits of the crowd, a few dozen a second.
const VISITS_MAX: usize = 2000;

/// Where the members find each other.
fn registry() -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
    Program::start(command.args(["registry", "--listen", "127.0.0.1:0", "--allow-private"]))
}

/// Everybody, and who serves their names.
struct Community {
    place: Place,
    origin_site: Site,
    origin: Levee,
    rescue: Levee,
    bind: NameServer,
    aliases: NameServer,
    _pebble: Pebble,
    _registry: Program,
    _rescue_site: Site,
}

impl Community {
    fn start() -> Self {
        let (place, registry) = (Place::new(), registry());
        let aliases = NameServer::levee();
        let bind = NameServer::bind(free_address(), aliases.address);
        let looks = Looks {
            names: Some(bind.address.port()),
            ..Looks::default()
        };
        let pebble = place.start(&looks);
        let member = |rate: &str| {
            format!(
                "[community]\nregistry = \"127.0.0.1:{}\"\naddress = \"127.0.0.1\"\n\
                 rescue_listen = \"127.0.0.1:0\"\nallow_private = true\n\
                 alias_domain = \"alice.alias.test\"\n[link]\nrate = \"{rate}\"\n\
                 [rescue]\ninterval = \"100 ms\"\nregistry_period = \"1 s\"\n",
                registry.port("127.0.0.1:")
            )
        };
        // It has a certificate for aliases alone, so the authority need not reach it.
        let dns = format!(
            "names = [\"*.alice.alias.test\"]\n{}[dns]\nalias_server = \"{}\"\n\
             alias_zone = \"alias.test\"\nalias_key = \"dns.key\"\n",
            member("50 MB/s"),
            aliases.address
        );
        let rescue_site = Site::named("other.test", &place, &dns);
        std::fs::write(rescue_site.path("dns.key"), key("alice")).unwrap();
        let rescue = rescue_site.start();
        rescue.wait_for_status("\"*.alice.alias.test\",\"state\":\"valid\"");
        let dns = format!(
            "challenge = \"dns-01\"\n{}[dns]\nserver = \"{}\"\nzone = \"site.test\"\n\
             key = \"dns.key\"\n",
            member("40 kB/s"),
            bind.address
        );
        let origin_site = Site::new(&place, &dns);
        std::fs::write(origin_site.path("dns.key"), key("site")).unwrap();
        let filling = "<!-- -->".repeat(2000);
        let page = format!(
            "<!doctype html><p id=at></p><script>document.getElementById('at').textContent \
             = location.href</script>{filling}"
        );
        std::fs::write(origin_site.path("public/index.html"), page).unwrap();
        let origin = origin_site.start();
        origin.wait_for_status("\"site.test\",\"state\":\"valid\"");
        Self {
            place,
            origin_site,
            origin,
            rescue,
            bind,
            aliases,
            _pebble: pebble,
            _registry: registry,
            _rescue_site: rescue_site,
        }
    }

    /// Where every alias begins.
    fn alias_port(&self) -> String {
        format!(".alice.alias.test:{}/", self.rescue.https)
    }

    fn visit(&self, told: &str, arguments: &[&str]) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "10", "--cacert"])
            .arg(self.place.root_file())
            .args(["--connect-to", "::127.0.0.1:", "--output", "/dev/null"])
            .args(["--write-out", told])
            .args(arguments)
            .arg(self.origin.url())
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Visits until it is over; none may be sent to where everybody on the way can read.
    fn crowd(&self, is_over: &AtomicBool) {
        let began = Instant::now();
        for _ in 0..VISITS_MAX {
            if is_over.load(Ordering::Relaxed) || began.elapsed() > PATIENCE {
                return;
            }
            let place = self.visit("%{redirect_url}", &[]);
            assert!(!place.starts_with("http://"), "{place}");
        }
    }
}

#[test]
fn aliases_have_certificates_that_were_ordered_by_themselves() {
    let community = Community::start();
    let is_over = AtomicBool::new(false);
    let alias = community.alias_port();
    std::thread::scope(|scope| {
        scope.spawn(|| community.crowd(&is_over));
        let began = Instant::now();
        // A visitor who follows gets the page from the alias, and believes its certificate.
        let page = loop {
            let told = "%{http_code} %{url_effective} %{ssl_verify_result} %{size_download}";
            let got = community.visit(told, &["--location"]);
            if got.starts_with("200 https://") && got.contains(&alias) {
                assert!(got.contains(" 0 16"), "not the whole page: {got}");
                break got.split(' ').nth(1).unwrap().to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "{got}");
        };
        // So does a browser, which would refuse any other.
        let kept = "state/certificates/site.test.pem";
        let key = key_of_authority(&community.origin_site.path(kept));
        loop {
            let seen = browser::dom_of_any_name(&page, &key);
            let at = seen.split("<p id=\"at\">").nth(1).unwrap_or_default();
            if at.starts_with("https://") && at.contains(&alias) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{seen:.400}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // Nothing is left of what the authority was shown.
    community.bind.wait_for_no_record("site.test");
    community.aliases.wait_for_no_record("alice.alias.test");
}

/// What openssl says that the key of who signed the certificate is, for a browser that is to
/// believe it.
fn key_of_authority(certificate: &Path) -> String {
    let text = std::fs::read_to_string(certificate).unwrap();
    let begin = "-----BEGIN CERTIFICATE-----";
    let chain = text.split(begin).nth(2).expect("the chain has a signer");
    let signer = certificate.with_extension("signer");
    std::fs::write(&signer, format!("{begin}{chain}")).unwrap();
    let script = "openssl x509 -in \"$0\" -pubkey -noout | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | openssl base64";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(&signer)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
