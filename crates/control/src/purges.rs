//! Purges at our rescue servers: what to send to whom, and when to give up waiting.
//!
//! ```text
//!   Asked ─▶ each rescue server: waiting ──room on its link──▶ sent ──answered──▶ confirmed
//!                                   └──────── 2 s, or its link is lost ─────────▶ not confirmed
//!   all known, or 2 s over ─▶ Report
//! ```
//!
//! A rescue server answers in order, so the oldest purge that was sent is the one that an answer is
//! for. Only so many are under way on one link, and only so many a second, because a rescue server
//! cuts a link that floods it. What has to wait too long in too great a number becomes one purge of
//! everything, which says more and costs less.
//!
//! Nothing is repeated. A purge that was sent reaches the rescue server or its link dies, and whose
//! link died keeps nothing of ours: it ends the rescue as soon as it notices, and begins the next
//! one with nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use levee_vocab::{LinkId, Purge, PurgeKind, PurgeScope, Timestamp, WebAddress};

/// How long whoever asked waits for our rescue servers.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Most purges under way on one link.
const SENT_MAX: usize = 4;
/// Most purges sent over one link in a second: half of what a rescue server takes.
const SENT_PER_SECOND: u32 = 16;
/// Most purges that wait for one link.
const WAITING_MAX: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum PurgeInput {
    /// A purge is wanted; `number` is the asker's own, and not used twice.
    Asked {
        /// Comes back in the report.
        number: u64,
        /// What is to go.
        purge: Purge,
    },
    /// A rescue server helps us from now on.
    ServerCame {
        /// Its link.
        link: LinkId,
        /// Its own name.
        site: WebAddress,
    },
    /// A rescue server answered the oldest purge that it had not answered.
    Answered {
        /// Its link.
        link: LinkId,
        /// What it said.
        outcome: PurgeOutcome,
    },
    /// A link is gone.
    ServerLost {
        /// Which.
        link: LinkId,
    },
    /// The deadline has come, or some other time.
    TimerFired,
}

/// Something that must be done.
#[derive(Clone, Debug, PartialEq)]
pub enum PurgeOutput {
    /// Send this to a rescue server.
    Send {
        /// Over this link.
        link: LinkId,
        /// What is to go there.
        purge: Purge,
    },
    /// Tell who asked.
    Report {
        /// The asker's number.
        number: u64,
        /// Each rescue server that helped us when it was asked, in the order of their links.
        servers: Vec<Confirmation>,
    },
}

/// What became of a purge at one rescue server.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// The rescue server.
    pub site: WebAddress,
    /// What became of it.
    pub outcome: PurgeOutcome,
}

/// See [`Confirmation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeOutcome {
    /// It has removed so many objects, and shows none of them any more.
    Confirmed {
        /// Objects with their variants.
        objects: u64,
    },
    /// It does not know how to purge.
    Refused,
    /// It has not answered in time. It may still do it.
    Silent,
    /// Its link was lost.
    Lost,
}

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub struct Purges {
    servers: BTreeMap<LinkId, Server>,
    asked: BTreeMap<u64, Asked>,
}

#[derive(Clone, Debug)]
struct Server {
    site: WebAddress,
    waiting: VecDeque<Sending>,
    /// Numbers of the purges that each unanswered one stands for, oldest first.
    sent: VecDeque<Vec<u64>>,
    /// When the current second began, and how many were sent in it.
    second: (Timestamp, u32),
}

