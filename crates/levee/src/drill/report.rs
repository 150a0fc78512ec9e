//! What a drill has found out, for people and as JSON: who helped, how well, and what to mend.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use levee_observe::words::{count, rate};
use serde::Serialize;

use super::account::{Account, Member, Part};
use super::client::Wanted;
use super::crowd::{Helper, Tally};
use super::findings::{ended, findings};

/// See the file header.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The site that rehearsed.
    pub site: String,
    /// Visits a second, as ordered.
    pub rate: u32,
    /// Seconds, as ordered.
    pub seconds: u64,
    /// Seconds that it lasted.
    pub lasted: f64,
    /// Why it was over.
    pub ended: String,
    /// Everybody who was asked.
    pub members: Vec<MemberReport>,
    /// Seconds until a rescue server had helped a visitor.
    pub first_helped: Option<f64>,
    /// All visits.
    pub visits: u64,
    /// Those that the site answered itself.
    pub answered_here: u64,
    /// Those above the drill's part of the link, and those that were left out.
    pub not_made: u64,
    /// Sum of what those who helped would carry, bytes a second.
    pub offered: u64,
    /// Pages of this size a second that they would carry; of those that were visited.
    pub pages_per_second: Option<f64>,
    /// What to mend, a sentence each. Empty: all is well.
    pub findings: Vec<String>,
}

/// One member of the community.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberReport {
    /// Its name.
    pub site: String,
    /// Whether it helped.
    pub helped: bool,
    /// Why it did not.
    pub why: Option<String>,
    /// Seconds until it answered.
    pub answered: Option<f64>,
    /// What it would carry now, bytes a second.
    pub rate: u64,
    /// Visits that were redirected to it.
    pub visits: u64,
    /// Of these, those that it did not answer.
    pub failed: u64,
    /// Of these, those that saw other bytes than the site shows.
    pub different: u64,
    /// Seconds, redirect included.
    pub median: Option<f64>,
    /// The same.
    pub slowest: Option<f64>,
}

/// What the report is made of.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) site: &'a str,
    pub(super) wanted: &'a Wanted,
    pub(super) lasted: Duration,
    pub(super) account: &'a Account,
    pub(super) tally: &'a Tally,
    /// What is wrong with the name of an alias, by alias.
    pub(super) names: &'a BTreeMap<String, String>,
    /// Bytes of the mean page.
    pub(super) page_bytes: f64,
}

impl Report {
    pub(super) fn new(seen: &Seen<'_>) -> Self {
        let Seen {
            wanted,
            account,
            tally,
            ..
        } = seen;
        let members: Vec<MemberReport> = account
            .members
            .iter()
            .map(|member| MemberReport::new(member, tally))
            .collect();
        let offered: u64 = members.iter().map(|member| member.rate).sum();
        Self {
            site: seen.site.to_owned(),
            rate: wanted.rate,
            seconds: wanted.length.as_secs(),
            lasted: seen.lasted.as_secs_f64(),
            ended: ended(account).to_owned(),
            first_helped: tally.first_helped.map(|time| time.as_secs_f64()),
            visits: tally.visits,
            answered_here: tally.here,
            not_made: tally.above_share + tally.left_out,
            offered,
            pages_per_second: (seen.page_bytes > 0.0).then(|| offered as f64 / seen.page_bytes),
            findings: findings(seen, &members),
            members,
        }
    }

    /// The whole as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// For the exit status: whether there is nothing to mend.
    ///
    /// # Errors
    /// A sentence, where there is.
    pub fn is_well(&self) -> Result<(), String> {
        match self.findings.len() {
            0 => Ok(()),
            1 => Err("the drill found one thing to mend".to_owned()),
            number => Err(format!("the drill found {number} things to mend")),
        }
    }
}

impl MemberReport {
    fn new(member: &Member, tally: &Tally) -> Self {
        let mut report = Self {
            site: member.site.clone(),
            helped: false,
            why: None,
            answered: None,
            rate: 0,
            visits: 0,
            failed: 0,
            different: 0,
            median: None,
            slowest: None,
        };
        match &member.part {
            Part::Asked => report.why = Some("it had not answered when the drill ended".to_owned()),
            Part::Absent { why } => report.why = Some(why.clone()),
            Part::Helps {
                answer_ms,
                rate,
                alias,
                left,
                ..
            } => {
                report.helped = true;
                report.why.clone_from(left);
                report.answered = Some(*answer_ms as f64 / 1000.0);
                report.rate = *rate;
                if let Some(helper) = tally.helpers.get(&with_port(alias)) {
                    report.count(helper);
                }
            }
        }
        report
    }

    fn count(&mut self, helper: &Helper) {
        let seconds = |share| helper.quantile(share).map(|time| time.as_secs_f64());
        self.visits = helper.visits;
        self.failed = helper.failures.values().sum();
        self.different = helper.different;
        self.median = seconds(0.5);
        self.slowest = seconds(1.0);
    }
}

/// As a redirect has it.
pub(super) fn with_port(alias: &str) -> String {
    match alias.contains(':') {
        true => alias.to_owned(),
        false => format!("{alias}:80"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let helped = self.members.iter().filter(|member| member.helped).count();
        writeln!(
            f,
            "Drill of {}: {} visits a second, over after {:.0} s of {}: {}.",
            self.site, self.rate, self.lasted, self.seconds, self.ended
        )?;
        writeln!(f, "{helped} of {} members helped:", self.members.len())?;
        for member in &self.members {
            writeln!(f, "  {member}")?;
        }
        match self.first_helped {
            Some(seconds) => writeln!(f, "The first visitor was helped after {seconds:.1} s.")?,
            None => writeln!(f, "No visitor was helped.")?,
        }
        let at_helpers: u64 = self.members.iter().map(|member| member.visits).sum();
        writeln!(
            f,
            "Of {} visits {} were redirected and {} answered here.",
            count(self.visits),
            count(at_helpers),
            count(self.answered_here)
        )?;
        if let (1.., Some(pages)) = (self.offered, self.pages_per_second) {
            writeln!(
                f,
                "Together they would carry {} now: {pages:.0} such pages a second.",
                rate(self.offered)
            )?;
        }
        match self.findings.is_empty() {
            true => writeln!(f, "Nothing to mend."),
            false => {
                writeln!(f, "To mend:")?;
                self.findings
                    .iter()
                    .try_for_each(|finding| writeln!(f, "  - {finding}"))
            }
        }
    }
}

impl fmt::Display for MemberReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_deref().unwrap_or_default();
        let Some(answered) = self.answered else {
            return write!(f, "{}: no help: {why}", self.site);
        };
        write!(
            f,
            "{}: answered after {answered:.1} s, offers {}, {} visits",
            self.site,
            rate(self.rate),
            count(self.visits)
        )?;
        if let (Some(median), Some(slowest)) = (self.median, self.slowest) {
            let (median, slowest) = (median * 1000.0, slowest * 1000.0);
            write!(f, ", median {median:.0} ms, slowest {slowest:.0} ms")?;
        }
        if self.failed > 0 {
            write!(f, ", {} failed", count(self.failed))?;
        }
        match why {
            "" => Ok(()),
            why => write!(f, ", left: {why}"),
        }
    }
}
