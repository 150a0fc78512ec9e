//! Whether rescue servers deliver what we publish (M3): what looks at their pages come to.
//!
//! ```text
//!  first look ─▶ right, or no page: nothing
//!      │ wrong
//!      ▼
//!  the page is taken back there (PURGE), and looked at again
//!      │ wrong: guilty        │ right: a strike against it
//!                             ▼
//!                  too many strikes: guilty
//! ```
//!
//! The second look is what protects the honest: a page that changed a moment ago, or whose
//! signature had not come yet, is right after its purge. Strikes are for who alters pages only
//! until it is told to fetch them anew. Members who look at each other can only report: the first
//! report of a page has it purged there, and makes us look. Whoever alters pages may spare the one
//! address that is ours, so two members of different domains who still saw it after its purge are
//! believed. One alone, or many of one domain, is not.
//!
//! **How many looks it takes.** Who alters the share a of what it delivers is met by one look with
//! probability a, by n looks with 1 - (1 - a)^n. So n = ln(1 - p) / ln(1 - a) looks find it with
//! probability p: 21 for a fifth and 0.99, 90 for a twentieth.
//!
//! **Who boasts.** A look also shows how long a visitor waits. Whoever offers more than its link
//! can carry gets visitors for whom there is no room, and says nothing of it, because it does not
//! know or because it lies. So a rescue server is parted from when a page comes late from it twice
//! in a row, the second time from its cache, while one comes in time from another. Where nobody
//! else shows that the fault is not on our side, it takes two such pages.
//!
//! Nothing here knows pages or digests; the shell looks, and tells what it saw.

use std::collections::{BTreeMap, BTreeSet};

use levee_vocab::HostName;

/// What one look at a delivered page showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It carries our signature, and is what that says.
    Authentic,
    /// It carries no signature that holds now, and is what we have ourselves.
    Same,
    /// It carries no signature that holds now, and is something else.
    Foreign,
    /// It carries a signature that is not over it, or not of ours.
    Forged,
    /// It sends visitors where we do not: by a redirect, or by a field that we have not sent.
    Diverted,
    /// There was no page to judge, or what we have ourselves changes all the time.
    Nothing,
}

/// How a page came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No visitor would complain.
    Timely,
    /// A visitor would have waited too long, or for nothing.
    Late,
}

/// What is to be done after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing.
    Nothing,
    /// End the rescue: visitors wait too long there.
    Part,
    /// Have the page purged there, and look again.
    LookAgain,
    /// End the rescue and expel the member.
    Expel,
}

/// What is known of the members that help us. Forgotten when they leave.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    records: BTreeMap<HostName, Record>,
}

#[derive(Clone, Debug, Default)]
struct Record {
    looks: u64,
    forged: u32,
    foreign: u32,
    /// Pages that were purged there because of a report.
    purged: BTreeSet<String>,
    /// Domains of those who saw one of them altered after that.
    reporters: BTreeSet<String>,
    /// Pages in a row that came late; none before the first page.
    late: Option<u32>,
}

/// Late pages in a row for which a member is parted from where nobody is timely: it may be we who
/// are slow.
const LATE_MAX: u32 = 2;

/// Forged pages that were right when they had been purged. Damage on the way can make one.
const FORGED_MAX: u32 = 2;
/// Foreign pages of that kind, and those that lead elsewhere. An honest member may show one for
/// seconds after a change, where the signature was late.
const FOREIGN_MAX: u32 = 5;
/// Members of so many domains are believed without our own eyes.
const REPORTERS_MIN: usize = 2;
/// Pages of one member that are purged because of reports: more would be a way to empty its cache.
const PURGED_MAX: usize = 16;
/// Members remembered at most: no more help one origin.
const RECORDS_MAX: usize = 256;

impl Look {
    /// Whether something is wrong.
    pub const fn is_wrong(self) -> bool {
        match self {
            Self::Foreign | Self::Forged | Self::Diverted => true,
            Self::Authentic | Self::Same | Self::Nothing => false,
        }
    }

    /// Name for metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Authentic => "authentic",
            Self::Same => "same",
            Self::Foreign => "foreign",
            Self::Forged => "forged",
            Self::Diverted => "diverted",
            Self::Nothing => "nothing",
        }
    }

    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Authentic,
        Self::Same,
        Self::Foreign,
        Self::Forged,
        Self::Diverted,
        Self::Nothing,
    ];
}

