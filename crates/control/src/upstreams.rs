//! Which upstream gets a request, which are left out for a while, and when they are looked at
//! again.
//!
//! A site may have several applications behind it that answer alike. Each request goes to the one
//! with the fewest requests under way; all requests of the process pass here, so the numbers are
//! exact and nothing is left to chance (picking two at random is for those who only guess them).
//! One that fails several times in a row is left out, for longer each time:
//!
//! ```text
//!            failures in a row, or checks in a row
//!       Up ─────────────────────────────────────────▶ Ejected
//!       ▲                                              │ ▲
//!       │ check passed: back, but one failure          │ │ check failed
//!       └───────────── ejects it again ◀── time over, checked ─┘
//! ```
//!
//! No visitor's request is spent on finding out whether an upstream is back: a check is. Where all
//! are ejected each request is still tried once, because a guess that all are dead must not be what
//! kills a site. Backups are used while no other is up.
//!
//! Nothing here connects or looks at a clock; the shell asks, and tells what became of it.

use std::time::Duration;

use levee_vocab::Timestamp;

/// One upstream for as long as it is in the list; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(u64);

/// When an upstream is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Always.
    Primary,
    /// While no primary is up.
    Backup,
}

/// Limits of choosing and ejecting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamRules {
    /// Failures in a row after which an upstream is left out. 3: one dead connection says nothing.
    pub failures_max: u32,
    /// How long it is left out the first time. 1 s: a restarted application is back by then.
    pub ejection_min: Duration,
    /// How long at most, however often it happens. 60 s: it costs a check a minute.
    pub ejection_max: Duration,
    /// Requests under way at one upstream; beyond it they wait.
    pub outstanding_max: u32,
    /// Time between checks of an upstream whose checks fail, and, where all are checked, of each.
    pub check_interval: Duration,
    /// Failed checks in a row after which an upstream is left out.
    pub checks_max: u32,
    /// Who is checked.
    pub checked: Checked,
    /// Part of requests that may be sent a second time after the first was sent.
    pub retry_share: f64,
}

/// Who is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Those that are ejected, before they come back.
    Ejected,
    /// All, all the time.
    All,
}

impl Default for UpstreamRules {
    fn default() -> Self {
        Self {
            failures_max: 3,
            ejection_min: Duration::from_secs(1),
            ejection_max: Duration::from_secs(60),
            outstanding_max: 128,
            check_interval: Duration::from_secs(2),
            checks_max: 2,
            checked: Checked::Ejected,
            retry_share: 0.2,
        }
    }
}

/// All upstreams of a site. See the head of this file.
#[derive(Clone, Debug)]
pub struct UpstreamGroup {
    rules: UpstreamRules,
    members: Vec<Member>,
    ids: u64,
    /// Where the search begins, so that equals take turns.
    turn: usize,
    /// Retries that may be made now.
    retries: f64,
}

#[derive(Clone, Debug)]
struct Member {
    id: UpstreamId,
    name: String,
    tier: Tier,
    phase: Phase,
    /// Requests under way.
    outstanding: u32,
    /// When the last ejection ended, and how many there were without a long rest between them.
    returned: Timestamp,
    row: u32,
    check: Check,
    requests: u64,
    failures: u64,
    ejections: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It gets requests; so many of the last ones failed.
    Up { failures: u32 },
    /// It gets none before `until`, and then only after a passed check.
    Ejected { until: Timestamp },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// None is under way; so many of the last ones failed.
    Resting {
        since: Timestamp,
        failures: u32,
    },
    UnderWay {
        failures: u32,
    },
}

/// An upstream that was chosen for a request. It counts as under way until
/// [`UpstreamGroup::released`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub id: UpstreamId,
    /// Ejections before the request: what it tells is old news after another.
    ejections: u64,
}

/// Why no upstream was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// All that could be tried have as many requests as they may: wait for one to end.
    Full,
    /// All that are up have been tried.
    Exhausted,
}

/// What a request, or a check, showed of its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It works.
    Success,
    /// It does not.
    Failure,
}

/// Whether a request that was sent may be sent to another upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryGrant {
    /// It may.
    Granted,
    /// Too many were: what is left of the upstreams must not be stormed.
    Spent,
}

/// One upstream as the status page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamView {
    /// As in the settings.
    pub name: String,
    /// When it is used.
    pub tier: Tier,
    /// Until when it gets no requests; none where it is up.
    pub ejected_until: Option<Timestamp>,
    /// Requests under way.
    pub outstanding: u32,
    /// Requests so far.
    pub requests: u64,
    /// Of these, failed.
    pub failures: u64,
    /// How often it was left out.
    pub ejections: u64,
}

