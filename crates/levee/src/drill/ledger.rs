//! The account of a drill, kept from the reasons that the Brain gives anyway.
//!
//! Nothing is decided here, and nothing is asked: one stream of reasons has several readers, the
//! log, the status page, and this.

use std::net::SocketAddr;
use std::time::Duration;

use levee_control::{BrainView, DrillRefusal, Reason};
use levee_vocab::{HostName, Timestamp};

use super::account::{Account, Member, Part};

/// The last drill of this server.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    account: Account,
    began: Timestamp,
    heard: Timestamp,
    refused: Option<DrillRefusal>,
}

/// A command that has said nothing for so long is gone. It asks twice a second.
const SILENCE_MAX: Duration = Duration::from_secs(3);

impl Ledger {
    /// The account as it stands.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Why the last order led to nothing, if so. Asked once.
    pub fn take_refusal(&mut self) -> Option<DrillRefusal> {
        self.refused.take()
    }

    /// The command is there.
    pub fn hear(&mut self, now: Timestamp) {
        self.heard = now;
    }

    /// Whether a drill is under way whose command is gone.
    pub fn is_abandoned(&self, now: Timestamp) -> bool {
        self.account.running && now.since(self.heard) > SILENCE_MAX
    }

    /// The Brain has decided something.
    pub fn note(&mut self, now: Timestamp, reason: &Reason) {
        if let Reason::DrillBegan { .. } = reason {
            *self = Self {
                account: Account {
                    running: true,
                    ..Account::default()
                },
                began: now,
                heard: now,
                refused: None,
            };
        } else if let Reason::DrillRefused { why } = reason {
            self.refused = Some(*why);
        } else if self.account.running {
            self.note_running(now, reason);
        }
    }

    fn note_running(&mut self, now: Timestamp, reason: &Reason) {
        match reason {
            Reason::DrillEnded { why } => {
                self.account.running = false;
                self.account.ended = Some(why.to_string());
                self.account.way_out = why.way_out().map(str::to_owned);
            }
            Reason::Asked { site, free } => {
                let asked_ms = milliseconds(now.since(self.began));
                self.account.members.push(Member {
                    site: site.to_string(),
                    offered: free.as_bytes(),
                    asked_ms,
                    part: Part::Asked,
                });
            }
            Reason::RescueBegan { peer, rate } => {
                let since = now.since(self.began);
                self.change(peer, |member| {
                    member.part = Part::Helps {
                        answer_ms: milliseconds(since).saturating_sub(member.asked_ms),
                        rate: rate.as_bytes(),
                        alias: String::new(),
                        address: None,
                        left: None,
                    };
                });
            }
            Reason::NotHelped { site, why } => {
                self.change(site, |member| {
                    member.part = Part::Absent {
                        why: (*why).to_owned(),
                    };
                });
            }
            Reason::RescueEnded { peer, why } => self.leave(peer, why),
            Reason::RateChanged { peer, to, .. } => self.change(peer, |member| {
                if let Part::Helps { rate, .. } = &mut member.part {
                    *rate = to.as_bytes();
                }
            }),
            Reason::StateChanged { .. }
            | Reason::GraceEnded { .. }
            | Reason::LoadRose { .. }
            | Reason::RedirectThreshold { .. }
            | Reason::SosRejected { .. }
            | Reason::DrillBegan { .. }
            | Reason::DrillRefused { .. }
            | Reason::DrillJoined { .. }
            | Reason::NoCandidate(_)
            | Reason::CallingEarly { .. }
            | Reason::Copying { .. }
            | Reason::RedirectingResource { .. }
            | Reason::ServedHere { .. }
            | Reason::CopyRefused { .. }
            | Reason::CameBack { .. }
            | Reason::OriginDied { .. }
            | Reason::Refusing { .. } => {}
        }
    }

