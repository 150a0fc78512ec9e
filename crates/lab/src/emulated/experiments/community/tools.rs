//! Tools that nobody of us wrote look at the community while it runs: dig, nsupdate, openssl, curl
//! and Chromium.
//!
//! Each runs on the host of the customers and finds names by BIND alone, as a visitor's machine
//! does: a name server of its own is laid over `/etc/resolv.conf`, for that one program. They run
//! beside the crowd, with no part in its figures, and slowly: what they fetch is some dozen pages
//! each, one after the other. What they say is judged in `words`, and told in `answers`. The
//! shortest form has no time to ask until somebody is redirected by HTTPS, so it runs only those
//! two whose answers do not depend on that.

mod answers;
mod chromium;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::super::super::LabError;
use super::super::super::bench::Form;
use super::super::super::enclosure;
use super::super::super::network::Network;
use super::super::super::servers::SITES;
use super::eyes::{Eyes, Glance};
use super::town::{MEMBERS, Member, Town};
use super::{MALORY, NEWS, PAGES, SHOP, path};
pub use answers::{Answers, complaints, rows, sentences};
use answers::{CHROMIUM, CURL, DIG, NSUPDATE, Named, OPENSSL};
use words::{Check, Said};

/// Who runs them, and what they need.
#[derive(Debug)]
pub struct Tools<'a> {
    runner: [String; 3],
    folder: PathBuf,
    /// What stands in `/etc/resolv.conf` for them.
    resolver: PathBuf,
    server: Ipv4Addr,
    key: String,
    root: PathBuf,
    pages: PathBuf,
    own: Ipv4Addr,
    shop: Ipv4Addr,
    helpers: BTreeSet<Ipv4Addr>,
    /// When the customers are gone, and nobody needs to be redirected any more.
    end: Instant,
    form: Form,
    eyes: &'a Eyes,
}

/// Between two questions whose answer may come at any moment.
const LOOK: Duration = Duration::from_millis(100);
/// Longest that records are waited for; an update is there in a second.
const RECORDS_WITHIN: Duration = Duration::from_secs(10);
/// Longest run of one tool, in seconds: a browser takes some ten on a busy machine, and curl's
/// transfers together less than this.
const RUN_MAX: &str = "60";
/// Longest transfer of curl, in seconds: as long as a visitor waits.
const TRANSFER_MAX: &str = "7";
/// Visits of curl or a browser at most, each of up to [`PAGES`] pages.
const VISITS: usize = 5;
/// After each of these, so that they are no crowd of their own.
const PAUSE: Duration = Duration::from_millis(400);
/// A key that nobody gave to BIND, of the same length as the right one.
const WRONG_KEY: &str = "hmac-sha256:levee:bm90aGluZyBidXQgYSB3cm9uZyBrZXksIGFsbCBpbiBhbGw=";

impl<'a> Tools<'a> {
    /// Prepares them, with their files in `folder`, for a crowd that lasts so long from now.
    pub fn new(
        network: &Network,
        town: &Town<'_>,
        (eyes, folder): (&'a Eyes, PathBuf),
        (form, lasts): (Form, Duration),
    ) -> Result<Self, LabError> {
        fs::create_dir_all(&folder).map_err(LabError::machine("make the tools' folder"))?;
        let resolver = folder.join("resolv.conf");
        let server = network.host("nameserver").address;
        fs::write(&resolver, format!("nameserver {server}\n"))
            .map_err(LabError::machine("write a resolver's settings"))?;
        let others = MEMBERS.iter().filter(|Member(name, _)| *name != NEWS);
        let helpers = others.map(|Member(name, _)| network.host(name).address);
        Ok(Self {
            runner: network.host("customers").runner(),
            folder,
            resolver,
            server,
            key: town.name_server.key_of_nsupdate(),
            root: town.root().to_owned(),
            pages: town.files(SHOP),
            own: network.host(NEWS).address,
            shop: network.host(SHOP).address,
            helpers: helpers.collect(),
            end: Instant::now() + lasts,
            form,
            eyes,
        })
    }

    /// During the rescues: all that this form runs, side by side with each other.
    pub fn ask(&self) -> Result<Vec<Answers>, LabError> {
        type Asking<'t> = (Named, &'t (dyn Fn() -> Result<Vec<Check>, LabError> + Sync));
        let (dig, nsupdate) = (|| self.dig_during(), || self.nsupdate());
        let (openssl, curl) = (|| self.openssl(), || self.curl());
        let chromium = || self.chromium();
        let all: [Asking<'_>; 5] = [
            (DIG, &dig),
            (NSUPDATE, &nsupdate),
            (OPENSSL, &openssl),
            (CURL, &curl),
            (CHROMIUM, &chromium),
        ];
        let count = match self.form {
            Form::Full | Form::Compressed => all.len(),
            Form::Shortest => 2,
        };
        thread::scope(|scope| {
            let running: Vec<_> = all[..count]
                .iter()
                .map(|&(named, ask)| scope.spawn(move || if_there(named, ask)))
                .collect();
            let answers = running.into_iter().map(|one| {
                let answers = one.join();
                answers.expect("asking a tool does not panic")
            });
            answers.collect()
        })
    }

