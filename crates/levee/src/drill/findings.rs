//! What a drill has found to mend, a sentence each, with the way out.
//!
//! No sentence claims what was not tried: a drill that was cut short is a finding of its own, and
//! so is each member that took part and saw no visit.

use levee_observe::words::count;

use super::account::{Account, Member, Part};
use super::report::{MemberReport, Seen, with_port};

/// Nobody was asked. The likely causes, and how to tell them apart.
const NOBODY: &str = "nobody was there to be asked: no registry is reached, no other member is \
                      registered, or all of them are full; `levee status` says which registry \
                      answers and whom this site could ask";

/// Files above some size go to few members each, by their path.
const NOT_VISITED: &str = "no visit was redirected to it; drill with more pages (--path), for \
                           longer, or with more visits a second";

/// Why it was over.
pub(super) fn ended(account: &Account) -> &str {
    let ended = account.ended.as_deref();
    ended.unwrap_or("the server does not answer any more")
}

pub(super) fn findings(seen: &Seen<'_>, members: &[MemberReport]) -> Vec<String> {
    let (account, tally) = (seen.account, seen.tally);
    let mut found = Vec::new();
    found.extend(cut_short(account));
    if account.members.is_empty() {
        found.push(NOBODY.to_owned());
    }
    for (member, report) in account.members.iter().zip(members) {
        of_member(member, report, seen, &mut found);
    }
    if tally.above_share > 0 {
        found.push(format!(
            "{} visits were above the tenth of the link that a drill may use: drill with fewer \
             visits a second, or smaller pages",
            count(tally.above_share)
        ));
    }
    if tally.left_out > 0 {
        found.push(format!(
            "{} visits were left out: so many others were still waiting",
            count(tally.left_out)
        ));
    }
    if tally.different_here > 0 {
        found.push(format!(
            "{} visits saw a page that differs each time: a drill can say nothing about its bytes",
            count(tally.different_here)
        ));
    }
    for (why, number) in &tally.failures_here {
        found.push(format!("{} visits failed: {why}", count(*number)));
    }
    found
}

/// That the drill was over before its time: then it says little about what it did not come to.
fn cut_short(account: &Account) -> Option<String> {
    let way_out = match (&account.ended, &account.way_out) {
        (Some(_), None) => return None,
        (Some(_), Some(way_out)) => way_out,
        (None, _) => "see its log, and drill again when it runs",
    };
    let ended = ended(account);
    Some(format!(
        "the drill was over before its time: {ended}; {way_out}"
    ))
}

fn of_member(member: &Member, report: &MemberReport, seen: &Seen<'_>, found: &mut Vec<String>) {
    let site = &member.site;
    match &member.part {
        Part::Asked => found.push(format!(
            "{site} was not tried: it had not answered when the drill ended; drill for longer"
        )),
        Part::Absent { why } => found.push(format!("{site}: {why}{}", way_out(why))),
        Part::Helps { alias, left, .. } => {
            let alias = with_port(alias);
            if let Some(why) = left {
                found.push(format!("{site} left the drill: {why}"));
            }
            if let Some(trouble) = seen.names.get(&alias) {
                found.push(format!("{site}: {trouble}"));
            }
            let failures = seen.tally.helpers.get(&alias);
            for (why, number) in failures.iter().flat_map(|helper| &helper.failures) {
                let number = count(*number);
                found.push(format!(
                    "{site}: {number} visits failed: {why}{}",
                    way_out(why)
                ));
            }
            if report.visits == 0 {
                found.push(format!("{site} was not tried: {NOT_VISITED}"));
            }
            if report.different > 0 {
                found.push(format!(
                    "{site}: {} visits saw other bytes than this site shows: a page that differs \
                     by visitor must say `Cache-Control: private`",
                    count(report.different)
                ));
            }
        }
    }
}

