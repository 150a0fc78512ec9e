//! The side of the origin server: the rescue servers that carry our visitors (R4, R5, R9).

mod farewell;
mod https;
mod slowness;

use std::collections::BTreeMap;

use levee_vocab::{ByteRate, FetchKey, HostName, LinkId, PEERS_MAX, Peer, Timestamp, WebAddress};

use crate::allocation::{Need, REST_AFTER_LOSS, rest_after};
use crate::copies::Member;
use crate::desk::Desk;
use crate::input::{LinkLoss, LoadSample, Rejection};
use crate::law::{HotSpotPolicy, Law};
use crate::load::Pressure;
use crate::output::{Output, ShutdownCause};
use crate::parameters::{Redirects, Thresholds};
use crate::plan::{RedirectPlan, Target};
use crate::reason::Reason;
use crate::redirect::RedirectLaw;
use crate::rescue::calls::Calls;
use crate::rescue::usefulness::Usefulness;
use crate::rescue::{Phase, call_for_help, measure_need};
use crate::termination::{LowRedirects, Release, redirect_level, release};
use crate::view::RescueView;
use farewell::{Farewell, Key};

/// Control intervals without a RATE after which a rescue server that promised one in each counts
/// as dead: one that is late, one that is lost, and a margin.
const SILENCE: f64 = 2.5;

/// Rescue servers are let go when all that they carry is at most this part of T_alert: it comes
/// back with the next answers of DNS, and as much again must find room before we call for help.
const COME_BACK: f64 = 0.5;

/// A change of T_redi by this much is told to people.
const NEWS: f64 = 0.1;

/// A site in SOS: at least one rescue server helps.
#[derive(Clone, Debug)]
pub(crate) struct Sos {
    servers: BTreeMap<LinkId, RescueServer>,
    calls: Calls,
    law: RedirectLaw,
    low: LowRedirects,
    /// Control intervals in a row in which what the rescue servers carry had room here.
    few: u32,
    /// Control intervals in a row in which nothing was hot.
    cool: u32,
    threshold_told: f64,
}

#[derive(Clone, Debug)]
struct RescueServer {
    site: WebAddress,
    /// As the others are told of it.
    peer: Peer,
    /// What it was told of the others.
    peers_told: Vec<Peer>,
    rate: ByteRate,
    rate_told: ByteRate,
    key: FetchKey,
    silence: Silence,
    since: Timestamp,
    used: ByteRate,
    /// d_resc as it last told it, and until when that holds.
    carried: (ByteRate, Timestamp),
    useful: Usefulness,
    slot: u8,
    /// The port at which its alias answers by HTTPS.
    tls: Option<u16>,
}

/// What the silence of a rescue server means.
#[derive(Clone, Copy, Debug)]
enum Silence {
    /// Nothing: it promised no RATE in each interval.
    Natural,
    /// That it is dead, from then on.
    DeathAt(Timestamp),
}

/// What a rescue server offered when it accepted our call.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) link: LinkId,
    pub(crate) peer: Peer,
    pub(crate) key: FetchKey,
    pub(crate) beats: bool,
    pub(crate) tls: Option<u16>,
}

impl RescueServer {
    /// d_resc: nothing once it has said nothing for too long.
    fn carried(&self, now: Timestamp) -> ByteRate {
        let (carried, until) = self.carried;
        match now < until {
            true => carried,
            false => ByteRate::ZERO,
        }
    }
}

impl Sos {
    /// Nobody helps yet. Only a step on the way to a state with at least one rescue server.
    pub(crate) fn with_calls(calls: Calls) -> Self {
        Self {
            servers: BTreeMap::new(),
            calls,
            law: RedirectLaw::new(),
            low: LowRedirects::default(),
            few: 0,
            cool: 0,
            threshold_told: f64::INFINITY,
        }
    }