impl Inspection {
    /// The first look at a page of `member`.
    pub fn first(&mut self, member: &HostName, look: Look) -> NextStep {
        if let Some(record) = self.record(member) {
            record.looks += 1;
        }
        match look.is_wrong() {
            true => NextStep::LookAgain,
            false => NextStep::Nothing,
        }
    }

    /// How a page of `member` came; where it was late, how it came the second time.
    pub fn paced(&mut self, member: &HostName, pace: Pace) -> NextStep {
        let mut others = self.records.iter().filter(|(other, _)| *other != member);
        let another_is_timely = others.any(|(_, record)| record.late == Some(0));
        let Some(record) = self.record(member) else {
            return NextStep::Nothing;
        };
        let late = match pace {
            Pace::Timely => 0,
            Pace::Late => record.late.unwrap_or(0).saturating_add(1),
        };
        record.late = Some(late);
        let too_many = if another_is_timely { 1 } else { LATE_MAX };
        if late < too_many {
            return NextStep::Nothing;
        }
        // Its visitors go to the others, who may become slow by that: they are looked at anew.
        self.records.values_mut().for_each(|one| one.late = None);
        NextStep::Part
    }

    /// The look at the same page after its purge; `first` is what was seen before.
    pub fn second(&mut self, member: &HostName, first: Look, second: Look) -> NextStep {
        if second.is_wrong() {
            return NextStep::Expel;
        }
        let Some(record) = self.record(member) else {
            return NextStep::Nothing;
        };
        match first {
            Look::Forged => record.forged += 1,
            Look::Foreign | Look::Diverted => record.foreign += 1,
            Look::Authentic | Look::Same | Look::Nothing => {}
        }
        match record.forged >= FORGED_MAX || record.foreign >= FOREIGN_MAX {
            true => NextStep::Expel,
            false => NextStep::Nothing,
        }
    }

    /// The member `by` reports the page at `target` of `member`.
    pub fn reported(&mut self, member: &HostName, by: &HostName, target: &str) -> NextStep {
        if member == by {
            return NextStep::Nothing;
        }
        let Some(record) = self.record(member) else {
            return NextStep::Nothing;
        };
        if !record.purged.contains(target) {
            if record.purged.len() >= PURGED_MAX {
                return NextStep::Nothing;
            }
            record.purged.insert(target.to_owned());
            return NextStep::LookAgain;
        }
        record.reporters.insert(by.domain().to_owned());
        match record.reporters.len() >= REPORTERS_MIN {
            true => NextStep::Expel,
            false => NextStep::Nothing,
        }
    }

    /// Only these help us now.
    pub fn retain(&mut self, members: &BTreeSet<HostName>) {
        self.records.retain(|member, _| members.contains(member));
    }

    /// First looks at pages of `member`.
    pub fn looks(&self, member: &HostName) -> u64 {
        self.records.get(member).map_or(0, |record| record.looks)
    }

    fn record(&mut self, member: &HostName) -> Option<&mut Record> {
        if self.records.len() >= RECORDS_MAX && !self.records.contains_key(member) {
            return None;
        }
        Some(self.records.entry(member.clone()).or_default())
    }
}

