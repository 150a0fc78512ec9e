//! Plays the commands of a story in a simulated world.

use std::time::Duration;

use levee_control::GateLimits;
use levee_vocab::{ByteRate, ServerState};
use thiserror::Error;

use super::command::{Command, Expectation, Happening, Membership, Setting};
use levee_sim::crowd::{Arrivals, CrowdSettings, Wants};
use levee_sim::faults::Death;
use levee_sim::network::Place;
use levee_sim::request::CrowdId;
use levee_sim::site::{SiteSettings, Voice, default_parameters};
use levee_sim::{SiteId, World};

/// A world and the settings of the sites that the story adds to it.
#[derive(Debug)]
pub struct Player {
    world: World,
    settings: Vec<Setting>,
}

/// Something that a story takes for granted and that is not so.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Unmet {
    /// No site has this name.
    #[error("no site is called {0}")]
    NoSite(String),
    /// No crowd has this name.
    #[error("no crowd is called {0}")]
    NoCrowd(String),
    /// The rescue server never gave the origin an alias.
    #[error("{0} never gave that site an alias")]
    NoAlias(String),
    /// Settings are out of range.
    #[error("settings of {0} are out of range: {1}")]
    Settings(String, String),
    /// An expectation does not hold.
    #[error("expected {expected}, but {name} {found}")]
    Expectation {
        /// Of whom.
        name: String,
        /// What was expected.
        expected: String,
        /// What is.
        found: String,
    },
}

/// Files of a site whose story does not say otherwise: a page and four images.
const FILES: [u64; 5] = [8_000, 12_000, 16_000, 20_000, 24_000];

/// Bytes of the paper's redirect: n (dotslash 4.3).
const REDIRECT_BYTES: u64 = 227;