    /// Learns under which names and where those who take part serve the site.
    pub fn learn(&mut self, view: &BrainView) {
        let Some(drill) = &view.drill else { return };
        for server in &view.rescue_servers {
            let known = drill.members.iter();
            let known = known.filter(|member| member.alias == server.alias);
            let place = known.map(|member| SocketAddr::new(member.address, member.alias.port));
            let place = place.min();
            self.change(&server.peer.host, |member| {
                if let Part::Helps { alias, address, .. } = &mut member.part {
                    *alias = server.alias.to_string();
                    *address = place;
                }
            });
        }
    }

    /// That the drill is over is no reason of its own.
    fn leave(&mut self, site: &HostName, why: &'static str) {
        if why == levee_control::ShutdownCause::DrillOver.why() {
            return;
        }
        self.change(site, |member| {
            if let Part::Helps { left, .. } = &mut member.part {
                *left = Some(why.to_owned());
            }
        });
    }

    fn change(&mut self, site: &HostName, change: impl FnOnce(&mut Member)) {
        let mut members = self.account.members.iter_mut();
        if let Some(member) = members.find(|member| member.site == site.as_str()) {
            change(member);
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use levee_control::DrillEnd;
    use levee_vocab::ByteRate;

    use super::*;

    fn host(name: &str) -> HostName {
        name.parse().unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn begun() -> Ledger {
        let mut ledger = Ledger::default();
        let length = Duration::from_secs(60);
        ledger.note(at(100), &Reason::DrillBegan { length });
        let site = host("a.example");
        let free = ByteRate::from_kilobytes(500);
        ledger.note(at(100), &Reason::Asked { site, free });
        ledger
    }

    #[test]
    fn the_account_says_who_was_asked_who_helped_and_why_it_ended() {
        let mut ledger = begun();
        let rate = ByteRate::from_kilobytes(450);
        let peer = host("a.example");
        ledger.note(at(101), &Reason::RescueBegan { peer, rate });
        let why = "it refused";
        let (site, free) = (host("b.example"), rate);
        ledger.note(at(101), &Reason::Asked { site, free });
        let site = host("b.example");
        ledger.note(at(102), &Reason::NotHelped { site, why });
        let peer = host("a.example");
        let why = "the drill is over";
        ledger.note(at(160), &Reason::RescueEnded { peer, why });
        let why = DrillEnd::Over;
        ledger.note(at(160), &Reason::DrillEnded { why });
        let account = ledger.account();
        assert!(!account.running);
        assert_eq!(account.ended.as_deref(), Some("its time is over"));
        assert_eq!(account.way_out, None);
        let Part::Helps {
            answer_ms, left, ..
        } = &account.members[0].part
        else {
            panic!("{account:?}");
        };
        assert_eq!((*answer_ms, left), (1000, &None));
        let absent = Part::Absent {
            why: "it refused".to_owned(),
        };
        assert_eq!(account.members[1].part, absent);
    }

    #[test]
    fn the_account_says_what_to_do_about_a_drill_that_had_not_all_its_time() {
        let mut ledger = begun();
        let why = DrillEnd::Crowd;
        ledger.note(at(101), &Reason::DrillEnded { why });
        let way_out = ledger.account().way_out.clone().unwrap_or_default();
        assert!(way_out.starts_with("drill again"), "{way_out}");
    }

    #[test]
    fn a_rescue_outside_of_a_drill_is_no_part_of_one() {
        let mut ledger = Ledger::default();
        let (site, free) = (host("a.example"), ByteRate::ZERO);
        ledger.note(at(1), &Reason::Asked { site, free });
        assert_eq!(ledger.account(), &Account::default());
    }

    #[test]
    fn a_command_that_says_nothing_is_gone() {
        let mut ledger = begun();
        ledger.hear(at(110));
        assert!(!ledger.is_abandoned(at(112)));
        assert!(ledger.is_abandoned(at(114)));
        let why = DrillEnd::Over;
        ledger.note(at(115), &Reason::DrillEnded { why });
        assert!(!ledger.is_abandoned(at(200)));
    }
}
