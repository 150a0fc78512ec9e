//! `levee check`: whether a server could run here with these settings, and what would go wrong
//! later.
//!
//! Everything is told at once. Errors are what would stop a start; warnings are what would go on
//! unnoticed: visitors turned away, help that nobody can give or get. Notes are what does no harm:
//! files that nobody reads any more. Nothing is left behind, and nobody is asked: what a first
//! start would make is not made, only tried (`probe.rs`). It looks with the rights of whoever runs
//! it, so it is best run as the user that runs levee.

mod places;
mod probe;

use std::path::Path;

use crate::explain::told;
use crate::settings::{self, Complaint, Settings, SettingsFile};
use crate::{dns, https, node};

/// What was found, with the lines of the file.
struct Findings<'a> {
    file: &'a SettingsFile,
    errors: Vec<Complaint>,
    warnings: Vec<Complaint>,
    notes: Vec<Complaint>,
}

/// The report of `levee check`.
///
/// # Errors
/// Every complaint, one a line, with the file's name before it.
pub fn run(path: &Path) -> Result<String, String> {
    let file = settings::read_file(path).map_err(|all| told(path, &all))?;
    let (settings, flaws) = Settings::settle_all(&file);
    let findings = look(&settings, &file, flaws);
    let mut report = match findings.errors.as_slice() {
        [] => format!("{}: good, site {}", path.display(), settings.site.name),
        errors => told(path, errors),
    };
    for (kind, all) in [("warning", &findings.warnings), ("note", &findings.notes)] {
        for one in all {
            report.push_str(&format!("\n{}: {kind}: {one}", path.display()));
        }
    }
    match findings.errors.is_empty() {
        true => Ok(report),
        false => Err(report),
    }
}

/// What is found beside the `flaws` of settings that did not settle. Of those only what is certain
/// all the same: where a flaw stands, the server would have other settings than these.
fn look<'a>(settings: &Settings, file: &'a SettingsFile, flaws: Vec<Complaint>) -> Findings<'a> {
    let mut findings = Findings {
        file,
        errors: vec![],
        warnings: vec![],
        notes: vec![],
    };
    places::look(settings, &mut findings);
    let is_sound = |sections: &[&str]| {
        let speaks = |flaw: &Complaint| sections.iter().any(|section| flaw.text.contains(section));
        !flaws.iter().any(speaks)
    };
    if is_sound(&["tls.", "acme."]) {
        let certificates = https::check(settings);
        findings.errors.extend(without_lines(certificates.errors));
        findings
            .warnings
            .extend(without_lines(certificates.warnings));
    }
    if is_sound(&["dns.", "site.name"]) {
        findings.errors.extend(without_lines(dns::check(settings)));
    }
    findings.errors.retain(|error| !file.follows(error));
    if flaws.is_empty() {
        warn(settings, &mut findings);
    } else {
        findings.warnings.clear();
        findings.notes.clear();
    }
    findings.errors.extend(flaws);
    findings.errors.sort();
    findings.warnings.sort();
    findings.notes.sort();
    findings
}

fn without_lines(texts: impl IntoIterator<Item = String>) -> impl Iterator<Item = Complaint> {
    let complaint = |text| Complaint { line: None, text };
    texts.into_iter().map(complaint)
}

/// What would do nothing, or not what was meant.
fn warn(settings: &Settings, findings: &mut Findings<'_>) {
    if let Some(why) = dns::unused(settings) {
        let text = format!("dns.zone: no rescue server is put into the site's name: {why}");
        findings.warn("dns.zone", text);
    }
    if settings.community.is_some() && settings.state_folder.is_none() {
        let text =
            "state.folder is not given: after a restart the numbers of aliases begin anew, so \
                    that links to one origin's alias lead to another; give a folder"
                .to_owned();
        findings.warn("community.registry", text);
    }
    // Where it is not given it is found at the start, by asking others.
    let given = settings.community.as_ref().and_then(|own| own.address);
    for text in given.map_or_else(Vec::new, |given| node::unheard(settings, given)) {
        findings.warn("community.address", text);
    }
}