impl Player {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            settings: Vec::new(),
        }
    }

    /// Plays one command and appends the lines that came of it.
    pub fn play(&mut self, came: &mut Vec<String>, command: &Command) -> Result<(), Unmet> {
        let mut shown = Vec::new();
        match command {
            Command::Set(setting) => self.settings.push(*setting),
            Command::Site { name, link, member } => self.add_site(name, *link, *member)?,
            Command::Files(name, sizes) => {
                let site = self.site(name)?;
                self.world.sites[site.0].settings.files.clone_from(sizes);
            }
            Command::Delay(delay) => self.world.network.delay = *delay,
            Command::Loss(share) => self.world.network.loss = *share,
            Command::Crowd {
                name,
                site,
                arrivals,
                wants,
            } => self.add_crowd(name, site, arrivals, wants)?,
            Command::Visitor { crowd, site } => self.send_visitor(crowd, site)?,
            Command::Pass(time) => self.world.run_until(self.world.now + *time),
            Command::Happen(name, happening) => self.happen(name, *happening)?,
            Command::Partition(groups) => self.partition(groups)?,
            Command::Heal => self.world.heal(),
            Command::Show(names) => shown = self.show(names)?,
            Command::Expect(name, expectation) => self.expect(name, expectation)?,
            Command::Breakpoint => self.print_minds(),
        }
        came.extend(self.world.trace.take_lines());
        came.extend(shown);
        Ok(())
    }

    /// The first invariant that was broken, for people.
    pub fn first_violation(&self) -> Option<String> {
        let violation = self.world.watch.violations.first()?;
        let label = &self.world.sites[violation.site.0].settings.label;
        Some(format!("{} {label}: {}", violation.at, violation.what))
    }

    fn add_site(&mut self, name: &str, link: ByteRate, member: Membership) -> Result<(), Unmet> {
        let mut parameters = default_parameters(self.world.next_site(), name, link);
        let mut limits = GateLimits::default();
        for setting in &self.settings {
            match *setting {
                Setting::Law(law) => parameters.hot_spots.law = law,
                Setting::LowIntervals(count) => parameters.low_intervals = count,
                Setting::Idle(time) => parameters.idle_max = time,
                Setting::ObjectTtl(time) => parameters.object_ttl = time,
                Setting::Wait(time) => limits.wait_max = time,
                Setting::Backlog(time) => limits.backlog_max = time,
                Setting::Visitors(visitors) => parameters.visitors = visitors,
            }
        }
        match member {
            Membership::Member => {}
            Membership::Stranger => parameters.rescue_port = 0,
        }
        let parameters = parameters.check().map_err(|complaints| {
            let all: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            Unmet::Settings(name.to_owned(), all.join("; "))
        })?;
        self.world.add_site(SiteSettings {
            label: name.to_owned(),
            files: FILES.to_vec(),
            redirect_bytes: REDIRECT_BYTES,
            limits,
            parameters,
        });
        Ok(())
    }

    fn add_crowd(
        &mut self,
        name: &str,
        site: &str,
        arrivals: &Arrivals,
        wants: &Wants,
    ) -> Result<(), Unmet> {
        let site = self.site(site)?;
        self.world.add_crowd(CrowdSettings {
            name: name.to_owned(),
            site,
            arrivals: arrivals.clone(),
            wants: wants.clone(),
            until: None,
        });
        Ok(())
    }

    fn send_visitor(&mut self, crowd: &str, site: &str) -> Result<(), Unmet> {
        let crowd = self.crowd(crowd)?;
        let origin = self.world.crowds[crowd.0].settings.site;
        let alias = self.world.find_alias(origin, self.site(site)?);
        let alias = alias.ok_or_else(|| Unmet::NoAlias(site.to_owned()))?;
        self.world.visit_by_name(crowd, alias);
        Ok(())
    }

    fn happen(&mut self, name: &str, happening: Happening) -> Result<(), Unmet> {
        if happening == Happening::Leaves {
            let crowd = self.crowd(name)?;
            self.world.end_crowd(crowd);
            return Ok(());
        }
        if name == "registry" {
            match happening {
                Happening::Dies | Happening::LosesPower => self.world.kill_registry(),
                Happening::Restarts => self.world.restart_registry(),
                Happening::Leaves
                | Happening::Hangs
                | Happening::Recovers
                | Happening::FallsSilent
                | Happening::SpeaksAgain
                | Happening::Drills(_)
                | Happening::EndsDrill
                | Happening::ClockJumps(_) => return Err(Unmet::NoSite(name.to_owned())),
            }
            return Ok(());
        }
        let site = self.site(name)?;
        let world = &mut self.world;
        match happening {
            Happening::Leaves => {}
            Happening::Dies => world.kill(site, Death::Killed),
            Happening::LosesPower => world.kill(site, Death::PoweredOff),
            Happening::Restarts => world.restart(site),
            Happening::Hangs => world.freeze(site),
            Happening::Recovers => world.thaw(site),
            Happening::FallsSilent => world.set_voice(site, Voice::Mute),
            Happening::SpeaksAgain => world.set_voice(site, Voice::Speaks),
            Happening::Drills(length) => world.drill(site, length),
            Happening::EndsDrill => world.end_drill(site),
            Happening::ClockJumps(ahead) => world.jump_clock(site, ahead),
        }
        Ok(())
    }

    fn partition(&mut self, groups: &[Vec<String>]) -> Result<(), Unmet> {
        let place = |name: &String| match name.as_str() {
            "registry" => Ok(Place::Registry),
            "visitors" => Ok(Place::Visitors),
            _ => self.site(name).map(Place::Site),
        };
        let group = |names: &Vec<String>| names.iter().map(place).collect();
        let groups: Vec<Vec<Place>> = groups.iter().map(group).collect::<Result<_, _>>()?;
        self.world.partition(&groups);
        Ok(())
    }

    fn show(&self, names: &[String]) -> Result<Vec<String>, Unmet> {
        let mut lines = Vec::new();
        if names.is_empty() {
            let sites = (0..self.world.sites.len()).map(|site| self.show_site(SiteId(site)));
            let crowds = (0..self.world.crowds.len()).map(|crowd| self.show_crowd(CrowdId(crowd)));
            lines.extend(sites.chain(crowds));
        }
        for name in names {
            lines.push(match self.world.find_site(name) {
                Some(site) => self.show_site(site),
                None => self.show_crowd(self.crowd(name)?),
            });
        }
        Ok(lines)
    }

    fn show_site(&self, id: SiteId) -> String {
        let site = &self.world.sites[id.0];
        let label = &site.settings.label;
        let now = self.world.now;
        let Some(running) = site.process_view() else {
            return format!("{now} {label} is down");
        };
        let view = running.brain.view();
        let sample = &running.last_sample;
        let redirects: u64 = sample
            .redirects
            .values()
            .map(|traffic| traffic.requests)
            .sum();
        let elapsed = sample.elapsed.max(Duration::from_millis(1));
        let own = ByteRate::of(sample.own.bytes, elapsed);
        let out = ByteRate::of(sample.bytes_out(), elapsed);
        let mut line = format!("{now} {label} is {}, out {out}, own {own}", view.state);
        if redirects > 0 || !view.rescue_servers.is_empty() {
            line += &format!(", {redirects} redirects to");
            for rescue in &view.rescue_servers {
                line += &format!(
                    " {} ({})",
                    self.label_of(rescue.peer.host.as_str()),
                    rescue.used
                );
            }
        }
        for rescue in &view.origins {
            let peer = self.label_of(rescue.peer.host.as_str());
            line += &format!(", rescues {peer} ({})", rescue.used);
        }
        if sample.refused + sample.waiting > 0 {
            line += &format!(", {} refused, {} waiting", sample.refused, sample.waiting);
        }
        line
    }

    fn show_crowd(&self, id: CrowdId) -> String {
        let crowd = &self.world.crowds[id.0];
        let tally = &crowd.tally;
        format!(
            "{} {}: {} asked, {} answered, {} refused, {} failed, half within {} ms, 99 % within {} ms",
            self.world.now,
            crowd.settings.name,
            tally.offered,
            tally.answered,
            tally.refused,
            tally.failed,
            tally.latency(0.5).as_millis(),
            tally.latency(0.99).as_millis(),
        )
    }

    fn expect(&self, name: &str, expectation: &Expectation) -> Result<(), Unmet> {
        let unmet = |expected: String, found: String| Unmet::Expectation {
            name: name.to_owned(),
            expected,
            found,
        };
        match expectation {
            Expectation::State(expected) => match self.state_of(self.site(name)?) {
                Some(state) if state == *expected => Ok(()),
                Some(state) => Err(unmet(format!("state {expected}"), format!("is in {state}"))),
                None => Err(unmet(format!("state {expected}"), "is down".to_owned())),
            },
            Expectation::RescuedBy(names) => {
                let mut expected = names.clone();
                expected.sort();
                let found = self.rescuers_of(self.site(name)?);
                if found == expected {
                    return Ok(());
                }
                let expected = format!("rescue by {}", list(&expected));
                Err(unmet(expected, format!("is rescued by {}", list(&found))))
            }
            Expectation::Below(share) => {
                let level = self.level_of(self.site(name)?);
                if level < *share {
                    return Ok(());
                }
                let found = format!("is at {:.1} %", level * 100.0);
                Err(unmet(format!("less than {:.1} %", share * 100.0), found))
            }
            Expectation::Answered(share) => {
                let tally = &self.world.crowds[self.crowd(name)?.0].tally;
                let done = (tally.answered + tally.refused + tally.failed).max(1);
                let answered = tally.answered as f64 / done as f64;
                if answered >= *share {
                    return Ok(());
                }
                let found = format!("got {:.1} %", answered * 100.0);
                Err(unmet(format!("{:.1} % answered", share * 100.0), found))
            }
        }
    }

    fn state_of(&self, site: SiteId) -> Option<ServerState> {
        let running = self.world.sites[site.0].process_view()?;
        Some(running.brain.view().state)
    }

    fn rescuers_of(&self, site: SiteId) -> Vec<String> {
        let running = self.world.sites[site.0].process_view();
        let rescues = running.map(|running| running.brain.view().rescue_servers);
        let mut names: Vec<String> = rescues
            .unwrap_or_default()
            .iter()
            .map(|rescue| self.label_of(rescue.peer.host.as_str()))
            .collect();
        names.sort();
        names
    }

    fn level_of(&self, site: SiteId) -> f64 {
        let site = &self.world.sites[site.0];
        let usable = site.settings.parameters.usable_rate();
        site.process_view().map_or(0.0, |running| {
            let sample = &running.last_sample;
            ByteRate::of(sample.bytes_out(), sample.elapsed).share_of(usable)
        })
    }

    fn print_minds(&self) {
        for site in &self.world.sites {
            let label = &site.settings.label;
            match site.process_view() {
                Some(running) => eprintln!("{label}: {:#?}", running.brain.view()),
                None => eprintln!("{label} is down"),
            }
        }
    }

    fn label_of(&self, host: &str) -> String {
        let sites = &self.world.sites;
        let found = sites.iter().find(|site| site.name().as_str() == host);
        found.map_or(host, |site| &site.settings.label).to_owned()
    }

    fn site(&self, name: &str) -> Result<SiteId, Unmet> {
        let found = self.world.find_site(name);
        found.ok_or_else(|| Unmet::NoSite(name.to_owned()))
    }

    fn crowd(&self, name: &str) -> Result<CrowdId, Unmet> {
        let found = self.world.find_crowd(name);
        found.ok_or_else(|| Unmet::NoCrowd(name.to_owned()))
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "nobody".to_owned(),
        names => names.join(" "),
    }
}
