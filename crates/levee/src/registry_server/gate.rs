//! Who may ask a registry what, in a closed community; and the member list for whoever asks.
//!
//! In an open community everybody may ask everything, as far as the registry itself goes along.
//! In both, updates have a budget: each is verified here, told to every other registry, and
//! verified there. It is charged before that work is done, and after who is no member was refused.

use std::net::SocketAddr;
use std::sync::Arc;

use levee_net::Clock;
use levee_trust::{Deed, Roster, SignedList};
use levee_wire::registry::{Reply, Request, encode_list, sign_answer};

use super::HeldBudgets;
use super::budget_holder::BudgetHolder;
use crate::trust::{Counterpart, Denied, Trust, unix_now};

/// What one connection may ask.
pub(super) struct Gate {
    trust: Arc<Trust>,
    asker: Counterpart,
    /// For the status and the log.
    address: String,
    holder: BudgetHolder,
    updates: HeldBudgets,
    /// The list is long: it is given out once on a connection.
    list: ListGiven,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListGiven {
    NotYet,
    Already,
}

/// Why a request does not come to the registry.
pub(super) enum Barred {
    /// The community does not permit it.
    Denied(Denied),
    /// Its sender has used up what he may send, and may send more in some seconds.
    OverBudget,
}

impl From<Denied> for Barred {
    fn from(why: Denied) -> Self {
        Self::Denied(why)
    }
}

impl Gate {
    pub(super) fn new(
        trust: Arc<Trust>,
        asker: Counterpart,
        address: SocketAddr,
        updates: HeldBudgets,
    ) -> Self {
        Self {
            trust,
            asker,
            address: address.to_string(),
            holder: BudgetHolder::of(asker, address.ip()),
            updates,
            list: ListGiven::NotYet,
        }
    }

    /// Whether in a closed community nobody who is a member now is at the other end.
    pub(super) fn is_strangers(&self) -> bool {
        let Counterpart::Key(key) = self.asker else {
            return false;
        };
        let who = |roster: &Roster| roster.who(&key, unix_now()).is_err();
        self.trust.roster(who).unwrap_or(false)
    }

    /// Whether this asker may ask this, and has signed what has to be signed.
    pub(super) fn check(&self, request: &Request) -> Result<(), Barred> {
        let (trust, from) = (&self.trust, self.address.as_str());
        match request {
            Request::Register(entry) => {
                let what = format!("registration of {} from {from}", entry.site.host);
                trust.permits_as(self.asker, &entry.site.host, Deed::Register, &what)?;
                self.charge()?;
                trust.check_entry(entry, from)?;
            }
            Request::Deregister(farewell) => {
                let what = format!("farewell of {} from {from}", farewell.site);
                trust.permits_as(self.asker, &farewell.site, Deed::Register, &what)?;
                self.charge()?;
                trust.check_farewell(farewell, from)?;
            }
            Request::Accuse(accusation) => {
                let accuser = &accusation.accuser;
                let what = format!("accusation by {accuser} from {from}");
                trust.permits_as(self.asker, accuser, Deed::Accuse, &what)?;
                self.charge()?;
                trust.check_accusation(accusation, from)?;
            }
            Request::Search(_) | Request::Query(_) | Request::Accusations | Request::Unknown(_) => {
                let what = format!("question from {from}");
                trust.permits(self.asker, Deed::Search, &what)?;
            }
        }
        Ok(())
    }

    /// Takes an update from the budget of its sender.
    fn charge(&self) -> Result<(), Barred> {
        let taken = self
            .updates
            .with(|updates| updates.take(Clock.now(), &self.holder));
        taken.map_err(|_| Barred::OverBudget)
    }

    /// Signs the answer to a search that asked for it.
    pub(super) fn sign(&self, request: &Request, reply: &Reply, answer: &mut Vec<u8>) {
        let (Request::Search(search), Reply::Found(_)) = (request, reply) else {
            return;
        };
        if let (Some(nonce), true) = (search.nonce, self.trust.is_closed()) {
            sign_answer(answer, |lines| self.trust.answer_signature(nonce, lines));
        }
    }

    /// The answer to who has the list with this serial: a newer one, or none.
    pub(super) fn list(&mut self, number: u32, serial: u64) -> Vec<u8> {
        let mut answer = Vec::new();
        let newer = self.trust.roster(|roster| {
            let is_newer = roster.serial() > serial;
            let text = roster.newest().map(SignedList::text);
            text.filter(|_| is_newer).map(ToOwned::to_owned)
        });
        let given = std::mem::replace(&mut self.list, ListGiven::Already);
        match given {
            ListGiven::NotYet => {
                encode_list(number, newer.flatten().as_deref(), &mut answer);
            }
            ListGiven::Already => {
                let line = format!("{number} 429 Too many requests: one LIST a connection\n");
                answer.extend_from_slice(line.as_bytes());
            }
        }
        answer
    }
}

/// Why somebody is refused, as the text of an answer: printable, and short.
pub(super) fn told(why: &Denied) -> String {
    let plain = |c: char| match c.is_ascii_graphic() || c == ' ' {
        true => c,
        false => '?',
    };
    why.to_string().chars().map(plain).take(TEXT_MAX).collect()
}

/// With its number and code, well below the limit of a line.
const TEXT_MAX: usize = 600;
