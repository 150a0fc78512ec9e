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
//! Pages are drawn from what visitors ask for. A page is judged by its signature first. One without
//! is compared with ours, read from our own cores as this member would get it, before and after the
//! look: where ours is for one visitor, or changes all the time, nothing can be said and nothing
//! is. What a look comes to is decided in `levee_control::Inspection`.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderMap;
use levee_control::{Inspection, Look, NextStep, Pace};
use levee_proxy::{Errand, Front, OriginKey, PushJudgement, Standing, judge_push};
use levee_vocab::{Purge, PurgeKind, Random, WebAddress};
use levee_wire::Digest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::expelled::{Expelled, digest_text};
use super::look::{self, Guise, Page};
use super::scene::{Helper, Scene};
use super::{IntegrityOffice, Reported};
use crate::rescue_link::{LinkCharge, PurgeLine};
use crate::trust::unix_now;

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
    inspection: Inspection,
    random: Random,
}

/// What was seen of one page, and what was expected.
struct Sight {
    look: Look,
    pace: Pace,
    seen: Option<Digest>,
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
        let (helper, target) = match self.draw(&scene.urls).and_then(|url| target_of(url)) {
            Some(target) => (helper.clone(), target.to_owned()),
            None => return,
        };
        let mut first = self.look(&helper, &target).await;
        if first.pace == Pace::Late {
            // It may have had to fetch the page from us, over our own full link. Now it has it.
            first = self.look(&helper, &target).await;
        }
        let step = self.inspection.paced(&helper.site, first.pace);
        if step == NextStep::Part {
            return self.parts.office.part(helper.link).await;
        }
        match self.inspection.first(&helper.site, first.look) {
            NextStep::Nothing | NextStep::Part => {}
            NextStep::LookAgain => self.look_again(&helper, &target, first).await,
            NextStep::Expel => self.expel(&helper, &target, first).await,
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
            seen: Some(report.seen),
            expected: None,
        };
        let target = report.target;
        match self.inspection.reported(&accused.site, &by.site, &target) {
            NextStep::Nothing | NextStep::Part => {}
            NextStep::LookAgain => self.look_again(accused, &target, sight).await,
            NextStep::Expel => self.expel(accused, &target, sight).await,
        }
    }

    async fn look_again(&mut self, helper: &Helper, target: &str, first: Sight) {
        if let Ok(purge) = Purge::url(target, PurgeKind::Hard) {
            self.parts.purges.purge(purge).await;
        }
        let second = self.look(helper, target).await;
        let next = self
            .inspection
            .second(&helper.site, first.look, second.look);
        match next {
            NextStep::Nothing | NextStep::Part | NextStep::LookAgain => {}
            NextStep::Expel => {
                let sight = match second.look.is_wrong() {
                    true => second,
                    false => first,
                };
                self.expel(helper, target, sight).await;
            }
        }
    }

    async fn expel(&self, helper: &Helper, target: &str, sight: Sight) {
        let text = |digest: Option<Digest>| digest.map_or("-".to_owned(), digest_text);
        let expelled = Expelled {
            member: helper.site.clone(),
            since: unix_now().0 / 1000,
            target: target.to_owned(),
            expected: text(sight.expected),
            seen: text(sight.seen),
        };
        self.parts.office.expel(expelled).await;
    }

    /// What a visitor gets there, judged.
    async fn look(&mut self, helper: &Helper, target: &str) -> Sight {
        let guise = Guise(self.random.within(0..64) as usize);
        let (page, pace) = self.visit(helper, (target, guise)).await;
        let sight = match page {
            Some(page) => self.judge(helper, (target, guise), &page).await,
            None => Sight::nothing(pace),
        };
        self.parts.office.looks.note(sight.look);
        sight
    }

    async fn visit(&self, helper: &Helper, wanted: (&str, Guise)) -> (Option<Page>, Pace) {
        (self.parts.charge)(look::LOOK_BYTES);
        let place = (&helper.alias, helper.address);
        look::delivered(place, wanted.0, wanted.1).await
    }

    async fn judge(&self, helper: &Helper, wanted: (&str, Guise), page: &Page) -> Sight {
        match look::standing(page, &self.key, &self.parts.site, wanted.0) {
            // Ours is not read: in a crowd that takes its time, and its part of our link.
            Standing::Authentic => Sight::of(Look::Authentic, page, None),
            Standing::Forged => {
                let ours = self.own(helper, wanted).await;
                Sight::of(Look::Forged, page, ours)
            }
            Standing::Unsigned => self.compare(helper, wanted).await,
        }
    }

    /// A page without a signature, once more between two readings of ours.
    async fn compare(&self, helper: &Helper, wanted: (&str, Guise)) -> Sight {
        let before = self.own(helper, wanted).await;
        let (page, pace) = self.visit(helper, wanted).await;
        let Some(page) = page else {
            return Sight::nothing(pace);
        };
        let look = match look::standing(&page, &self.key, &self.parts.site, wanted.0) {
            Standing::Authentic => Look::Authentic,
            Standing::Forged => Look::Forged,
            Standing::Unsigned => {
                let after = self.own(helper, wanted).await;
                match (before, after) {
                    (Some(before), Some(after)) if before == after => look::compared(&page, after),
                    (_, _) => Look::Nothing,
                }
            }
        };
        Sight::of(look, &page, before)
    }

    /// The digest of what we have ourselves; none where a rescue server would not keep it.
    async fn own(&self, helper: &Helper, (target, guise): (&str, Guise)) -> Option<Digest> {
        let front = self.parts.front.upgrade()?;
        let stream = front.visit(Errand::Look(helper.address.ip())).ok()?;
        drop(front);
        let stream = UnixStream::from_std(stream).ok()?;
        let host = self.parts.site.to_string();
        let page = look::page(stream, &host, (target, guise), look::LOOK_MAX).await?;
        may_be_kept(&page.headers).then_some(page.digest)
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
    const fn of(look: Look, page: &Page, expected: Option<Digest>) -> Self {
        Self {
            look,
            pace: Pace::Timely,
            seen: Some(page.digest),
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
