//! What to do with one request (R5, R6): serve it, redirect it, let it wait, or refuse it.
//!
//! One Gate stands at each core. It reads the plan of the Brain and keeps, per control interval,
//! what it has granted: direct responses (T_redi * D_out), all responses (D_out), and what is
//! redirected to each rescue server (D_redi, in bytes of files). With several cores each Gate has
//! its share of every budget. It decides by arithmetic on what it holds: no lock, no allocation.
//!
//! ```text
//!   may be redirected?  no ──▶ serve while the link's backlog is short, else wait or be refused
//!        │ yes
//!   hot and copied, early budget spent? ─ yes ─▶ redirect to one that holds it, if it has room
//!        │ no
//!   direct budget left? yes ─▶ serve          (also what is no larger than the redirect itself)
//!        │ no
//!   a rescue server that holds it has room? ─ yes ─▶ redirect
//!        │ no
//!   a rescue server has room? ─ yes ─▶ redirect   (round robin by D_redi; large files by hash)
//!        │ no
//!   every D_redi used up? ─ yes ─▶ serve from what is left of D_out
//!        │ no
//!   wait; after wait_max: refuse
//! ```
//!
//! What is held elsewhere gives up its early budget as far as it crowds out what nobody holds.
//! Where the operator wants no redirects, what has room on the link is served, and the rest waits.
//! Crawlers stand apart: they have a ration of their own, are never redirected and never wait.
//!
//! Visitors' responses together stay within D_out. Those that are served directly yield to
//! redirects when both together come near it, so a crowd that doubles within an interval finds
//! room. What was not asked for here, above all the fetches of rescue servers, uses up what may be
//! served directly but never holds up a redirect: the link sends redirects first.

use std::sync::Arc;
use std::time::Duration;

use levee_vocab::{ByteRate, Timestamp};

use crate::copies::{Copies, Heat};
use crate::crawlers::{Ration, Visitor};
use crate::law::Law;
use crate::parameters::Redirects;
use crate::plan::{RedirectPlan, RoutePlan};

mod allowance;
mod help;
mod making_way;
mod targets;

use allowance::Allowance;
use help::HelpGate;
use making_way::MakingWay;
use targets::{Targets, Term};

/// How long a visitor may be kept, and how full the link may be.
#[derive(Clone, Debug, PartialEq)]
pub struct GateLimits {
    /// Pages are served only while the link needs less than this for what is admitted. Default 1 s.
    pub backlog_max: Duration,
    /// A request that waited this long for capacity is refused. Default 5 s: people give up at 7.
    pub wait_max: Duration,
}

/// Part of an interval's direct budget that may be saved for the next one. The site then settles
/// at T_high also where few requests come to each core.
const DIRECT_SAVINGS: f64 = 0.25;

/// Crawlers are served only while the backlog is this part of what visitors may find.
const CRAWLER_BACKLOG: u32 = 4;

/// Whether a request may be sent to a rescue server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirectability {
    /// A page or file that anybody may have.
    Allowed,
    /// The same, of a visitor who came by HTTPS: only where a rescue server answers by it.
    ByHttps,
    /// A rescue server's fetch, a status page, a request with credentials, and the like.
    Never,
}

/// One request, as far as the Gate needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Whose request it is.
    pub visitor: Visitor,
    /// Whether it may be redirected.
    pub redirectable: Redirectability,
    /// The whole response if it is served here.
    pub file_bytes: u64,
    /// The whole redirect: n.
    pub redirect_bytes: u64,
    /// What this response costs beside its bytes: 358 for the first on a connection.
    pub overhead_bytes: u64,
    /// Hash of the path, the same on every core.
    pub path_hash: u64,
    /// Hash of host, path and query, by which its copies are found.
    pub resource_hash: u64,
    /// Who holds a copy, by the plan in force.
    pub copies: Copies,
    /// Time that the link needs for what is admitted already.
    pub backlog: Duration,
    /// How long this request has waited for capacity.
    pub waited: Duration,
}