    /// When the rescues are over: what dig says then is added to what it said before.
    pub fn ask_afterwards(&self, mut answers: Vec<Answers>) -> Result<Vec<Answers>, LabError> {
        for answer in &mut answers {
            match answer {
                Answers::Ran(tool, checks) if *tool == DIG => {
                    checks.extend(self.dig_afterwards()?);
                }
                Answers::Ran(..) | Answers::Missing(_) => {}
            }
        }
        Ok(answers)
    }

    fn dig(&self, name: &str, kind: &str) -> Result<Said, LabError> {
        let at = format!("@{}", self.server);
        self.run(&["dig", &at, "+short", "+time=2", name, kind], "")
    }

    /// Rescue servers are in the name, beside the site itself, and nobody else is.
    fn dig_during(&self) -> Result<Vec<Check>, LabError> {
        let name = news();
        let (said, found) = loop {
            let said = self.dig(&name, "A")?;
            let found = words::addresses(&said.output);
            if found.len() > 1 || Instant::now() >= self.end {
                break (said, found);
            }
            thread::sleep(LOOK);
        };
        let strangers: BTreeSet<_> = found.iter().filter(|one| **one != self.own).collect();
        let all_known = strangers.iter().all(|one| self.helpers.contains(one));
        let is_right = found.contains(&self.own) && !strangers.is_empty() && all_known;
        let told = format!("itself and rescue servers, {} of them", strangers.len());
        let asked = format!("{name} A in the rescue");
        Ok(vec![Check::of(&asked, &told, is_right, &said)])
    }

    /// The site alone is in its name, and the zone has changed.
    fn dig_afterwards(&self) -> Result<[Check; 2], LabError> {
        let end = Instant::now() + RECORDS_WITHIN;
        let (said, is_right) = loop {
            let said = self.dig(&news(), "A")?;
            let is_right = words::addresses(&said.output) == [self.own].into();
            if is_right || Instant::now() >= end {
                break (said, is_right);
            }
            thread::sleep(LOOK);
        };
        let alone = Check::of("A afterwards", "itself alone", is_right, &said);
        let said = self.dig(SITES, "SOA")?;
        // The zone file has serial 1; each update counts it up, at least those of nsupdate.
        let serial = words::serial(&said.output);
        let told = format!("serial {}", serial.unwrap_or_default());
        let is_right = serial.is_some_and(|serial| serial > 1);
        Ok([alone, Check::of("SOA", &told, is_right, &said)])
    }