    /// A candidate accepted our call.
    pub(crate) fn accepted(mut self, desk: &mut Desk, offer: Offer) -> Phase {
        let link = offer.link;
        if self.servers.contains_key(&link) {
            return Phase::Sos(self);
        }
        let Some(call) = self.calls.take(link) else {
            // Given up already: it must not keep its reservation for us.
            desk.act(Output::DropLink { link });
            return self.settle(desk);
        };
        if self.is_declined(desk, &offer, &call.site.host) {
            return self.decline(desk, link, call.site.host);
        }
        // An alias that leads to ourselves would be a redirect loop.
        let alias = &offer.peer.alias.host;
        let loops = *alias == desk.parameters.site.host || desk.aliases.contains(alias);
        let slot = desk.slots.take(|slot| {
            desk.aliases.uses_slot(slot) || self.servers.values().any(|server| server.slot == slot)
        });
        let is_expelled = desk.allocation.is_expelled(&call.site.host);
        let (false, Some(slot)) = (loops || is_expelled, slot) else {
            desk.act(Output::DropLink { link });
            desk.rest(&call.site.host, rest_after(Rejection::Garbage));
            self.calls.continue_round(desk, &hosts(&self.servers));
            return self.settle(desk);
        };
        desk.allocation.note_success(&call.site.host);
        desk.allocation.set_need(Need::None);
        desk.explain(Reason::RescueBegan {
            peer: call.site.host.clone(),
            rate: offer.peer.rate,
        });
        let silence = if offer.beats {
            Silence::DeathAt(desk.after(SILENCE))
        } else {
            Silence::Natural
        };
        let server = RescueServer {
            site: call.site,
            rate: offer.peer.rate,
            rate_told: offer.peer.rate,
            peer: offer.peer,
            peers_told: Vec::new(),
            key: offer.key,
            silence,
            since: desk.now,
            used: ByteRate::ZERO,
            carried: (ByteRate::ZERO, desk.now),
            useful: Usefulness::default(),
            slot,
            tls: offer.tls,
        };
        self.servers.insert(link, server);
        self.tell_peers(desk);
        Phase::Sos(self)
    }

    /// A candidate did not help.
    pub(crate) fn refused(mut self, desk: &mut Desk, link: LinkId, why: Rejection) -> Phase {
        self.calls.fail(desk, link, why, &hosts(&self.servers));
        self.settle(desk)
    }

    /// The candidates were renewed.
    pub(crate) fn candidates_found(mut self, desk: &mut Desk) -> Phase {
        self.calls.continue_round(desk, &hosts(&self.servers));
        Phase::Sos(self)
    }

    /// A control interval is over.
    pub(crate) fn measured(mut self, desk: &mut Desk, sample: &LoadSample) -> Phase {
        for (link, server) in &mut self.servers {
            let traffic = sample.redirects.get(link).copied().unwrap_or_default();
            server.used = ByteRate::of(traffic.file_bytes, sample.elapsed);
            let came_back = sample.came_back.get(link).copied().unwrap_or_default();
            if let Some(share) = server.useful.measure(traffic.requests, came_back) {
                let peer = server.site.host.clone();
                desk.explain(Reason::CameBack { peer, share });
            }
        }
        self.law.measure(&desk.load, &desk.parameters.thresholds);
        self.low
            .measure(&self.use_levels(desk), &desk.parameters.thresholds);
        self.few = match self.could_come_back(desk) {
            true => self.few.saturating_add(1),
            false => 0,
        };
        self.cool = match desk.copies.is_hot() {
            true => 0,
            false => self.cool.saturating_add(1),
        };
        match self.release(desk) {
            Release::Complete => return self.end_all(desk, ShutdownCause::CompleteRelease),
            Release::Partial => self.release_smallest(desk),
            Release::None => {}
        }
        self.tell_threshold(desk, sample);
        desk.allocation.set_need(self.need(desk));
        self.calls.hold_round(desk, &hosts(&self.servers));
        Phase::Sos(self)
    }

    /// A rescue server told its D_redi, new or the same.
    pub(crate) fn rate_told(
        &mut self,
        desk: &mut Desk,
        link: LinkId,
        rate: ByteRate,
        carried: Option<ByteRate>,
    ) {
        let Some(server) = self.servers.get_mut(&link) else {
            return;
        };
        server.rate = rate;
        server.carried = (carried.unwrap_or_default(), desk.after(SILENCE));
        if let Silence::DeathAt(_) = server.silence {
            server.silence = Silence::DeathAt(desk.after(SILENCE));
        }
        let from = server.rate_told;
        if is_news(from, rate) {
            server.rate_told = rate;
            let peer = server.site.host.clone();
            desk.explain(Reason::RateChanged {
                peer,
                from,
                to: rate,
            });
        }
    }