/// What to do with it. What is granted is charged already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer it here.
    Serve,
    /// Redirect it.
    Redirect {
        /// Index in the targets of the plan.
        target: usize,
    },
    /// Park it and ask again: at the next grant of the link, interval or plan.
    Wait,
    /// Refuse it: there is no capacity.
    Refuse,
    /// Refuse it: its origin has had what the operator gives it. That is no load of ours.
    Withhold,
    /// It is a crawler's: tell it to come back later.
    PutOff,
}

/// How a crawler is put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuttingOff {
    /// It is told so.
    Told,
    /// Too many are told already: its connection is closed.
    Closed,
}

/// Decides for one core. See the file header.
#[derive(Clone, Debug)]
pub struct Gate {
    limits: GateLimits,
    plan: Arc<RoutePlan>,
    /// What the plan says beside the budgets; a copy, because to share the plan on each request is
    /// a write that all cores fight for.
    rules: Option<Rules>,
    /// T_redi * D_out, for what is served directly.
    direct: Allowance,
    /// What may be served directly before what is hot and copied is redirected.
    early: Allowance,
    making_way: MakingWay,
    /// A little less than D_out, for all that goes out; holds up only what is served directly.
    ceiling: Allowance,
    /// D_out, for what visitors get.
    total: Allowance,
    targets: Targets,
    /// What crawlers get, and what telling them to come back later may cost.
    crawlers: Ration,
    put_off: Ration,
    /// What origins get that we rescue.
    help: HelpGate,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    redirects: Redirects,
    law: Law,
    usable_share: f64,
    large_file: u64,
}

/// Whom a request may be redirected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// Who holds a copy.
    Holders,
    /// Anybody, who holds a copy first.
    All,
}

impl Rules {
    /// Whom the law allows when there is no room here.
    fn among(self) -> Among {
        match self.law {
            Law::Combined | Law::Load => Among::All,
            Law::Resources => Among::Holders,
        }
    }

    fn of(plan: &RedirectPlan) -> Self {
        Self {
            redirects: plan.redirects,
            law: plan.law,
            usable_share: plan.usable_share,
            large_file: plan.large_file,
        }
    }
}

