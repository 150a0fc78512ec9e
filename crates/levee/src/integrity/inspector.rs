//! Looks at what our rescue servers deliver, one page after the other, unannounced.
//!
//! ```text
//!  tick, or a report ─▶ a member, a page ─▶ look ─▶ wrong? ─▶ PURGE there ─▶ look again
//!                                                                   │ wrong again, or too often
//!                                                                   ▼
//!                                                 expelled: the link is cut, the list written
//! ```
//!
//! A page that comes late is looked at once more; who is late again is parted from.
//!
//! Pages are drawn from what visitors ask for, and their place from the addresses to which the name
//! of the alias leads. A page is judged by its signature first. One without is compared with ours,
//! read from our own cores as this member would get it, before and after the look: where ours is
//! for one visitor, or changes all the time, nothing can be said and nothing is. Compared as well
//! are redirects and fields that lead elsewhere (`diversion`). What a look comes to is decided in
//! `levee_control::Inspection`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use levee_control::{Inspection, Look, NextStep, Pace};
use levee_proxy::{Errand, Front, OriginKey, PushJudgement, Standing, judge_push};
use levee_registry::PrivateAddresses;
use levee_vocab::{Purge, PurgeKind, Random, WebAddress};
use levee_wire::Digest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::diversion::{self, Whereabouts};
use super::expelled::{Expelled, digest_text};
use super::look::{self, Guise, Page};
use super::scene::{Helper, Scene};
use super::{IntegrityOffice, Reported, Ways};
use crate::alias_name::to_look_at;
use crate::rescue_link::{AliasPlaces, LinkCharge, PurgeLine};
use crate::trust::unix_now;
use crate::way::{Authorities, Place, Scheme};

/// What an inspector works with.
pub struct InspectorParts {
    /// Keys, and the list of the expelled.
    pub office: Arc<IntegrityOffice>,
    /// Our own cores.
    pub front: Weak<Front>,
    /// Our own name and port.
    pub site: WebAddress,
    /// Who helps us, and what visitors ask for.
    pub scene: watch::Receiver<Arc<Scene>>,
    /// What rescue servers report.
    pub reports: mpsc::Receiver<Reported>,
    /// How to have a page taken back.
    pub purges: PurgeLine,
    /// Where aliases lead.
    pub places: AliasPlaces,
    /// Whether visitors may be at private addresses.
    pub private_addresses: PrivateAddresses,
    /// By which ways our visitors come to it.
    pub ways: Ways,
    /// Told of what looks cost.
    pub charge: LinkCharge,
    /// Time between two looks; zero for none but those that reports ask for.
    pub every: Duration,
    /// Chooses members and pages.
    pub seed: u64,
}

/// See the file header.
pub struct Inspector {
    parts: InspectorParts,
    key: OriginKey,
    authorities: Authorities,
    inspection: Inspection,
    random: Random,
}

/// A page at a rescue server, and how a visitor comes there.
#[derive(Clone, Copy)]
struct Aim<'a> {
    helper: &'a Helper,
    scheme: Scheme,
    /// One of those to which the alias leads.
    address: IpAddr,
    target: &'a str,
}

/// What was seen of one page, and what was expected.
struct Sight {
    look: Look,
    pace: Pace,
    /// A digest, or where visitors are sent.
    seen: Option<String>,
    expected: Option<Digest>,
}

impl Inspector {
    /// An inspector that has seen nothing yet.
    pub fn new(parts: InspectorParts) -> Self {
        let key = super::origin_key(parts.office.identity.key());
        let random = Random::from_seed(parts.seed);
        Self {
            parts,
            key,
            authorities: Authorities::any(),
            inspection: Inspection::default(),
            random,
        }
    }