    /// The rescue server on `link` ended the rescue.
    pub(crate) fn shut_down(mut self, desk: &mut Desk, link: LinkId) -> Phase {
        self.part(desk, link, Farewell::None, "it shut the rescue down");
        self.tell_peers(desk);
        self.settle(desk)
    }

    /// The link is gone.
    pub(crate) fn lost(mut self, desk: &mut Desk, link: LinkId, loss: LinkLoss) -> Phase {
        self.part(desk, link, Farewell::after(loss), loss.why());
        self.tell_peers(desk);
        let helpers = hosts(&self.servers);
        self.calls
            .fail(desk, link, Rejection::Unreachable, &helpers);
        self.settle(desk)
    }

    /// Members are expelled: those of them that help do so no longer.
    pub(crate) fn expelled(mut self, desk: &mut Desk) -> Phase {
        let is_expelled = |server: &RescueServer| desk.allocation.is_expelled(&server.site.host);
        let servers = self.servers.iter();
        let expelled = servers.filter(|(_, server)| is_expelled(server));
        let links: Vec<LinkId> = expelled.map(|(&link, _)| link).collect();
        for link in links {
            self.part(desk, link, Farewell::Expel, "it is expelled");
        }
        self.tell_peers(desk);
        self.settle(desk)
    }

    /// Time has passed: calls may be overdue, rescue servers may have fallen silent.
    pub(crate) fn time_passed(mut self, desk: &mut Desk) -> Phase {
        self.calls.give_up(desk, &hosts(&self.servers));
        let silent = self.servers.iter().filter(
            |(_, server)| matches!(server.silence, Silence::DeathAt(death) if desk.now >= death),
        );
        let links: Vec<LinkId> = silent.map(|(&link, _)| link).collect();
        for link in links {
            self.part(desk, link, Farewell::Drop, LinkLoss::Silent.why());
        }
        self.tell_peers(desk);
        self.settle(desk)
    }

    /// Whether anybody helps or is being asked.
    pub(crate) fn helps_or_is_asked(&self) -> bool {
        !self.servers.is_empty() || !self.calls.is_empty()
    }

    /// Asks the next candidate, if help is wanted and nobody is being asked.
    pub(crate) fn ask(&mut self, desk: &mut Desk) {
        self.calls.continue_round(desk, &hosts(&self.servers));
    }

    /// Who was asked on `link` and has not answered.
    pub(crate) fn asked(&self, link: LinkId) -> Option<HostName> {
        self.calls.asked(link)
    }

    /// Who helps on `link`.
    pub(crate) fn helper(&self, link: LinkId) -> Option<HostName> {
        let server = self.servers.get(&link);
        server.map(|server| server.site.host.clone())
    }

    /// Who helps, and where each answers.
    pub(crate) fn members(&self) -> Vec<Peer> {
        let servers = self.servers.values();
        servers.map(|server| server.peer.clone()).collect()
    }

    /// Lets all rescue servers go and forgets all calls.
    pub(crate) fn end_all(mut self, desk: &mut Desk, cause: ShutdownCause) -> Phase {
        let links: Vec<LinkId> = self.servers.keys().copied().collect();
        for link in links {
            self.part(desk, link, Farewell::ShutDown(cause), cause.why());
        }
        self.calls.drop_all(desk);
        desk.allocation.set_need(Need::None);
        Phase::Normal
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let deaths = self
            .servers
            .values()
            .filter_map(|server| match server.silence {
                Silence::Natural => None,
                Silence::DeathAt(death) => Some(death),
            });
        deaths.chain(self.calls.next_deadline()).min()
    }

    /// T_redi of the present interval.
    pub(crate) fn threshold(&self, desk: &Desk) -> f64 {
        self.law.threshold(&desk.parameters.thresholds)
    }