    /// Changes of others: refused without the key, and made with it beside Levee's records.
    fn nsupdate(&self) -> Result<Vec<Check>, LabError> {
        let name = news();
        let server = format!("server {}\nzone {SITES}\n", self.server);
        let add = format!("{server}update add {name} 60 TXT \"beside\"\nsend\n");
        let delete = format!("{server}update delete {name} TXT\nsend\n");
        let has_text = |said: &Said| said.output.trim() == "\"beside\"";
        let refused = |said: &Said, words: &[&str]| {
            let is_said = words.iter().any(|word| said.in_words().contains(word));
            !said.succeeded && is_said
        };
        let none = self.run(&["nsupdate"], &add)?;
        let wrong = self.run(&["nsupdate", "-y", WRONG_KEY], &add)?;
        let nothing = self.dig(&name, "TXT")?;
        let mut checks = vec![
            Check::of("no key", "refused", refused(&none, &["REFUSED"]), &none),
            Check::of(
                "wrong key",
                "refused",
                refused(&wrong, &["NOTAUTH", "BADSIG", "TSIG"]),
                &wrong,
            ),
            Check::of(
                "record then",
                "none",
                nothing.output.trim().is_empty() && nothing.succeeded,
                &nothing,
            ),
        ];
        let changed = self.run(&["nsupdate", "-y", &self.key], &add)?;
        let text = self.dig(&name, "TXT")?;
        let is_right = changed.succeeded && has_text(&text);
        checks.push(Check::of("right key", "record added", is_right, &changed));
        let addresses = self.dig(&name, "A")?;
        let is_right = words::addresses(&addresses.output).contains(&self.own);
        checks.push(Check::of("A beside it", "there", is_right, &addresses));
        let changed = self.run(&["nsupdate", "-y", &self.key], &delete)?;
        let text = self.dig(&name, "TXT")?;
        let is_right = changed.succeeded && text.succeeded && text.output.trim().is_empty();
        checks.push(Check::of("right key", "record removed", is_right, &changed));
        Ok(checks)
    }

    /// Certificates of the site and of an alias: signed by pebble, and for the right name.
    fn openssl(&self) -> Result<Vec<Check>, LabError> {
        let shop = shop();
        let said = self.client(&shop, &shop)?;
        let is_right = words::has_verified(&said, &shop);
        let site = Check::of(&shop, "chain and name verified", is_right, &said);
        let said = self.client(&shop, &news())?;
        let is_right = words::has_refused_name(&said);
        let other = Check::of("the same as another name", "refused", is_right, &said);
        let alias = match self.alias_of_shop()? {
            None => Check::missing("alias"),
            Some(alias) => {
                let said = self.client(&alias, &alias)?;
                let is_right = words::has_verified(&said, &alias);
                Check::of(&alias, "chain and name verified", is_right, &said)
            }
        };
        Ok(vec![site, other, alias])
    }

    fn client(&self, at: &str, verified: &str) -> Result<Said, LabError> {
        let root = self.root.display().to_string();
        let to = format!("{at}:443");
        let words = ["openssl", "s_client", "-brief", "-verify_return_error"];
        let which = ["-verify_hostname", verified, "-servername", at];
        let whom = ["-connect", &to, "-CAfile", &root];
        self.run(&[&words[..], &which, &whom].concat(), "")
    }