impl Gate {
    /// A gate that serves all it can until it has adopted a plan.
    pub fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            plan: Arc::default(),
            rules: None,
            direct: Allowance::with_savings(DIRECT_SAVINGS),
            early: Allowance::forgetful(),
            making_way: MakingWay::default(),
            ceiling: Allowance::default(),
            total: Allowance::default(),
            targets: Targets::default(),
            crawlers: Ration::default(),
            put_off: Ration::default(),
            help: HelpGate::default(),
        }
    }

    /// From now on decides by `plan`, with `share` (0 to 1) of all its budgets. A new interval
    /// number begins the budgets anew; otherwise what was granted stays granted.
    pub fn adopt(&mut self, now: Timestamp, plan: Arc<RoutePlan>, share: f64) {
        let term = match &self.plan.redirect {
            Some(_) if plan.interval == self.plan.interval => Term::Same,
            Some(_) | None => Term::New,
        };
        if let Some(redirect) = &plan.redirect {
            if term == Term::New {
                self.making_way
                    .end_interval(plan.interval_length.as_secs_f64());
            }
            let rate = |rate: ByteRate| rate.as_bytes() as f64 * share;
            let early = self.making_way.left_of(rate(redirect.early));
            let budgets = [
                (&mut self.direct, rate(redirect.direct)),
                (&mut self.early, early),
                (&mut self.ceiling, rate(redirect.direct_ceiling)),
                (&mut self.total, rate(redirect.usable)),
            ];
            for (budget, rate) in budgets {
                match term {
                    Term::New => budget.begin(now, plan.interval_length, rate),
                    Term::Same => budget.set_rate(rate),
                }
            }
            let length = plan.interval_length;
            self.targets.renew(now, redirect, length, share, term);
        } else {
            *self = Self {
                crawlers: std::mem::take(&mut self.crawlers),
                put_off: std::mem::take(&mut self.put_off),
                help: std::mem::take(&mut self.help),
                ..Self::new(self.limits.clone())
            };
        }
        if let Some(crawl) = plan.crawl {
            let rate = |rate: ByteRate| rate.as_bytes() as f64 * share;
            self.crawlers.set_rate(now, rate(crawl.pages));
            self.put_off.set_rate(now, rate(crawl.refusals));
        }
        self.help.adopt(now, plan.help.as_ref(), share);
        self.rules = plan.redirect.as_ref().map(Rules::of);
        self.plan = plan;
    }

    /// The plan in force.
    pub fn plan(&self) -> &Arc<RoutePlan> {
        &self.plan
    }

    /// Decides about one request, and charges what it grants.
    pub fn decide(&mut self, now: Timestamp, ask: &Ask) -> Verdict {
        let verdict = match (ask.visitor, self.rules, ask.redirectable) {
            (Visitor::Crawler(_), _, _) => self.by_ration(now, ask),
            (Visitor::Reader, None, _) => self.by_backlog(ask),
            (Visitor::Reader, Some(_), Redirectability::Never) => self.by_backlog(ask),
            // Nobody who rescues us speaks HTTPS: he is served as if nobody did.
            (Visitor::Reader, Some(_), Redirectability::ByHttps)
                if !self.targets.are_within(Redirectability::ByHttps) =>
            {
                self.by_backlog(ask)
            }
            (Visitor::Reader, Some(rules), Redirectability::Allowed | Redirectability::ByHttps) => {
                match rules.redirects {
                    Redirects::On => self.by_budget(now, ask, rules),
                    Redirects::Off => self.by_backlog(ask),
                }
            }
        };
        if verdict == Verdict::Serve {
            self.note_direct(now, ask.file_bytes);
        }
        verdict
    }

    /// `bytes` go out that were not asked for here: fetches by rescue servers, status pages. They
    /// use up the direct budget, and may overdraw it.
    pub fn note_direct(&mut self, _now: Timestamp, bytes: u64) {
        if self.rules.is_some() {
            self.direct.charge(bytes as f64);
            self.early.charge(bytes as f64);
            self.ceiling.charge(bytes as f64);
        }
    }

    /// Whether `bytes` may go to a visitor of the origin of `slot`, by what the operator gives at
    /// most. They are charged then.
    pub fn may_help(&mut self, now: Timestamp, slot: u8, bytes: u64) -> bool {
        self.plan.help.is_none() || self.help.take(now, slot, bytes as f64)
    }

    /// Whether a crawler can be told to come back later, which costs `bytes`.
    pub fn put_off(&mut self, now: Timestamp, bytes: u64) -> PuttingOff {
        match self.plan.crawl.is_none() || self.put_off.take(now, bytes as f64) {
            true => PuttingOff::Told,
            false => PuttingOff::Closed,
        }
    }

    /// Crawlers get their ration while nobody would have to wait for it.
    fn by_ration(&mut self, now: Timestamp, ask: &Ask) -> Verdict {
        let has_room = ask.backlog < self.limits.backlog_max / CRAWLER_BACKLOG;
        let is_rationed = self.plan.crawl.is_some();
        if has_room && (!is_rationed || self.crawlers.take(now, ask.file_bytes as f64)) {
            Verdict::Serve
        } else {
            Verdict::PutOff
        }
    }

    fn by_budget(&mut self, now: Timestamp, ask: &Ask, rules: Rules) -> Verdict {
        let bytes = ask.file_bytes as f64;
        let cost = |bytes: u64| (bytes + ask.overhead_bytes) as f64 * rules.usable_share;
        let redirect_cost = cost(ask.redirect_bytes);
        // U stands for the overhead of pages of some size; small answers cost the link more.
        let direct_cost = bytes.max(cost(ask.file_bytes));
        let has_backlog = ask.backlog >= self.limits.backlog_max;
        let has_direct_room = !has_backlog && self.has_direct_room(now, bytes);
        // What is hot makes room for what nobody holds a copy of, once there is little left.
        let is_early = ask.copies.holders != 0 && ask.copies.heat == Heat::Redirected;
        let is_direct = has_direct_room && (!is_early || self.early.has_room(now, bytes));
        let may_redirect = self.total.has_room(now, redirect_cost);
        // Answering what is no larger than a redirect is as cheap, and the visitor is done.
        let is_small = ask.file_bytes <= ask.redirect_bytes;
        if is_direct || (may_redirect && is_small) {
            if ask.copies.holders != 0 {
                self.making_way.note_held_served(bytes);
            }
            self.total.charge(direct_cost);
            return Verdict::Serve;
        }
        let among = match has_direct_room {
            true => Among::Holders,
            false => rules.among(),
        };
        if may_redirect && let Some(target) = self.pick(now, ask, rules, among) {
            self.ceiling.charge(redirect_cost);
            self.total.charge(redirect_cost);
            if ask.copies.holders == 0 {
                self.making_way.note_unheld_redirected(bytes);
            }
            return Verdict::Redirect { target };
        }
        // Those that hold it have no room: it is like any other.
        if has_direct_room {
            self.total.charge(direct_cost);
            return Verdict::Serve;
        }
        let used_up = self.targets.are_used_up(ask.file_bytes, ask.redirectable);
        if used_up && !has_backlog && self.total.has_room_or_is_fresh(now, bytes) {
            self.total.charge(direct_cost);
            return Verdict::Serve;
        }
        self.wait_or_refuse(ask)
    }

    /// A rescue server with room: one that holds a copy, else any where the law allows it.
    fn pick(&mut self, now: Timestamp, ask: &Ask, rules: Rules, among: Among) -> Option<usize> {
        let (bytes, holders) = (ask.file_bytes, ask.copies.holders);
        let reach = ask.redirectable;
        let holder = match (holders, rules.law, ask.copies.heat) {
            // The paper on hot spots redirects from T_R on.
            (0, _, _) | (_, Law::Resources, Heat::Warm) => None,
            (_, Law::Combined | Law::Load, _) | (_, Law::Resources, Heat::Redirected) => {
                self.targets.pick_holder(now, bytes, holders, reach)
            }
        };
        match among {
            Among::Holders => holder,
            Among::All => holder.or_else(|| {
                let hash = (bytes >= rules.large_file).then_some(ask.path_hash);
                self.targets.pick(now, bytes, hash, reach)
            }),
        }
    }

    /// Whether `bytes` may be served directly. On a small link a single page can be larger than the
    /// head start of an interval. While d_out is below T_redi * D_out it goes all the same, paid
    /// from what earlier intervals left over; in a crowd they leave nothing.
    fn has_direct_room(&self, now: Timestamp, bytes: f64) -> bool {
        let (ceiling, total) = (&self.ceiling, &self.total);
        if self.direct.has_room(now, bytes) {
            return ceiling.has_room(now, bytes) && total.has_room(now, bytes);
        }
        self.direct.has_spare(bytes) && ceiling.fits(bytes) && total.fits(bytes)
    }

    fn by_backlog(&self, ask: &Ask) -> Verdict {
        if ask.backlog < self.limits.backlog_max {
            Verdict::Serve
        } else {
            self.wait_or_refuse(ask)
        }
    }

    fn wait_or_refuse(&self, ask: &Ask) -> Verdict {
        if ask.waited < self.limits.wait_max {
            Verdict::Wait
        } else {
            Verdict::Refuse
        }
    }
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            backlog_max: Duration::from_secs(1),
            wait_max: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests;