    /// The rescue servers to copy to, in the order of the plan.
    pub(crate) fn copy_members(&self) -> Vec<Member> {
        let member = |(&link, server): (&LinkId, &RescueServer)| Member {
            link,
            alias: server.peer.alias.clone(),
            weight: server.peer.rate,
        };
        self.servers.iter().map(member).collect()
    }

    /// How to redirect in the present interval.
    pub(crate) fn redirect_plan(&self, desk: &Desk) -> RedirectPlan {
        let parameters = &desk.parameters;
        let usable = parameters.usable_rate();
        let threshold = self.threshold(desk);
        let Thresholds { alert, high, .. } = parameters.thresholds;
        let (direct, direct_ceiling, early) = match parameters.hot_spots.law {
            Law::Combined => (threshold, f64::midpoint(high, 1.0), threshold.min(alert)),
            // Nothing is redirected because of the load, and what is hot always is.
            Law::Resources => (1.0, 1.0, 0.0),
            Law::Load => (threshold, f64::midpoint(high, 1.0), threshold),
        };
        let targets = self.servers.iter().map(|(&link, server)| Target {
            link,
            slot: server.slot,
            alias: server.peer.alias.clone(),
            tls: server.tls,
            address: server.peer.address,
            rate: server.useful.of(server.rate),
        });
        RedirectPlan {
            redirects: parameters.redirects,
            law: parameters.hot_spots.law,
            early: usable.times(early),
            hot: desk.copies.routes(),
            direct: usable.times(direct),
            direct_ceiling: usable.times(direct_ceiling),
            usable,
            usable_share: parameters.usable,
            connection_overhead: parameters.connection_overhead,
            large_file: parameters.large_file_here(),
            targets: targets.collect(),
        }
    }

