//! What happens in a storm, and when: drawn from its seed before it begins.

use std::time::Duration;

use levee_vocab::{Random, Timestamp};

use levee_sim::crowd::{Arrivals, CrowdSettings, Wants};
use levee_sim::faults::Death;
use levee_sim::network::Place;
use levee_sim::site::Voice;
use levee_sim::{SiteId, World};

/// Acts in the order of their times.
#[derive(Debug)]
pub struct Timetable {
    /// When what is done.
    pub acts: Vec<(Timestamp, Act)>,
    /// Faults among them.
    pub faults: u64,
}

/// Something that is done to a world.
#[derive(Clone, Debug)]
pub enum Act {
    /// A crowd comes, which wants so many times what the site's link can carry.
    CrowdComes {
        /// Where.
        site: SiteId,
        /// How much.
        excess: f64,
        /// How its visitors come.
        shape: Shape,
        /// When the last visitor comes.
        until: Timestamp,
    },
    /// An operator orders a drill.
    Drill(SiteId, Duration),
    /// An operator ends the drill that the site holds or takes part in.
    EndDrill(SiteId),
    /// A process ends.
    Kill(SiteId, Death),
    /// A process starts.
    Restart(SiteId),
    /// A process freezes.
    Freeze(SiteId),
    /// A process goes on.
    Thaw(SiteId),
    /// A site says nothing more, or speaks again.
    SetVoice(SiteId, Voice),
    /// A clock jumps ahead.
    JumpClock(SiteId, Duration),
    /// Two groups are cut off from each other; the registry may be in either.
    Partition(Vec<Vec<Place>>),
    /// Partitions end.
    Heal,
    /// So many messages lose a packet, and the delay varies by so much.
    Disturb(f64, Duration),
    /// The registry dies.
    KillRegistry,
    /// The registry starts again.
    RestartRegistry,
}

/// How the visitors of a crowd come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One file each, evenly.
    Even,
    /// One file each, at random.
    Random,
    /// Whole pages at random.
    Pages,
    /// Link previews.
    Stampede,
    /// One file each at random, by crawlers.
    Crawlers,
}

/// Most visitors a second of one crowd: a storm is about control, not about volume.
const VISITORS_MAX: f64 = 60.0;

/// A host takes longer to boot than its origins need to notice that it is gone (2.5 intervals). One
/// that is back before they do sends their visitors back to them, and is sent them again.
const BOOT_TIME: Duration = Duration::from_secs(4);

impl Timetable {
    /// Draws what happens to so many sites; everything is over at `calm`.
    pub fn draw(random: &mut Random, sites: usize, calm: Timestamp) -> Self {
        let mut acts = Vec::new();
        for _ in 0..sites.div_ceil(6) {
            acts.push(draw_crowd(random, sites, calm));
        }
        let faults = sites.div_ceil(4) as u64;
        for _ in 0..faults {
            let [begin, end] = draw_fault(random, sites, calm);
            acts.push(begin);
            acts.push(end);
        }
        for _ in 0..sites.div_ceil(8) {
            acts.push(draw_crawlers(random, sites, calm));
            acts.extend(draw_drill(random, sites, calm));
        }
        acts.push((calm, Act::Heal));
        acts.push((calm, Act::RestartRegistry));
        // Stable: what was drawn first comes first.
        acts.sort_by_key(|(at, _)| *at);
        Self { acts, faults }
    }
}

fn draw_crowd(random: &mut Random, sites: usize, calm: Timestamp) -> (Timestamp, Act) {
    let at = Timestamp::from_milliseconds(random.within(2_000..70_000));
    let until = at + Duration::from_secs(random.within(5..50));
    let shapes = [Shape::Even, Shape::Random, Shape::Pages, Shape::Stampede];
    let act = Act::CrowdComes {
        site: draw_site(random, sites),
        excess: 0.3 + 8.0 * random.fraction().powi(2),
        shape: shapes[random.within(0..4) as usize],
        until: until.min(calm),
    };
    (at, act)
}

/// Crawlers come early and stay long, so that crowds and faults come over them.
fn draw_crawlers(random: &mut Random, sites: usize, calm: Timestamp) -> (Timestamp, Act) {
    let at = Timestamp::from_milliseconds(random.within(0..40_000));
    let until = at + Duration::from_secs(random.within(20..80));
    let act = Act::CrowdComes {
        site: draw_site(random, sites),
        excess: 0.3 + 8.0 * random.fraction().powi(2),
        shape: Shape::Crawlers,
        until: until.min(calm),
    };
    (at, act)
}

/// A drill, and the moment at which some operator has enough of it, who need not be part of it.
fn draw_drill(random: &mut Random, sites: usize, calm: Timestamp) -> [(Timestamp, Act); 2] {
    let at = Timestamp::from_milliseconds(random.within(2_000..90_000));
    let length = Duration::from_secs(random.within(5..60)).min(calm.since(at));
    let end = at + length.mul_f64(random.fraction());
    let site = draw_site(random, sites);
    let ends = draw_site(random, sites);
    [(at, Act::Drill(site, length)), (end, Act::EndDrill(ends))]
}