impl Findings<'_> {
    fn complain(&mut self, setting: &str, text: String) {
        let line = self.file.line(setting);
        self.errors.push(Complaint { line, text });
    }

    fn warn(&mut self, setting: &str, text: String) {
        let line = self.file.line(setting);
        self.warnings.push(Complaint { line, text });
    }

    fn note(&mut self, setting: &str, text: String) {
        let line = self.file.line(setting);
        self.notes.push(Complaint { line, text });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SITE: &str = "[site]\nname = \"www.a.example\"\nfolder = \"public\"\n";
    const COMMUNITY: &str = "[community]\nregistry = \"192.0.2.7:7070\"\naddress = \"192.0.2.10\"\n\
                             alias_domain = \"aliases.example.net\"\n[state]\nfolder = \"state\"\n";

    /// A folder with settings, and what is told of them.
    struct Stage(tempfile::TempDir);

    impl Stage {
        fn new(settings: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            fs::create_dir(place.path().join("public")).unwrap();
            fs::write(place.path().join("levee.toml"), settings).unwrap();
            Self(place)
        }

        /// A site that orders certificates and serves its own zone.
        fn with_zone() -> Self {
            let dns =
                "[dns]\nlisten = \"127.0.0.1:5300\"\nzone_file = \"zone\"\nzone = \"a.example\"\n";
            let stage = Self::new(&format!("{SITE}{COMMUNITY}{dns}[acme]\nagree = true\n"));
            stage.write(
                "zone",
                "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\n\
                 ns IN A 192.0.2.10\nwww IN A 192.0.2.10\n",
            );
            stage
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }

        fn told(&self) -> Result<String, String> {
            run(&self.0.path().join("levee.toml"))
        }
    }

    /// What of it is no warning.
    fn errors(told: &str) -> String {
        let lines = told.lines().filter(|line| !line.contains(": warning: "));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_with_its_line() {
        let stage = Stage::new("[site]\nfolder = \"pictures\"\n");
        let told = stage.told().unwrap_err();
        assert!(
            told.contains("line 2: site.folder: there is no folder"),
            "{told}"
        );
    }

    #[test]
    fn all_that_is_damaged_in_the_state_folder_is_told_at_once() {
        let stage = Stage::new(&format!("{SITE}{COMMUNITY}"));
        let good = stage.told().unwrap();
        assert!(good.ends_with("good, site www.a.example"), "{good}");
        assert!(!stage.0.path().join("state").exists(), "it only looks");
        stage.write("state/aliases", "1 www-vh1\n");
        stage.write("state/given", "yesterday a lot\n");
        stage.write("state/identity.key", "no key at all\n");
        stage.write("state/expelled", "somebody\n");
        stage.write("state/pardons", "somebody\n");
        let told = stage.told().unwrap_err();
        for part in [
            "aliases line 1",
            "given line 1",
            "identity.key",
            "expelled line 1",
            "pardons line 1",
        ] {
            assert!(told.contains(part), "{part} is missing: {told}");
        }
        assert_eq!(told.lines().count(), 5, "{told}");
        assert!(told.lines().all(|line| line.contains("line 9: ")), "{told}");
    }

    #[test]
    fn what_was_written_down_for_dns_and_certificates_is_looked_at_too() {
        let stage = Stage::with_zone();
        let certificates = "state/certificates";
        let account = format!("{certificates}/account-acme-v02.api.letsencrypt.org-directory.json");
        stage.write("state/dns-serial-a.example", "; serial 7\n");
        stage.write(&format!("{certificates}/records-in-dns.json"), "[]");
        stage.write(&account, "{");
        let told = stage.told().unwrap();
        let warned = told.lines().find(|line| line.contains("account-")).unwrap();
        assert!(warned.contains("no certificate is ordered"), "{told}");
        assert!(warned.ends_with("mend or delete the file"), "{told}");
        stage.write("state/dns-serial-a.example", "seven\n");
        stage.write(&format!("{certificates}/records-in-dns.json"), "[{");
        let told = stage.told().unwrap_err();
        for part in ["dns-serial-a.example is damaged", "records-in-dns.json is"] {
            let line = told.lines().find(|line| line.contains(part));
            let line = line.unwrap_or_else(|| panic!("{part} is missing: {told}"));
            assert!(line.contains("line 9: state.folder: "), "{told}");
            assert!(line.ends_with("mend or delete the file"), "{told}");
        }
        assert_eq!(errors(&told).lines().count(), 2, "{told}");
        // Whoever runs the tests may read everything; a folder nobody can read as a file.
        for file in ["dns-serial-a.example", "certificates/records-in-dns.json"] {
            let path = stage.0.path().join("state").join(file);
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }
        let told = errors(&stage.told().unwrap_err());
        assert_eq!(told.matches("Is a directory").count(), 2, "{told}");
        assert_eq!(told.matches("; ").count(), 2, "each has a way out: {told}");
    }

    #[test]
    fn an_order_that_cannot_be_gone_on_with_is_a_warning() {
        let stage = Stage::new(&format!("{SITE}{COMMUNITY}[acme]\nagree = true\n"));
        let order = "state/certificates/www.a.example.order";
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let text = |key: &str| serde_json::json!({"directory": "", "url": "", "key": key});
        stage.write(order, &text(&key).to_string());
        let told = stage.told().unwrap();
        assert!(!told.contains(".order"), "{told}");
        for damaged in ["{".to_owned(), text("KEY").to_string()] {
            stage.write(order, &damaged);
            let told = stage.told().unwrap();
            let warned = told.lines().find(|line| line.contains(order)).unwrap();
            assert!(warned.contains("warning: line 9: state.folder"), "{told}");
            assert!(warned.contains("www.a.example is begun anew"), "{told}");
            assert!(warned.ends_with("mend or delete the file"), "{told}");
        }
    }

    #[test]
    fn files_that_nobody_reads_any_more_are_named_and_stop_nobody() {
        let stage = Stage::with_zone();
        stage.write("state/dns-serial-a.example", "; serial 7\n");
        let told = stage.told().unwrap();
        assert!(!told.contains(": note: "), "{told}");
        let strays = [
            ("dns-serial-old.example", "[dns] does not name"),
            ("dns-updates-aliases.example", "`levee dns`"),
            ("certificates/www.old.example.order", "[acme]"),
        ];
        for (stray, _) in strays {
            // Whatever is in them: nobody reads it.
            stage.write(&format!("state/{stray}"), "{");
        }
        let told = stage.told().unwrap();
        for (stray, why) in strays {
            let noted = told.lines().find(|line| line.contains(stray)).unwrap();
            assert!(noted.contains(": note: line 9: state.folder: "), "{told}");
            assert!(noted.contains(why), "{told}");
            assert!(noted.ends_with("can be deleted"), "{told}");
        }
        assert_eq!(told.matches(": note: ").count(), strays.len(), "{told}");
    }

    #[test]
    fn a_zone_that_nothing_is_put_into_is_a_warning_where_somebody_could_help() {
        let dns =
            "[dns]\nlisten = \"127.0.0.1:5300\"\nzone_file = \"zone\"\nzone = \"a.example\"\n";
        let tls = "[acme]\nagree = true\n";
        let zone = "$TTL 30\n@ IN SOA ns admin 1 3600 600 604800 30\n@ IN NS ns\n\
                    ns IN A 192.0.2.10\nwww IN A 192.0.2.10\n";
        let stage = Stage::new(&format!("{SITE}{COMMUNITY}{dns}{tls}"));
        stage.write("zone", zone);
        let told = stage.told().unwrap();
        assert!(told.contains("warning: "), "{told}");
        assert!(told.contains("visitors come by HTTPS"), "{told}");
        let alone = Stage::new(&format!("{SITE}{dns}"));
        alone.write("zone", zone);
        let told = alone.told().unwrap();
        assert!(told.ends_with("good, site www.a.example"), "{told}");
    }

    /// As the settings of the Debian package do: systemd makes it at each start.
    #[test]
    fn a_folder_for_the_log_that_may_come_with_the_service_is_a_warning() {
        let stage = Stage::new(&format!("{SITE}[log]\naccess = \"logs/access.log\"\n"));
        let told = stage.told().unwrap();
        assert!(told.contains("warning: line "), "{told}");
        assert!(told.contains("/logs; make it, unless"), "{told}");
    }

    #[test]
    fn a_file_where_the_state_folder_should_be_is_told() {
        let stage = Stage::new(&format!("{SITE}{COMMUNITY}"));
        stage.write("state", "");
        let told = stage.told().unwrap_err();
        assert!(told.contains("line 9: state.folder: "), "{told}");
        assert!(told.contains("is no folder"), "{told}");
    }

    #[test]
    fn an_address_where_nobody_listens_is_a_warning() {
        let text = format!("{SITE}{COMMUNITY}").replace("192.0.2.10", "2001:db8::7");
        let stage = Stage::new(&text.replace(
            "folder = \"public\"",
            "folder = \"public\"\nlisten = \"192.0.2.10:80\"",
        ));
        let told = stage.told().unwrap();
        assert!(
            told.contains("warning: line 7: other members are told 2001:db8::7"),
            "{told}"
        );
        assert!(
            told.contains("site.listen has no address of IPv6"),
            "{told}"
        );
    }

    #[test]
    fn an_access_log_that_cannot_be_written_is_told() {
        let cases = [
            ("/proc/levee.log", "/proc cannot be written: "),
            ("public", "is a folder; name a file in it"),
            ("logs/here/access.log", "/logs/here; make it"),
        ];
        for (access, why) in cases {
            let stage = Stage::new(&format!("{SITE}[log]\naccess = \"{access}\"\n"));
            let told = stage.told().unwrap_err();
            assert!(told.contains("levee.toml: line 5: log.access: "), "{told}");
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn a_socket_that_cannot_be_bound_is_told() {
        let listen = |setting: &str, path: &Path| {
            let text = format!(
                "{SITE}{setting} = [\"127.0.0.1:0\", \"unix:{}\"]\n",
                path.display()
            );
            Stage::new(&text)
        };
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "").unwrap();
        let cases = [
            (Path::new("/proc/levee.sock"), "/proc cannot be written: "),
            (&place.path().join("a/b/levee.sock"), "/a/b; make it"),
            (
                &place.path().join("file"),
                "/file is no socket; move it away",
            ),
            (
                &place.path().join("file/sock"),
                "/file is no folder; move it",
            ),
        ];
        let tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\nlisten";
        for (path, why) in cases {
            let told = listen("listen", path).told().unwrap_err();
            assert!(told.contains("levee.toml: line 4: site.listen: "), "{told}");
            assert!(told.contains(why), "{told}");
            let told = listen(tls, path).told().unwrap_err();
            assert!(told.contains("levee.toml: line 7: tls.listen: "), "{told}");
            assert!(told.contains(why), "{told}");
        }
        let missing = listen("listen", &place.path().join("run/levee.sock"));
        let told = missing.told().unwrap();
        assert!(told.contains("warning: line 4: site.listen: "), "{told}");
        assert!(told.contains("/run; make it, unless"), "{told}");
        // Nobody has a right to that folder, root neither.
        let told = listen("listen", Path::new("/dev/pts/levee.sock")).told();
        let told = told.unwrap();
        assert!(told.contains("warning: line 4: site.listen: "), "{told}");
        assert!(told.contains("/dev/pts cannot be written: "), "{told}");
    }

    /// Most often by the server whose settings are checked.
    #[test]
    fn a_socket_that_is_bound_already_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("levee.sock");
        let text = format!(
            "{SITE}listen = [\"127.0.0.1:0\", \"unix:{}\"]\n",
            path.display()
        );
        let stage = Stage::new(&text);
        let is_good = || stage.told().unwrap().ends_with("good, site www.a.example");
        assert!(is_good());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        let bound = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(is_good());
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(bound);
        assert!(is_good(), "its file is replaced at the next start");
    }

    #[test]
    fn an_access_log_that_can_be_written_is_left_as_it_is() {
        let stage = Stage::new(&format!("{SITE}[log]\naccess = \"access.log\"\n"));
        stage.told().unwrap();
        assert!(!stage.0.path().join("access.log").exists());
        stage.write("access.log", "a line\n");
        stage.told().unwrap();
        let text = fs::read_to_string(stage.0.path().join("access.log")).unwrap();
        assert_eq!(text, "a line\n");
        assert_eq!(fs::read_dir(stage.0.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_state_folder_that_cannot_be_made_is_told_to_root_as_well() {
        for folder in ["/proc/levee", "/proc/levee/state"] {
            let text = format!("{SITE}[state]\nfolder = \"{folder}\"\n");
            let told = Stage::new(&text).told().unwrap_err();
            let expected =
                format!("line 5: state.folder: {folder} cannot be made: /proc cannot be written: ");
            assert!(told.contains(&expected), "{told}");
        }
    }

    #[test]
    fn mistakes_of_the_file_and_around_it_are_told_at_once() {
        let stage = Stage::new(
            "[site]\nfolder = \"pictures\"\nlisten = [\"here\"]\n[log]\n\
             access = \"/proc/levee.log\"\n[rescue]\ninterval = \"1 ms\"\n\
             [tls]\ncertificate = \"none.pem\"\n",
        );
        let told = stage.told().unwrap_err();
        for part in [
            "line 2: site.folder: there is no folder",
            "line 3: site.listen: ",
            "line 5: log.access: ",
            "line 7: rescue.interval",
            "/none.pem",
        ] {
            assert!(told.contains(part), "{part} is missing: {told}");
        }
        assert_eq!(told.lines().count(), 5, "{told}");
    }

    #[test]
    fn what_only_follows_from_a_mistake_is_not_told() {
        let stage = Stage::new("[site]\nfoldr = \"public\"\n[tls]\nkey = \"k\"\n");
        let told = stage.told().unwrap_err();
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(
            told.contains("line 2: there is no setting `site.foldr`"),
            "{told}"
        );
        assert!(told.contains("line 4: tls.key does nothing"), "{told}");
        let stage =
            Stage::new("[site]\nfolder = \"public\"\n[tls]\ncertificate = 3\nkey = \"k\"\n");
        let told = stage.told().unwrap_err();
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}