    /// Keys with which our rescue servers fetch.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (LinkId, FetchKey)> + '_ {
        self.servers
            .iter()
            .map(|(&link, server)| (link, server.key))
    }

    /// The rescue servers, for people.
    pub(crate) fn views(&self) -> Vec<RescueView> {
        let view = |(&link, server): (&LinkId, &RescueServer)| RescueView {
            link,
            slot: server.slot,
            peer: server.site.clone(),
            alias: server.peer.alias.clone(),
            since: server.since,
            rate: server.rate,
            used: server.used,
            orphaned_until: None,
        };
        self.servers.iter().map(view).collect()
    }

    /// In SOS while anybody helps, calling while anybody is asked, else as the load says.
    fn settle(self, desk: &mut Desk) -> Phase {
        if !self.servers.is_empty() {
            return Phase::Sos(self);
        }
        measure_need(desk);
        call_for_help(desk, self.calls)
    }

    /// One more rescue server is needed when all are used up to T_coff; or when visitors wait
    /// although our link could still carry their redirects, and all are well used: files that are
    /// large beside D_redi can leave room that none of them fits in.
    fn need(&self, desk: &Desk) -> Need {
        let HotSpotPolicy { law, replicas, .. } = desk.parameters.hot_spots;
        match law {
            Law::Combined | Law::Load => {}
            Law::Resources if desk.copies.is_hot() && self.servers.len() < replicas => {
                return Need::OneMore;
            }
            Law::Resources => return Need::None,
        }
        let Thresholds {
            alert,
            high,
            cutoff,
            ..
        } = desk.parameters.thresholds;
        if !desk.load.is_above(alert) {
            return Need::None;
        }
        // Nothing but more names takes visitors from us then.
        if desk.parameters.redirects == Redirects::Off && desk.load.is_above(high) {
            return Need::OneMore;
        }
        let levels = match desk.parameters.redirects {
            Redirects::On => self.redirect_levels(),
            Redirects::Off => self.use_levels(desk),
        };
        let all_reach = |share: f64| levels.iter().all(|&level| level >= share);
        let waiting = desk.load.pressure() == Pressure::Pressed && desk.load.redirects() < cutoff;
        // Visitors also wait when a burst meets the budget of an interval. One more rescue server,
        // with a cold cache, would only put its fetches before their redirects.
        if all_reach(cutoff) || (waiting && all_reach(alert)) {
            Need::OneMore
        } else {
            self.need_by_https(desk)
        }
    }

    fn release(&self, desk: &Desk) -> Release {
        match desk.parameters.hot_spots.law {
            Law::Combined | Law::Load => {
                let calm = desk.load.calm_intervals().min(self.few);
                release(&desk.parameters, calm, self.low)
            }
            Law::Resources if self.cool >= desk.parameters.low_intervals => Release::Complete,
            Law::Resources => Release::None,
        }
    }

    fn redirect_levels(&self) -> Vec<f64> {
        let level =
            |server: &RescueServer| redirect_level(server.used, server.useful.of(server.rate));
        self.servers.values().map(level).collect()
    }

    /// As [`Self::redirect_levels`], with the visitors who came by our name in DNS: nobody
    /// redirected them, and they are there all the same.
    fn use_levels(&self, desk: &Desk) -> Vec<f64> {
        let levels = self
            .redirect_levels()
            .into_iter()
            .zip(self.servers.values());
        levels
            .map(|(level, server)| {
                let carried = server.carried(desk.now);
                level.max(carried.share_of(server.peer.rate))
            })
            .collect()
    }

    /// Whether all visitors of the rescue servers could come back to us without a new call for
    /// help: with DNS our own load is low because they are there.
    fn could_come_back(&self, desk: &Desk) -> bool {
        let servers = self.servers.values();
        let carried = servers.map(|server| server.carried(desk.now));
        let all = carried.fold(ByteRate::ZERO, ByteRate::plus);
        let level = all.share_of(desk.parameters.usable_rate());
        level <= COME_BACK * desk.parameters.thresholds.alert
    }

    fn release_smallest(&mut self, desk: &mut Desk) {
        let smallest = self.servers.iter().min_by_key(|(_, server)| server.rate);
        if let Some(link) = smallest.map(|(&link, _)| link) {
            let cause = ShutdownCause::PartialRelease;
            self.part(desk, link, Farewell::ShutDown(cause), cause.why());
            self.tell_peers(desk);
        }
        self.low = LowRedirects::default();
    }

    fn part(&mut self, desk: &mut Desk, link: LinkId, farewell: Farewell, why: &'static str) {
        let Some(server) = self.servers.remove(&link) else {
            return;
        };
        if let Some(output) = farewell.output(link) {
            desk.act(output);
        }
        if farewell.is_failure() {
            desk.rest(&server.site.host, REST_AFTER_LOSS);
        }
        match farewell.key() {
            Key::Forgotten => {}
            Key::Retired => desk.retire_key(link, server.key),
        }
        desk.explain(Reason::RescueEnded {
            peer: server.site.host,
            why,
        });
    }

    /// Tells each rescue server who helps, where it does not know.
    fn tell_peers(&mut self, desk: &mut Desk) {
        let mut members: Vec<Peer> = match self.servers.len() {
            0 | 1 => Vec::new(),
            _ => self
                .servers
                .values()
                .map(|server| server.peer.clone())
                .collect(),
        };
        members.sort_by(|a, b| b.rate.cmp(&a.rate).then_with(|| a.alias.cmp(&b.alias)));
        members.truncate(PEERS_MAX);
        for (&link, server) in &mut self.servers {
            if server.peers_told != members {
                server.peers_told.clone_from(&members);
                let members = members.clone();
                desk.act(Output::TellPeers { link, members });
            }
        }
    }

    fn tell_threshold(&mut self, desk: &mut Desk, sample: &LoadSample) {
        let threshold = self.threshold(desk);
        if (threshold - self.threshold_told).abs() < NEWS {
            return;
        }
        self.threshold_told = threshold;
        let requests: u64 = sample.redirects.values().map(|t| t.requests).sum();
        let redirects = requests as f64 / sample.elapsed.as_secs_f64();
        desk.explain(Reason::RedirectThreshold {
            threshold,
            redirects,
        });
    }
}

/// A rate that changed by a tenth is told to people.
pub(crate) fn is_news(from: ByteRate, to: ByteRate) -> bool {
    from.less(to).plus(to.less(from)) > from.times(NEWS)
}

fn hosts(servers: &BTreeMap<LinkId, RescueServer>) -> Vec<HostName> {
    let host = |server: &RescueServer| server.site.host.clone();
    servers.values().map(host).collect()
}