    /// The alias of somebody who rescues `shop` by HTTPS, as soon as there is one; none where there
    /// is none while customers come.
    fn alias_of_shop(&self) -> Result<Option<String>, LabError> {
        let within = self.end.saturating_duration_since(Instant::now());
        let asked = "a rescue of shop by HTTPS";
        let seen = self.eyes.until(asked, (Instant::now(), within), |glance| {
            alias_by_https(glance).is_some()
        });
        match seen {
            Ok(seen) => Ok(alias_by_https(&seen)),
            Err(LabError::Awaited(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Waits until `shop` redirects somebody by HTTPS, as it does to some while it is rescued: then
    /// it is worth asking. Says whether it did before the customers were gone.
    fn is_redirecting(&self) -> Result<bool, LabError> {
        let redirects = |glance: &Glance| glance.sites.get(SHOP).map(|it| it.lifetime.redirects);
        let mut before = None;
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let asked = "a redirect of shop";
            let seen = self.eyes.until(asked, (Instant::now(), left), |glance| {
                alias_by_https(glance).is_some() && redirects(glance) > before
            });
            match (seen, before) {
                (Ok(seen), None) => before = redirects(&seen),
                (Ok(_), Some(_)) => return Ok(true),
                (Err(LabError::Awaited(_)), _) => return Ok(false),
                (Err(other), _) => return Err(other),
            }
        }
    }

    /// Visits by HTTPS, until a page was redirected to an alias. Each asks for all pages, one after
    /// the other: together more than the site answers by itself while it redirects, so it needs no
    /// luck. A page at a time is redirected now and then, and on a slow machine that may be never
    /// while there are customers.
    fn curl(&self) -> Result<Vec<Check>, LabError> {
        let mut said = Said::default();
        let (mut redirected, mut visits) = (None, 0);
        let (mut pages, mut whole) = (0, 0);
        while redirected.is_none() && visits < VISITS && self.is_redirecting()? {
            let folder = tempfile::tempdir_in(&self.folder).map_err(LabError::machine("make"))?;
            said = self.fetch_all(folder.path())?;
            visits += 1;
            for (number, line) in said.output.lines().enumerate() {
                // Who is refused or gives up in a crowd has got no wrong byte.
                let Some(fetched) = words::fetched(line).filter(words::Fetched::is_page) else {
                    continue;
                };
                let got = fs::read(folder.path().join(number.to_string())).unwrap_or_default();
                pages += 1;
                whole += usize::from(self.page(&path(number)) == Some(got));
                redirected = redirected.or(Some(fetched).filter(|one| one.redirects > 0));
            }
            thread::sleep(PAUSE);
        }
        let told = redirected.as_ref().map_or_else(String::new, |one| {
            format!("followed to {} by HTTP/{}", one.url, one.version)
        });
        let redirect = format!("redirect of {}, visit {visits}", shop());
        let bytes = format!("{whole} of {pages} pages as at the origin");
        let is_right = whole == pages && pages > 0;
        Ok(vec![
            Check::of(&redirect, &told, redirected.is_some(), &said),
            Check::of(&bytes, "all", is_right, &said),
        ])
    }

    /// All pages of `shop` by one curl, into files of `folder` that have their numbers.
    fn fetch_all(&self, folder: &Path) -> Result<Said, LabError> {
        let root = self.root.display().to_string();
        let pages = (0..PAGES).flat_map(|number| {
            let file = folder.join(number.to_string()).display().to_string();
            let url = format!("https://{}{}", shop(), path(number));
            ["--output".to_owned(), file, url]
        });
        let pages: Vec<String> = pages.collect();
        let what = ["curl", "--silent", "--show-error", "--location", "--cacert"];
        let how = ["--max-time", TRANSFER_MAX, "--write-out"];
        let words = [&what[..], &[&root], &how, &[words::TOLD_BY_CURL]].concat();
        let pages = pages.iter().map(String::as_str);
        self.run(&words.into_iter().chain(pages).collect::<Vec<_>>(), "")
    }

    /// A file of `shop`; none where there is none, so that nothing is like it.
    fn page(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.pages.join(path.trim_start_matches('/'))).ok()
    }

    /// A browser opens pages, one after the other, until one was redirected. It has a new profile
    /// at each visit: the pages must not come out of its cache.
    fn chromium(&self) -> Result<Vec<Check>, LabError> {
        let url = format!("https://{}{}{}", shop(), path(0), words::ON);
        let own = format!("https://{}/", shop());
        let (mut said, mut asked, mut from) = (Said::default(), 0, None);
        while from.is_none() && asked < VISITS && self.is_redirecting()? {
            let folder = tempfile::tempdir_in(&self.folder).map_err(LabError::machine("make"))?;
            let profile = format!("--user-data-dir={}", folder.path().display());
            let trust = "--ignore-certificate-errors-spki-list";
            let trust = format!("{trust}={}", self.key_of_signer()?);
            let words = [
                &chromium::WORDS[..],
                &[&profile, &trust, "--dump-dom", &url],
            ]
            .concat();
            said = self.run(&words, "")?;
            asked += 1;
            let came_from = words::came_from(&said.output);
            let elsewhere = came_from.filter(|from| !from.starts_with(&own));
            from = elsewhere.map(|from| from.trim_end_matches(words::ON).to_owned());
            thread::sleep(PAUSE);
        }
        let numbers = (0..PAGES).map(path);
        let shown = |path: &String| from.as_ref().is_some_and(|from| from.ends_with(path));
        let page = numbers.filter(shown).find_map(|path| self.page(&path));
        let page = page.unwrap_or_default();
        let is_whole = words::shows(&said.output, &String::from_utf8_lossy(&page));
        // What it shows says more than its complaints, of which it has some about any machine.
        if !said.output.trim().is_empty() {
            said.complaint.clear();
        }
        let told = format!("followed to {}", from.as_deref().unwrap_or_default());
        let redirect = format!("redirect of {}, visit {asked}", shop());
        Ok(vec![
            Check::of(&redirect, &told, from.is_some(), &said),
            Check::of("page there", "shown whole", is_whole, &said),
        ])
    }

    /// Who signed the certificate of `shop`, as a browser is told whom to believe: SHA-256 of the
    /// key in base64. Chromium has no option for a root; that the signer's chain ends at pebble's
    /// root is what openssl says.
    fn key_of_signer(&self) -> Result<String, LabError> {
        const HASH: &str = "openssl x509 -pubkey -noout | openssl pkey -pubin -outform der \
                            | openssl dgst -sha256 -binary | openssl base64";
        let to = format!("{}:443", self.shop);
        let name = shop();
        let words = ["openssl", "s_client", "-showcerts", "-servername", &name];
        let said = self.run(&[&words[..], &["-connect", &to]].concat(), "")?;
        let signer = words::second_certificate(&said.output).unwrap_or_default();
        let said = self.run(&["sh", "-c", HASH], signer)?;
        Ok(said.output.trim().to_owned())
    }

    /// Runs a tool to its end on the host of the customers, with `input`.
    fn run(&self, words: &[&str], input: &str) -> Result<Said, LabError> {
        const SCRIPT: &str = "mount --bind \"$0\" /etc/resolv.conf && exec timeout \"$@\"";
        let failed = LabError::machine("run a tool");
        let mut child = Command::new(&self.runner[0])
            .args(&self.runner[1..])
            .args(["unshare", "--mount", "sh", "-c", SCRIPT])
            .arg(&self.resolver)
            .arg(RUN_MAX)
            .args(words)
            .env("HOME", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(&failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // One that ended early says why on its standard error.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(&failed)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said {
            succeeded: output.status.success(),
            output: text(&output.stdout),
            complaint: text(&output.stderr),
        })
    }
}

/// Asks, where the tool is there; otherwise nothing is asked, and everybody is told.
fn if_there(
    named: Named,
    ask: &dyn Fn() -> Result<Vec<Check>, LabError>,
) -> Result<Answers, LabError> {
    match enclosure::is_there(named.program) {
        true => Ok(Answers::Ran(named, ask()?)),
        false => Ok(Answers::Missing(named)),
    }
}

/// What makes a browser that opens page `number` say where it got it from, and go on to the next.
///
/// It is in each page, because only what many ask for is redirected: a page for the browser alone
/// would stay at the origin.
pub fn script(number: usize) -> String {
    let next = (number + 1 < PAGES).then(|| path(number + 1));
    words::script(&shop(), next.as_deref())
}

/// The first alias of `shop` at somebody who has a certificate for it: malory has none, and nobody
/// is redirected there by HTTPS.
fn alias_by_https(glance: &Glance) -> Option<String> {
    let shop = glance.sites.get(SHOP)?;
    let mut helpers = shop.rescue_servers.iter();
    let without = format!("{MALORY}.{SITES}");
    let found = helpers.find(|helper| !helper.site.starts_with(&without))?;
    found.alias.split(':').next().map(str::to_owned)
}

fn news() -> String {
    format!("{NEWS}.{SITES}")
}

fn shop() -> String {
    format!("{SHOP}.{SITES}")
}
