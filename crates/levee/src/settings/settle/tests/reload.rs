//! What of a changed file waits for the next start, and what is told of it.

use super::*;
use crate::settings::{Change, SETTINGS};

/// A site that has everything.
const SITE: &str = "[site]\nname = \"www.example.org\"\nfolder = \"p\"\n\
    [community]\nregistry = \"192.0.2.7:7070\"\nalias_domain = \"aliases.example.net\"\n\
    [dns]\nserver = \"192.0.2.53:53\"\nkey = \"k\"\nalias_server = \"192.0.2.55:53\"\n\
    alias_key = \"k\"\n[state]\nfolder = \"s\"\n[acme]\nagree = true\n";

/// What is in force when a server that runs with `start` has read `now`, and what is told.
fn reloaded(start: &str, now: &str) -> (Settings, Vec<&'static str>) {
    let (start, now) = (read(start), read(now));
    let running = Settings::settle(&start).expect("good");
    let mut new = Settings::settle(&now).expect("good");
    let later = new.wait_for_restart(&running, &now.differences(&start));
    (new, later)
}

#[test]
fn what_waits_for_a_restart_is_told_at_each_reload_and_stays_as_it_runs() {
    let start = read("[site]\nfolder = \"p\"\n");
    let now = read(
        "[site]\nfolder = \"q\"\nlisten = [\"127.0.0.1:81\"]\n[upstream]\nfailures_max = 9\n\
         connect_max = \"1 s\"\n[community]\nregistry = \"192.0.2.7:7070\"\n\
         alias_domain = \"aliases.example.net\"\n",
    );
    let running = Settings::settle(&start).expect("good");
    let mut in_force = running.clone();
    for _ in 0..2 {
        let mut new = Settings::settle(&now).expect("good");
        let later = new.wait_for_restart(&in_force, &now.differences(&start));
        assert_eq!(
            later,
            [
                "site.listen",
                "upstream.connect_max",
                "community.registry",
                "community.alias_domain"
            ]
        );
        assert_eq!(new.site.listen, running.site.listen);
        assert_eq!(new.community, None);
        assert_eq!(new.upstream.group.rules.failures_max, 9);
        assert_ne!(new.site.content, running.site.content);
        in_force = new;
    }
}

#[test]
fn only_what_was_changed_is_told() {
    let renamed = SITE.replace("www.example.org", "blog.example.org");
    assert_eq!(reloaded(SITE, &renamed).1, ["site.name"]);
    let moved = SITE.replace("\"s\"", "\"t\"");
    assert_eq!(reloaded(SITE, &moved).1, ["state.folder"]);
    let cached = format!("{SITE}[cache]\nmemory = \"1 MiB\"\n");
    assert_eq!(reloaded(SITE, &cached).1, ["cache.memory"]);
    let said = format!("{SITE}[limits]\nconnections = 10000\n[rescue]\nservers_max = 3\n");
    assert_eq!(reloaded(SITE, &said).1, [""; 0], "the default is no change");
}

#[test]
fn no_certificate_is_ordered_for_a_name_that_waits() {
    let orders = |settings: &Settings| {
        let acme = settings.acme.as_ref().expect("agreed");
        let names = acme.names.iter().map(ToString::to_string);
        names.collect::<Vec<_>>().join(" ")
    };
    let running = settle(SITE).expect("good");
    assert_eq!(orders(&running), "www.example.org *.aliases.example.net");
    let elsewhere = SITE
        .replace("www.example.org", "www.example.com")
        .replace("aliases.example.net", "aliases.example.edu");
    let (new, later) = reloaded(SITE, &elsewhere);
    assert_eq!(later, ["site.name", "community.alias_domain"]);
    assert_eq!(new, running);
    // Further names do not wait, nor do names that the operator wants.
    let more = SITE.replace("[community]", "also = [\"example.org\"]\n[community]");
    let (new, later) = reloaded(SITE, &more);
    assert_eq!((orders(&new).split(' ').count(), later.len()), (3, 0));
    let wanted = format!("{elsewhere}names = [\"www.example.com\"]\n");
    assert_eq!(orders(&reloaded(SITE, &wanted).0), "www.example.com");
}

#[test]
fn https_waits_where_there_is_no_listener_for_it() {
    let alone = "[site]\nfolder = \"p\"\n";
    let tls = format!("{alone}[tls]\ncertificate = \"c\"\nmin_version = \"1.3\"\n");
    let (new, later) = reloaded(alone, &tls);
    assert_eq!(later, ["tls.certificate", "tls.min_version"]);
    assert_eq!(new, settle(alone).expect("good"));
    let (new, later) = reloaded(&tls, &tls.replace("1.3", "1.2"));
    assert_eq!(later, [""; 0]);
    assert_ne!(new.tls, settle(&tls).expect("good").tls);
}

/// The table says of each setting whether it waits, and the documents say what the table says.
#[test]
fn each_setting_waits_as_the_table_says() {
    let running = Settings::settle(&read(SITE)).expect("good");
    for setting in SETTINGS {
        let mut changed = read(SITE);
        let example = setting.example.trim_matches(['[', ']']);
        let first = example.split(',').next().unwrap_or_default();
        changed.set(setting.name, first.trim_matches('"'));
        // As far as it settles: the example of one setting does not fit all others.
        let (settled, _) = Settings::settle_all(&changed);
        let mut new = settled.clone();
        let told = new.wait_for_restart(&running, &[setting]);
        let waits = setting.change == Change::Restart;
        assert_eq!(told.is_empty(), !waits, "{}", setting.name);
        if waits {
            assert_eq!(new, running, "{}", setting.name);
        } else {
            assert_eq!(new == running, settled == running, "{}", setting.name);
        }
    }
}

/// The only certificates of a site may come by ACME: without them there would be no HTTPS.
#[test]
fn who_takes_https_out_of_the_file_has_it_until_the_next_start() {
    let without = SITE.replace("[acme]\nagree = true\n", "");
    let (new, later) = reloaded(SITE, &without);
    let running = Settings::settle(&read(SITE)).expect("good");
    assert_eq!(later, ["acme.agree"]);
    assert!(new.tls.is_some() && new.tls == running.tls);
    assert!(new.acme.is_some() && new.acme == running.acme);
}

#[test]
fn a_name_that_is_said_twice_gets_one_certificate() {
    let twice = SITE.replace(
        "folder = \"p\"",
        "folder = \"p\"\nalso = [\"www.example.org\"]",
    );
    let (new, _) = reloaded(&twice, &twice);
    let names = new.acme.expect("ACME").names;
    let site = names
        .iter()
        .filter(|name| name.to_string() == "www.example.org");
    assert_eq!(site.count(), 1, "{names:?}");
}