/// With which probability `looks` looks meet somebody who alters this share of what it delivers.
pub fn found_by(looks: u32, altered: f64) -> f64 {
    1.0 - (1.0 - altered).powf(f64::from(looks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        name.parse().unwrap()
    }

    #[test]
    fn what_is_wrong_twice_is_altered() {
        for wrong in [Look::Foreign, Look::Forged, Look::Diverted] {
            let mut inspection = Inspection::default();
            let member = host("www.a.example");
            assert_eq!(inspection.first(&member, wrong), NextStep::LookAgain);
            assert_eq!(inspection.second(&member, wrong, wrong), NextStep::Expel);
        }
    }

    #[test]
    fn what_is_right_or_cannot_be_judged_costs_nobody_anything() {
        let mut inspection = Inspection::default();
        let member = host("www.a.example");
        for look in [Look::Authentic, Look::Same, Look::Nothing] {
            assert_eq!(inspection.first(&member, look), NextStep::Nothing);
        }
        assert_eq!(inspection.looks(&member), 3);
    }

    #[test]
    fn a_page_that_changed_is_right_after_its_purge_and_no_offence() {
        let mut inspection = Inspection::default();
        let member = host("www.a.example");
        inspection.first(&member, Look::Foreign);
        let step = inspection.second(&member, Look::Foreign, Look::Authentic);
        assert_eq!(step, NextStep::Nothing);
    }

    #[test]
    fn who_is_right_only_after_each_purge_is_found_out_all_the_same() {
        for (wrong, times) in [
            (Look::Forged, FORGED_MAX),
            (Look::Foreign, FOREIGN_MAX),
            (Look::Diverted, FOREIGN_MAX),
        ] {
            let mut inspection = Inspection::default();
            let member = host("www.a.example");
            let step = |inspection: &mut Inspection| {
                inspection.first(&member, wrong);
                inspection.second(&member, wrong, Look::Authentic)
            };
            for _ in 1..times {
                assert_eq!(step(&mut inspection), NextStep::Nothing);
            }
            assert_eq!(step(&mut inspection), NextStep::Expel);
        }
    }

    #[test]
    fn who_is_late_while_another_is_timely_is_parted_from() {
        let mut inspection = Inspection::default();
        let (slow, quick) = (host("www.a.example"), host("www.b.example"));
        let mut paced = |member: &HostName, pace| inspection.paced(member, pace);
        assert_eq!(paced(&quick, Pace::Timely), NextStep::Nothing);
        assert_eq!(paced(&slow, Pace::Timely), NextStep::Nothing);
        assert_eq!(paced(&slow, Pace::Late), NextStep::Part);
        // The one that has all visitors now is not parted from for that.
        assert_eq!(paced(&quick, Pace::Late), NextStep::Nothing);
        assert_eq!(paced(&quick, Pace::Timely), NextStep::Nothing);
    }

    #[test]
    fn where_nobody_is_timely_the_fault_may_be_ours_once() {
        let mut inspection = Inspection::default();
        let (one, other) = (host("www.a.example"), host("www.b.example"));
        let mut paced = |member: &HostName, pace| inspection.paced(member, pace);
        assert_eq!(paced(&one, Pace::Late), NextStep::Nothing);
        assert_eq!(paced(&other, Pace::Late), NextStep::Nothing);
        assert_eq!(paced(&one, Pace::Timely), NextStep::Nothing);
        assert_eq!(paced(&one, Pace::Late), NextStep::Nothing);
        assert_eq!(paced(&one, Pace::Late), NextStep::Part);
    }

    #[test]
    fn one_accuser_is_a_reason_to_look_and_two_of_different_domains_are_believed() {
        let mut inspection = Inspection::default();
        let member = host("www.a.example");
        let mut report = |by: &str, page: &str| inspection.reported(&member, &host(by), page);
        assert_eq!(report("www.a.example", "/"), NextStep::Nothing);
        assert_eq!(report("www.b.example", "/"), NextStep::LookAgain);
        // Another page is another matter, until it was purged.
        assert_eq!(report("www.c.example", "/news"), NextStep::LookAgain);
        assert_eq!(report("www.b.example", "/"), NextStep::Nothing);
        assert_eq!(report("cdn.b.example", "/"), NextStep::Nothing);
        assert_eq!(report("www.c.example", "/news"), NextStep::Expel);
    }

    #[test]
    fn reports_do_not_empty_a_cache() {
        let mut inspection = Inspection::default();
        let (member, by) = (host("www.a.example"), host("www.b.example"));
        let reports = (0..100).map(|page| inspection.reported(&member, &by, &format!("/{page}")));
        let purges = reports.filter(|step| *step == NextStep::LookAgain).count();
        assert_eq!(purges, PURGED_MAX);
    }

    #[test]
    fn the_number_of_looks_follows_from_the_share_that_is_altered() {
        assert!(found_by(21, 0.2) > 0.99 && found_by(20, 0.2) < 0.99);
        assert!(found_by(90, 0.05) > 0.99 && found_by(89, 0.05) < 0.99);
        assert_eq!(found_by(0, 0.5), 0.0);
        assert_eq!(found_by(1, 1.0), 1.0);
    }
}