/// Retries that may be saved up: a quiet site with one sick upstream of two needs a few at once.
const RETRIES_SAVED: f64 = 10.0;
/// Doublings of an ejection; more would overflow before `ejection_max` is looked at.
const DOUBLINGS_MAX: u32 = 20;

impl UpstreamGroup {
    /// A group without upstreams; see [`UpstreamGroup::change`].
    pub const fn new(rules: UpstreamRules) -> Self {
        Self {
            rules,
            members: Vec::new(),
            ids: 0,
            turn: 0,
            retries: RETRIES_SAVED,
        }
    }

    /// From now on these are the upstreams, by name. Those that stay keep what is known of them.
    /// Gives the ids, in the order of `names`.
    pub fn change(
        &mut self,
        now: Timestamp,
        rules: UpstreamRules,
        names: &[(String, Tier)],
    ) -> Vec<UpstreamId> {
        self.rules = rules;
        let mut before = std::mem::take(&mut self.members);
        for (name, tier) in names {
            let known = before.iter().position(|member| member.name == *name);
            let mut member = match known {
                Some(index) => before.remove(index),
                None => {
                    self.ids += 1;
                    Member::new(UpstreamId(self.ids), name.clone(), now)
                }
            };
            member.tier = *tier;
            self.members.push(member);
        }
        self.members.iter().map(|member| member.id).collect()
    }

    /// The upstream for a request that was tried at `tried` before: one that is up, and where none
    /// is and this is the first attempt, any.
    pub fn choose(&mut self, tried: &[UpstreamId]) -> Result<Choice, NoChoice> {
        if tried.is_empty() {
            let saved = self.retries + self.rules.retry_share;
            self.retries = saved.min(RETRIES_SAVED);
        }
        let untried = |member: &Member| !tried.contains(&member.id);
        let up = |member: &Member| member.is_up() && untried(member);
        let has = |group: &Self, tier| group.members.iter().any(|m| up(m) && m.tier == tier);
        let chosen = if has(self, Tier::Primary) {
            self.least(|member| up(member) && member.tier == Tier::Primary)
        } else if has(self, Tier::Backup) {
            self.least(up)
        } else if tried.is_empty() && !self.members.is_empty() {
            self.least(|_| true)
        } else {
            return Err(NoChoice::Exhausted);
        };
        let index = chosen.ok_or(NoChoice::Full)?;
        self.turn = index + 1;
        let member = &mut self.members[index];
        member.outstanding += 1;
        member.requests += 1;
        Ok(Choice {
            id: member.id,
            ejections: member.ejections,
        })
    }

    /// Of those that fit and have room, the one with the fewest requests under way.
    fn least(&self, fits: impl Fn(&Member) -> bool) -> Option<usize> {
        let count = self.members.len();
        let in_turn = (0..count).map(|step| (self.turn + step) % count);
        in_turn
            .filter(|&index| fits(&self.members[index]))
            .filter(|&index| self.members[index].outstanding < self.rules.outstanding_max)
            .min_by_key(|&index| self.members[index].outstanding)
    }

    /// Whether a request that was sent, and may be sent twice, may go to another upstream.
    pub fn grant_retry(&mut self) -> RetryGrant {
        if self.retries < 1.0 {
            return RetryGrant::Spent;
        }
        self.retries -= 1.0;
        RetryGrant::Granted
    }

    /// What became of a request, as soon as it is known. May be told more than once: an answer may
    /// begin well and break off.
    pub fn told(&mut self, now: Timestamp, choice: Choice, sign: Sign) {
        let rules = self.rules;
        let Some(member) = self.find(choice.id) else {
            return;
        };
        member.failures += u64::from(sign == Sign::Failure);
        if choice.ejections != member.ejections {
            return;
        }
        match (member.phase, sign) {
            (Phase::Up { .. }, Sign::Success) => member.phase = Phase::Up { failures: 0 },
            (Phase::Up { failures }, Sign::Failure) if failures + 1 < rules.failures_max => {
                let failures = failures + 1;
                member.phase = Phase::Up { failures };
            }
            (Phase::Up { .. }, Sign::Failure) => member.eject(now, &rules),
            // All were ejected, and this one was tried all the same.
            (Phase::Ejected { .. }, Sign::Success) => member.come_back(now, &rules),
            (Phase::Ejected { .. }, Sign::Failure) => {}
        }
    }