fn draw_fault(random: &mut Random, sites: usize, calm: Timestamp) -> [(Timestamp, Act); 2] {
    let at = Timestamp::from_milliseconds(random.within(5_000..100_000));
    let longest = if random.chance(0.5) { 4_000 } else { 40_000 };
    let end = at + Duration::from_millis(random.within(100..longest));
    let site = draw_site(random, sites);
    let (begin, repair) = match random.within(0..9) {
        0 => (Act::Kill(site, Death::Killed), Act::Restart(site)),
        1 => {
            let repair = ((end + BOOT_TIME).min(calm), Act::Restart(site));
            return [(at, Act::Kill(site, Death::PoweredOff)), repair];
        }
        2 | 3 => (Act::Freeze(site), Act::Thaw(site)),
        4 => {
            let speaks = Act::SetVoice(site, Voice::Speaks);
            (Act::SetVoice(site, Voice::Mute), speaks)
        }
        5 => (Act::KillRegistry, Act::RestartRegistry),
        6 => {
            let jitter = Duration::from_millis(random.within(0..500));
            let disturb = Act::Disturb(random.fraction() * 0.3, jitter);
            (disturb, Act::Disturb(0.0, Duration::ZERO))
        }
        7 => {
            let ahead = Duration::from_millis(random.within(100..100_000));
            let again = Act::JumpClock(draw_site(random, sites), ahead);
            (Act::JumpClock(site, ahead), again)
        }
        _ => (Act::Partition(draw_groups(random, sites)), Act::Heal),
    };
    [(at, begin), (end.min(calm), repair)]
}

fn draw_groups(random: &mut Random, sites: usize) -> Vec<Vec<Place>> {
    let share = random.fraction();
    let mut groups = vec![Vec::new(), Vec::new()];
    let places = (0..sites).map(|number| Place::Site(SiteId(number)));
    for place in places.chain([Place::Registry]) {
        groups[usize::from(random.chance(share))].push(place);
    }
    groups
}

fn draw_site(random: &mut Random, sites: usize) -> SiteId {
    SiteId(random.within(0..sites as u64) as usize)
}

impl Act {
    /// Does it.
    pub fn perform(self, world: &mut World) {
        match self {
            Self::CrowdComes {
                site,
                excess,
                shape,
                until,
            } => bring_crowd(world, site, excess, shape, until),
            Self::Drill(site, length) => world.drill(site, length),
            Self::EndDrill(site) => world.end_drill(site),
            Self::Kill(site, death) => world.kill(site, death),
            Self::Restart(site) => world.restart(site),
            Self::Freeze(site) => world.freeze(site),
            Self::Thaw(site) => world.thaw(site),
            Self::SetVoice(site, voice) => world.set_voice(site, voice),
            Self::JumpClock(site, ahead) => world.jump_clock(site, ahead),
            Self::Partition(groups) => world.partition(&groups),
            Self::Heal => world.heal(),
            Self::Disturb(loss, jitter) => {
                world.network.loss = loss;
                world.network.jitter = jitter;
            }
            Self::KillRegistry => world.kill_registry(),
            Self::RestartRegistry => world.restart_registry(),
        }
    }
}

fn bring_crowd(world: &mut World, site: SiteId, excess: f64, shape: Shape, until: Timestamp) {
    let settings = &world.sites[site.0].settings;
    let files = &settings.files;
    let total: u64 = files.iter().sum();
    let usable = settings.parameters.usable_rate().as_bytes() as f64;
    let rate_of = |bytes: f64| (usable * excess / bytes).min(VISITORS_MAX);
    let mean = total as f64 / files.len() as f64;
    let (arrivals, wants) = match shape {
        Shape::Even => {
            let rate = rate_of(mean);
            (Arrivals::Constant { rate }, Wants::FilesInTurn)
        }
        Shape::Random => {
            let rate = rate_of(mean);
            (Arrivals::Random { rate }, Wants::FilesInTurn)
        }
        Shape::Crawlers => {
            let rate = rate_of(mean);
            (Arrivals::Random { rate }, Wants::Crawl)
        }
        Shape::Pages => {
            let rate = rate_of(total as f64);
            (Arrivals::Random { rate }, Wants::WholePage)
        }
        Shape::Stampede => {
            let within = until.since(world.now);
            let servers = (rate_of(mean) * within.as_secs_f64()) as u64;
            (Arrivals::Stampede { servers, within }, Wants::Preview)
        }
    };
    world.add_crowd(CrowdSettings {
        name: format!("crowd{}", world.crowds.len()),
        site,
        arrivals,
        wants,
        until: Some(until),
    });
}