    /// Looks until the server stops.
    ///
    /// Cancel safety: it may be dropped at any point.
    pub async fn run(mut self) {
        // Whoever was expelled before the start stays so.
        self.parts.office.tell_expelled().await;
        // Without looks of our own a tick has nothing to do.
        let is_looking = !self.parts.every.is_zero();
        let mut ticks = interval(self.parts.every.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick(), if is_looking => self.look_somewhere().await,
                reported = self.parts.reports.recv() => match reported {
                    Some(reported) => self.hear(reported).await,
                    None => return,
                },
            }
        }
    }

    async fn look_somewhere(&mut self) {
        let scene = Arc::clone(&self.parts.scene.borrow());
        let names: BTreeSet<_> = scene.helpers.iter().map(|one| one.site.clone()).collect();
        self.inspection.retain(&names);
        let Some(helper) = self.draw(&scene.helpers) else {
            return;
        };
        let ways = self.parts.ways.to(helper.tls);
        let target = self.draw(&scene.urls).and_then(|url| target_of(url));
        let (Some(&scheme), Some(target)) = (self.draw(ways), target) else {
            return;
        };
        let aim = Aim {
            helper,
            scheme,
            address: self.draw_address(helper),
            target,
        };
        let mut first = self.look(aim).await;
        if first.pace == Pace::Late {
            // It may have had to fetch the page from us, over our own full link. Now it has it.
            first = self.look(aim).await;
        }
        let step = self.inspection.paced(&helper.site, first.pace);
        if step == NextStep::Part {
            return self.parts.office.part(helper.link).await;
        }
        match self.inspection.first(&helper.site, first.look) {
            NextStep::Nothing | NextStep::Part => {}
            NextStep::LookAgain => self.look_again(aim, first).await,
            NextStep::Expel => self.expel(aim, first).await,
        }
    }

    /// A member of ours says what another one delivered.
    async fn hear(&mut self, reported: Reported) {
        let scene = Arc::clone(&self.parts.scene.borrow());
        let mut helpers = scene.helpers.iter();
        let report = reported.report;
        let accused = helpers.find(|helper| helper.alias == report.alias);
        let by = scene.helpers.iter().find(|one| one.link == reported.link);
        let (Some(accused), Some(by)) = (accused, by) else {
            return;
        };
        tracing::warn!(
            member = %accused.site,
            by = %by.site,
            target = report.target,
            "a member reports another one"
        );
        let sight = Sight {
            look: Look::Foreign,
            pace: Pace::Timely,
            seen: Some(digest_text(report.seen)),
            expected: None,
        };
        let scheme = match report.by_https {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let aim = Aim {
            helper: accused,
            scheme,
            address: self.draw_address(accused),
            target: &report.target,
        };
        let (accused, by) = (&accused.site, &by.site);
        match self.inspection.reported(accused, by, aim.target) {
            NextStep::Nothing | NextStep::Part => {}
            NextStep::LookAgain => self.look_again(aim, sight).await,
            NextStep::Expel => self.expel(aim, sight).await,
        }
    }

    async fn look_again(&mut self, aim: Aim<'_>, first: Sight) {
        if let Ok(purge) = Purge::url(aim.target, PurgeKind::Hard) {
            self.parts.purges.purge(purge).await;
        }
        let second = self.look(aim).await;
        let member = &aim.helper.site;
        let next = self.inspection.second(member, first.look, second.look);
        match next {
            NextStep::Nothing | NextStep::Part | NextStep::LookAgain => {}
            NextStep::Expel => {
                let sight = match second.look.is_wrong() {
                    true => second,
                    false => first,
                };
                self.expel(aim, sight).await;
            }
        }
    }

    async fn expel(&self, aim: Aim<'_>, sight: Sight) {
        let unknown = || "-".to_owned();
        let expelled = Expelled {
            member: aim.helper.site.clone(),
            since: unix_now().0 / 1000,
            target: aim.target.to_owned(),
            expected: sight.expected.map_or_else(unknown, digest_text),
            seen: sight.seen.unwrap_or_else(unknown),
        };
        self.parts.office.expel(expelled).await;
    }

    /// What a visitor gets there, judged.
    async fn look(&mut self, aim: Aim<'_>) -> Sight {
        let guise = Guise(self.random.within(0..64) as usize);
        let (page, pace) = self.visit(aim, guise).await;
        let sight = match page {
            Some(page) => self.judge(aim, guise, &page).await,
            None => Sight::nothing(pace),
        };
        self.parts.office.looks.note(sight.look);
        sight
    }

    async fn visit(&self, aim: Aim<'_>, guise: Guise) -> (Option<Page>, Pace) {
        let told = aim.helper.address.ip();
        let (page, pace) = self.visit_at(aim.address, aim, guise).await;
        if page.is_some() || aim.address == told {
            return (page, pace);
        }
        // From here there may be no way to an address that its visitors reach.
        self.visit_at(told, aim, guise).await
    }

    async fn visit_at(&self, at: IpAddr, aim: Aim<'_>, guise: Guise) -> (Option<Page>, Pace) {
        (self.parts.charge)(look::look_bytes(aim.scheme));
        let (alias, mut address) = aim.helper.door(aim.scheme);
        address.set_ip(at);
        let place = Place {
            scheme: aim.scheme,
            address,
            host: &aim.scheme.authority(&alias),
        };
        look::delivered(&self.authorities, place, (aim.target, guise)).await
    }

    /// Where a visitor of `helper` comes to: its name may have more addresses than the one that it
    /// has told us.
    fn draw_address(&mut self, helper: &Helper) -> IpAddr {
        let told = helper.address.ip();
        let found = self.parts.places.of(helper.link);
        let places = to_look_at(found, told, self.parts.private_addresses);
        self.draw(&places).copied().unwrap_or(told)
    }

    async fn judge(&self, aim: Aim<'_>, guise: Guise, page: &Page) -> Sight {
        match self.seen_at_once(aim, page) {
            // Ours is not read: in a crowd that takes its time, and its part of our link.
            Some(look) if !look.is_wrong() => Sight::of(look, page, None),
            Some(look) => {
                let ours = self.own(aim, guise).await;
                Sight::of(look, page, ours.map(|ours| ours.digest))
            }
            None => self.compare(aim, guise).await,
        }
    }

    /// What a page is, where that can be said without ours.
    fn seen_at_once(&self, aim: Aim<'_>, page: &Page) -> Option<Look> {
        let standing = self.standing(aim, page);
        if let Some(location) = page.location() {
            let whereabouts = Whereabouts {
                site: &self.parts.site,
                helper: aim.helper,
                target: aim.target,
            };
            // We have said it ourselves, or he is sent where he may be.
            let is_ours = standing == Standing::Authentic || whereabouts.is_at_home(location);
            return is_ours.then_some(Look::Nothing);
        }
        match standing {
            Standing::Authentic if diversion::moves(&page.headers) => None,
            Standing::Authentic => Some(Look::Authentic),
            Standing::Forged => Some(Look::Forged),
            Standing::Unsigned => None,
        }
    }

    fn standing(&self, aim: Aim<'_>, page: &Page) -> Standing {
        look::standing(page, &self.key, &self.parts.site, aim.target)
    }

    /// A page of which its signature does not say everything, once more between two readings of
    /// ours.
    async fn compare(&self, aim: Aim<'_>, guise: Guise) -> Sight {
        let before = self.own(aim, guise).await;
        let (page, pace) = self.visit(aim, guise).await;
        let Some(page) = page else {
            return Sight::nothing(pace);
        };
        let look = match self.seen_at_once(aim, &page) {
            Some(look) => look,
            None => match (&before, self.own(aim, guise).await) {
                (Some(before), Some(after)) if before.is_like(&after) => {
                    look::compared(&page, self.standing(aim, &page), &after)
                }
                (_, _) => Look::Nothing,
            },
        };
        Sight::of(look, &page, before.map(|before| before.digest))
    }

    /// The page that we have ourselves; none where a rescue server would not keep it.
    async fn own(&self, aim: Aim<'_>, guise: Guise) -> Option<Page> {
        let front = self.parts.front.upgrade()?;
        let stream = front.visit(Errand::Look(aim.helper.address.ip())).ok()?;
        drop(front);
        let stream = UnixStream::from_std(stream).ok()?;
        let host = self.parts.site.to_string();
        let page = look::page(stream, &host, (aim.target, guise), look::LOOK_MAX).await?;
        let is_page = page.status == StatusCode::OK && may_be_kept(&page.headers);
        is_page.then_some(page)
    }

    fn draw<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        let place = self.random.within(0..from.len() as u64);
        from.get(place as usize)
    }
}

impl Sight {
    fn of(look: Look, page: &Page, expected: Option<Digest>) -> Self {
        let diverted = match look {
            Look::Diverted => diversion::evidence(page.location(), &page.headers),
            Look::Authentic | Look::Same | Look::Foreign | Look::Forged | Look::Nothing => None,
        };
        Self {
            look,
            pace: Pace::Timely,
            seen: diverted.or_else(|| Some(digest_text(page.digest))),
            expected,
        }
    }

    const fn nothing(pace: Pace) -> Self {
        Self {
            look: Look::Nothing,
            pace,
            seen: None,
            expected: None,
        }
    }
}

/// Whether everybody may have what has this head: only that is the same for us and for visitors.
fn may_be_kept(headers: &HeaderMap) -> bool {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b"\r\n");
    match judge_push(&head) {
        PushJudgement::MayBeKept { .. } => true,
        PushJudgement::GoesOn | PushJudgement::NotToBeKept => false,
    }
}

/// Path of a URL without its scheme.
pub(super) fn target_of(url: &str) -> Option<&str> {
    url.find('/').map(|at| &url[at..])
}