    /// The request is over and its connection free.
    pub fn released(&mut self, choice: Choice) {
        if let Some(member) = self.find(choice.id) {
            member.outstanding = member.outstanding.saturating_sub(1);
        }
    }

    /// The upstreams to be checked now. Each is due again only after [`UpstreamGroup::checked`].
    pub fn take_due_checks(&mut self, now: Timestamp) -> Vec<UpstreamId> {
        let rules = self.rules;
        let mut due = Vec::new();
        for member in &mut self.members {
            let Check::Resting { failures, .. } = member.check else {
                continue;
            };
            if member.check_at(&rules).is_some_and(|at| at <= now) {
                member.check = Check::UnderWay { failures };
                due.push(member.id);
            }
        }
        due
    }

    /// What a check showed.
    pub fn checked(&mut self, now: Timestamp, id: UpstreamId, sign: Sign) {
        let rules = self.rules;
        let Some(member) = self.find(id) else {
            return;
        };
        let Check::UnderWay { failures } = member.check else {
            return;
        };
        let since = now;
        let failures = match sign {
            Sign::Success => 0,
            Sign::Failure => failures + 1,
        };
        member.check = Check::Resting { since, failures };
        match (member.phase, sign) {
            (Phase::Ejected { until }, Sign::Success) if until <= now => {
                member.come_back(now, &rules);
            }
            (Phase::Ejected { until }, Sign::Failure) => {
                let until = until.max(now + rules.check_interval);
                member.phase = Phase::Ejected { until };
            }
            (Phase::Up { .. }, Sign::Failure) if failures >= rules.checks_max => {
                member.eject(now, &rules);
            }
            (Phase::Ejected { .. } | Phase::Up { .. }, Sign::Success)
            | (Phase::Up { .. }, Sign::Failure) => {}
        }
    }

    /// When the next check is due.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let members = self.members.iter();
        let dues = members.filter_map(|member| match member.check {
            Check::Resting { .. } => member.check_at(&self.rules),
            Check::UnderWay { .. } => None,
        });
        dues.min()
    }

    /// All upstreams, in the order of the settings.
    pub fn view(&self) -> Vec<UpstreamView> {
        let members = self.members.iter();
        let view = |member: &Member| UpstreamView {
            name: member.name.clone(),
            tier: member.tier,
            ejected_until: match member.phase {
                Phase::Up { .. } => None,
                Phase::Ejected { until } => Some(until),
            },
            outstanding: member.outstanding,
            requests: member.requests,
            failures: member.failures,
            ejections: member.ejections,
        };
        members.map(view).collect()
    }

    fn find(&mut self, id: UpstreamId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }
}

impl Member {
    const fn new(id: UpstreamId, name: String, now: Timestamp) -> Self {
        Self {
            id,
            name,
            tier: Tier::Primary,
            phase: Phase::Up { failures: 0 },
            outstanding: 0,
            returned: now,
            row: 0,
            check: Check::Resting {
                since: now,
                failures: 0,
            },
            requests: 0,
            failures: 0,
            ejections: 0,
        }
    }

    const fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. })
    }

    fn eject(&mut self, now: Timestamp, rules: &UpstreamRules) {
        // A long time without trouble, and the first rest is short again.
        if now.since(self.returned) >= rules.ejection_max {
            self.row = 0;
        }
        let doubled = rules.ejection_min * (1 << self.row.min(DOUBLINGS_MAX));
        let until = now + doubled.min(rules.ejection_max);
        self.row += 1;
        self.ejections += 1;
        self.phase = Phase::Ejected { until };
    }

    /// Up again, but the next failure ejects it at once.
    fn come_back(&mut self, now: Timestamp, rules: &UpstreamRules) {
        self.returned = now;
        let failures = rules.failures_max.saturating_sub(1);
        self.phase = Phase::Up { failures };
    }

    fn check_at(&self, rules: &UpstreamRules) -> Option<Timestamp> {
        let Check::Resting { since, .. } = self.check else {
            return None;
        };
        match (self.phase, rules.checked) {
            (Phase::Ejected { until }, _) => Some(until),
            (Phase::Up { .. }, Checked::All) => Some(since + rules.check_interval),
            (Phase::Up { .. }, Checked::Ejected) => None,
        }
    }
}

#[cfg(test)]
mod tests;