/// What an operator can do about it.
fn way_out(why: &str) -> &'static str {
    if why.contains("cannot be reached") {
        " (is its port open in every firewall on the way?)"
    } else if why == "it refused" {
        " (it has no time now, or its setting community.drills is false)"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use levee_control::{DrillEnd, DrillStop};

    use super::super::client::Wanted;
    use super::super::crowd::{Helper, Tally};
    use super::super::report::Report;
    use super::*;

    const ALIAS: &str = "www-vh1.a.example:80";

    fn member(part: Part) -> Member {
        Member {
            site: "a.example".to_owned(),
            offered: 500_000,
            asked_ms: 0,
            part,
        }
    }

    fn helps() -> Part {
        Part::Helps {
            answer_ms: 3,
            rate: 400_000,
            alias: "www-vh1.a.example".to_owned(),
            address: None,
            left: None,
        }
    }

    fn account(end: &DrillEnd, members: Vec<Member>) -> Account {
        Account {
            running: false,
            ended: Some(end.to_string()),
            way_out: end.way_out().map(str::to_owned),
            members,
        }
    }

    fn visited(visits: u64) -> Tally {
        let helper = Helper {
            visits,
            ..Helper::default()
        };
        Tally {
            visits,
            helpers: [(ALIAS.to_owned(), helper)].into(),
            ..Tally::default()
        }
    }

    fn report(account: &Account, tally: &Tally) -> Report {
        Report::new(&Seen {
            site: "www.example:80",
            wanted: &Wanted {
                rate: 2,
                length: Duration::from_secs(5),
                paths: vec!["/".to_owned()],
                authorities: None,
            },
            lasted: Duration::from_secs(5),
            account,
            tally,
            names: &BTreeMap::new(),
            page_bytes: 1000.0,
        })
    }

    /// The one thing to mend, which the whole report says as well.
    fn check(account: &Account, tally: &Tally, expected: &str) {
        let report = report(account, tally);
        let [finding] = report.findings.as_slice() else {
            panic!("{report}");
        };
        assert!(finding.contains(expected), "{report}");
        assert!(report.is_well().is_err());
        assert!(!report.to_string().contains("Nothing to mend"), "{report}");
    }

    #[test]
    fn a_drill_with_all_its_time_and_everybody_tried_is_well() {
        let report = report(
            &account(&DrillEnd::Over, vec![member(helps())]),
            &visited(9),
        );
        assert_eq!(report.is_well(), Ok(()), "{report}");
        assert!(
            report.to_string().ends_with("Nothing to mend.\n"),
            "{report}"
        );
    }

    #[test]
    fn a_drill_that_was_cut_short_is_not_well_and_says_what_to_do() {
        for (end, expected) in [
            (
                DrillEnd::Crowd,
                "real visitors has come; drill again in a quiet hour",
            ),
            (
                DrillEnd::Stopped(DrillStop::Operator),
                "stopped it; drill again",
            ),
            (
                DrillEnd::Stopped(DrillStop::Client),
                "seen enough; drill again",
            ),
            (
                DrillEnd::Stopped(DrillStop::Reload),
                "read anew; drill again",
            ),
            (DrillEnd::Drain, "this server stops"),
        ] {
            let account = account(&end, vec![member(helps())]);
            check(&account, &visited(9), expected);
        }
        let gone = Account {
            members: vec![member(helps())],
            ..Account::default()
        };
        check(&gone, &visited(9), "does not answer any more; see its log");
    }

    #[test]
    fn who_was_not_visited_is_named_as_not_tried() {
        let unvisited = account(&DrillEnd::Over, vec![member(helps())]);
        check(
            &unvisited,
            &Tally::default(),
            "a.example was not tried: no visit",
        );
        let silent = account(&DrillEnd::Over, vec![member(Part::Asked)]);
        check(
            &silent,
            &Tally::default(),
            "a.example was not tried: it had not",
        );
    }

    #[test]
    fn where_nobody_was_asked_the_likely_causes_are_named() {
        let alone = account(&DrillEnd::Over, Vec::new());
        for expected in [
            "no registry is reached",
            "no other member",
            "full",
            "levee status",
        ] {
            check(&alone, &Tally::default(), expected);
        }
    }
}