/// One purge, for all who wait for it.
#[derive(Clone, Debug)]
struct Sending {
    purge: Purge,
    numbers: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Asked {
    until: Timestamp,
    servers: BTreeMap<LinkId, (WebAddress, Option<PurgeOutcome>)>,
}

impl Purges {
    /// Takes note of what happened. The outputs are to be carried out in order.
    pub fn handle(&mut self, now: Timestamp, input: PurgeInput) -> Vec<PurgeOutput> {
        let mut out = Vec::new();
        match input {
            PurgeInput::Asked { number, purge } => self.ask(now, number, purge),
            PurgeInput::ServerCame { link, site } => {
                self.servers.entry(link).or_insert_with(|| Server {
                    site,
                    waiting: VecDeque::new(),
                    sent: VecDeque::new(),
                    second: (now, 0),
                });
            }
            PurgeInput::Answered { link, outcome } => {
                let server = self.servers.get_mut(&link);
                let numbers = server.and_then(|server| server.sent.pop_front());
                for number in numbers.unwrap_or_default() {
                    self.note(number, link, outcome);
                }
            }
            PurgeInput::ServerLost { link } => {
                self.servers.remove(&link);
                let numbers: Vec<u64> = self.asked.keys().copied().collect();
                for number in numbers {
                    self.note(number, link, PurgeOutcome::Lost);
                }
            }
            PurgeInput::TimerFired => {}
        }
        for (&link, server) in &mut self.servers {
            server.send(now, link, &mut out);
        }
        self.report(now, &mut out);
        out
    }

    /// When to call with [`PurgeInput::TimerFired`] at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let reports = self.asked.values().map(|asked| asked.until);
        let sends = self.servers.values().filter_map(Server::held_until);
        reports.chain(sends).min()
    }

    fn ask(&mut self, now: Timestamp, number: u64, purge: Purge) {
        let mut servers = BTreeMap::new();
        for (&link, server) in &mut self.servers {
            servers.insert(link, (server.site.clone(), None));
            server.add(number, purge.clone());
        }
        let until = now + ANSWER_WAIT;
        self.asked.insert(number, Asked { until, servers });
    }

    /// The first word about a server counts.
    fn note(&mut self, number: u64, link: LinkId, outcome: PurgeOutcome) {
        let asked = self.asked.get_mut(&number);
        if let Some((_, known)) = asked.and_then(|asked| asked.servers.get_mut(&link)) {
            known.get_or_insert(outcome);
        }
    }

    fn report(&mut self, now: Timestamp, out: &mut Vec<PurgeOutput>) {
        let is_over = |asked: &Asked| {
            let mut outcomes = asked.servers.values().map(|(_, outcome)| outcome);
            asked.until <= now || outcomes.all(Option::is_some)
        };
        for (number, asked) in self.asked.extract_if(.., |_, asked| is_over(asked)) {
            let servers = asked.servers.into_values();
            let servers = servers
                .map(|(site, outcome)| Confirmation {
                    site,
                    outcome: outcome.unwrap_or(PurgeOutcome::Silent),
                })
                .collect();
            out.push(PurgeOutput::Report { number, servers });
        }
    }
}

impl Server {
    fn add(&mut self, number: u64, purge: Purge) {
        let numbers = vec![number];
        self.waiting.push_back(Sending { purge, numbers });
        if self.waiting.len() <= WAITING_MAX {
            return;
        }
        let hard = |sending: &Sending| sending.purge.kind == PurgeKind::Hard;
        let kind = match self.waiting.iter().any(hard) {
            true => PurgeKind::Hard,
            false => PurgeKind::Soft,
        };
        let all = self.waiting.drain(..);
        let numbers = all.flat_map(|sending| sending.numbers).collect();
        let scope = PurgeScope::All;
        let purge = Purge { scope, kind };
        self.waiting.push_back(Sending { purge, numbers });
    }

    fn send(&mut self, now: Timestamp, link: LinkId, out: &mut Vec<PurgeOutput>) {
        if now.since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
        }
        while self.sent.len() < SENT_MAX && self.second.1 < SENT_PER_SECOND {
            let Some(Sending { purge, numbers }) = self.waiting.pop_front() else {
                return;
            };
            self.second.1 += 1;
            self.sent.push_back(numbers);
            out.push(PurgeOutput::Send { link, purge });
        }
    }

    /// When more may be sent, where only the time is in the way.
    fn held_until(&self) -> Option<Timestamp> {
        let is_held = !self.waiting.is_empty() && self.sent.len() < SENT_MAX;
        is_held.then(|| self.second.0 + Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests;
