//! Calls for help that are under way: whom an origin server asked, and until when it waits (R4).

use std::collections::BTreeMap;
use std::time::Duration;

use levee_vocab::{HostName, LinkId, Misses, Timestamp, WebAddress};

use crate::allocation::{Need, Round, rest_after};
use crate::desk::Desk;
use crate::input::{Rejection, RescueCall};
use crate::law::{HotSpotPolicy, Law};
use crate::output::Output;
use crate::reason::Reason;

/// Control intervals after which a candidate that said nothing is given up. The shell must answer
/// after two; the rest is for its own delay.
const ANSWER_DUE: f64 = 2.5;

/// Calls without an answer yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(BTreeMap<LinkId, Call>);

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Who was asked.
    pub(crate) site: WebAddress,
    due: Timestamp,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This interval's round, if help is needed: asks one candidate.
    pub(crate) fn hold_round(&mut self, desk: &mut Desk, helpers: &[HostName]) {
        if desk.allocation.need() != Need::None
            && desk.allocation.begin_round(desk.interval) == Round::Begun
        {
            self.ask(desk, helpers);
            self.ask_for_replicas(desk, helpers);
        }
    }

    /// The paper on hot spots copies to all of its mirrors at once.
    fn ask_for_replicas(&mut self, desk: &mut Desk, helpers: &[HostName]) {
        let HotSpotPolicy { law, replicas, .. } = desk.parameters.hot_spots;
        match law {
            Law::Combined | Law::Load => return,
            Law::Resources => {}
        }
        let mut asked = 0;
        while asked != self.0.len() && helpers.len() + self.0.len() < replicas {
            asked = self.0.len();
            self.ask(desk, helpers);
        }
    }

    /// Goes on with a round in which nobody is being asked any more, if help is still needed.
    pub(crate) fn continue_round(&mut self, desk: &mut Desk, helpers: &[HostName]) {
        if desk.allocation.need() != Need::None && self.0.is_empty() {
            self.ask(desk, helpers);
        }
    }

    /// Takes the call on `link` out: it was answered.
    pub(crate) fn take(&mut self, link: LinkId) -> Option<Call> {
        self.0.remove(&link)
    }

    /// The call on `link` led to nothing: goes on with the round. Changes nothing if it is not
    /// ours.
    pub(crate) fn fail(
        &mut self,
        desk: &mut Desk,
        link: LinkId,
        rejection: Rejection,
        helpers: &[HostName],
    ) {
        if let Some(call) = self.0.remove(&link) {
            desk.rest(&call.site.host, rest_after(rejection));
            desk.explain(Reason::NotHelped {
                site: call.site.host,
                why: rejection.why(),
            });
            self.continue_round(desk, helpers);
        }
    }

    /// Gives up calls whose answer is overdue.
    pub(crate) fn give_up(&mut self, desk: &mut Desk, helpers: &[HostName]) {
        let overdue = self.0.iter().filter(|(_, call)| desk.now >= call.due);
        let links: Vec<LinkId> = overdue.map(|(&link, _)| link).collect();
        for link in links {
            desk.act(Output::DropLink { link });
            self.fail(desk, link, Rejection::Unreachable, helpers);
        }
    }

    /// No help is wanted any more.
    pub(crate) fn drop_all(self, desk: &mut Desk) {
        for link in self.0.into_keys() {
            desk.act(Output::DropLink { link });
        }
    }

    /// Who was asked on `link` and has not answered.
    pub(crate) fn asked(&self, link: LinkId) -> Option<HostName> {
        self.0.get(&link).map(|call| call.site.host.clone())
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.0.values().map(|call| call.due).min()
    }

    fn ask(&mut self, desk: &mut Desk, helpers: &[HostName]) {
        let busy = helpers.len() + self.0.len();
        if !desk.parameters.takes_part() || busy >= desk.parameters.rescue_servers_max {
            return;
        }
        let asked = self.0.values().map(|call| call.site.host.clone());
        let taken: Vec<HostName> = helpers.iter().cloned().chain(asked).collect();
        let choice = desk.allocation.choose(desk.now, &desk.parameters, &taken);
        let Some(candidate) = choice else {
            if self.0.is_empty() {
                if desk.allocation.drill_ends().is_none() {
                    desk.tell_nobody_left();
                }
                desk.search_in_need();
            }
            return;
        };
        let link = desk.allocation.next_link();
        desk.explain(Reason::Asked {
            site: candidate.site.host.clone(),
            free: candidate.free,
        });
        self.0.insert(
            link,
            Call {
                site: candidate.site.clone(),
                due: desk.after(ANSWER_DUE),
            },
        );
        let origin = desk.parameters.site.clone();
        let (address, idle_max) = (desk.parameters.address, desk.parameters.idle_max);
        let call = RescueCall {
            ttl: Some(desk.parameters.object_ttl),
            beats: true,
            drill: drill_left(desk),
            name_ttl: desk.parameters.name_ttl,
            misses: match desk.parameters.hot_spots.law {
                Law::Combined | Law::Load => Misses::Fetch,
                Law::Resources => Misses::SendBack,
            },
            ..RescueCall::new(origin, address, idle_max)
        };
        desk.act(Output::CallForHelp {
            link,
            candidate,
            call,
        });
    }
}

/// What is left of the drill, in whole seconds, as it is said on the wire. Rounded up: who took it
/// for shorter would end it before we do.
fn drill_left(desk: &Desk) -> Option<Duration> {
    let left = desk.allocation.drill_ends()?.since(desk.now);
    let begun = u64::from(left.subsec_nanos() > 0);
    Some(Duration::from_secs(left.as_secs() + begun))
}
