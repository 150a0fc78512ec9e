//! The demo from the first visitor to the last: calm, crowd, bound phase, back to normal.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use tokio::task::JoinSet;

use super::display::{Display, Scene};
use super::figures::Figures;
use super::neighbourhood::{LINK, Neighbourhood, Place};
use super::sums::{BoundPlayed, CONNECTION_OVERHEAD, MemberSeen, Played, Side};
use super::watch::{self, Seen, Watch};
use super::{DemoArguments, DemoError, TICK, machine};
use crate::crowd::client::{Habit, Trail, Visitor};
use crate::crowd::ledger::{Asked, Ledger, Record};
use crate::crowd::meter::Traffic;
use crate::crowd::schedule::{Arrival, Profile, steady};
use crate::crowd::visit::Stage;
use crate::crowd::{Crowd, PATIENCE};

/// A registration and a search take a few seconds at most; a busy machine may take longer.
const CANDIDATES_WITHIN: Duration = Duration::from_secs(20);
const BOUND_LENGTH: Duration = Duration::from_secs(20);
/// What the bound phase offers, against the bound: a little more than can be answered.
const BOUND_OFFERED: f64 = 1.05;
/// Time to draw the crowds before the first visitor is due.
const LEAD: Duration = Duration::from_millis(500);
/// N_low is 30 intervals; what takes longer than twice that has failed.
const NORMAL_WITHIN: Duration = Duration::from_secs(60);

/// Plays all phases and draws the figures. Dropped half-way, the crowds go home.
pub async fn play(
    arguments: &DemoArguments,
    neighbourhood: &mut Neighbourhood,
    display: &mut Display,
) -> Result<Figures, DemoError> {
    let capacity_offered = candidates(neighbourhood, display).await?;
    let profile = Profile::stampede(Duration::from_secs(arguments.duration));
    let mut play = Play::begin(neighbourhood, display, profile, arguments.seed)?;
    play.crowd().await?;
    let bound = play.bound_phase().await?;
    play.back_to_normal().await?;
    let played = Played {
        seed: arguments.seed,
        profile,
        with: play.side(&play.with, &play.neighbourhood.origin),
        without: play.side(&play.without, &play.neighbourhood.alone),
        bound,
        members: play.members_seen(),
        capacity_offered,
        names: play
            .neighbourhood
            .places()
            .map(|place| (place.address.port, place.name().to_owned()))
            .collect(),
        site: (*play.neighbourhood.origin.site).clone(),
    };
    Ok(played.figures())
}

/// Waits until the origin server has a candidate in every member; how much they offer together.
async fn candidates(
    neighbourhood: &mut Neighbourhood,
    display: &mut Display,
) -> Result<u64, DemoError> {
    let visitor = Visitor::new(
        Traffic::since(Instant::now()),
        "levee-lab".to_owned(),
        Habit::KeepAlive,
    );
    let started = Instant::now();
    loop {
        let seen: Option<Seen> = watch::look(&visitor, neighbourhood.origin.admin).await;
        let candidates = seen.unwrap_or_default().candidates;
        if candidates.len() >= neighbourhood.members.len() {
            return Ok(candidates.iter().map(|(_, offered)| offered).sum());
        }
        if started.elapsed() > CANDIDATES_WITHIN {
            return Err(DemoError::NoCandidates {
                found: candidates.len(),
                wanted: neighbourhood.members.len(),
                seconds: CANDIDATES_WITHIN.as_secs(),
            });
        }
        if let Some(name) = neighbourhood.missing() {
            return Err(DemoError::Ended(name));
        }
        display.show(&Scene {
            phase: "members find each other".to_owned(),
            ..Scene::default()
        });
        tokio::time::sleep(TICK).await;
    }
}

/// A demo under way.
struct Play<'a> {
    neighbourhood: &'a mut Neighbourhood,
    display: &'a mut Display,
    profile: Profile,
    start: Instant,
    with: Party,
    without: Party,
    /// The members' own readers, in the order of the members.
    own: Vec<Party>,
    watch: Watch,
    /// Looking ends when this is dropped.
    _watchers: JoinSet<()>,
}

/// A crowd, and the bytes that it got.
struct Party {
    crowd: Crowd,
    traffic: Traffic,
}

impl<'a> Play<'a> {
    fn begin(
        neighbourhood: &'a mut Neighbourhood,
        display: &'a mut Display,
        profile: Profile,
        seed: u64,
    ) -> Result<Self, DemoError> {
        let start = Instant::now() + LEAD;
        let watch = Watch::default();
        let mut watchers = JoinSet::new();
        for place in neighbourhood.places() {
            let (name, admin): (String, SocketAddr) = (place.name().to_owned(), place.admin);
            let watch = watch.clone();
            watchers.spawn(async move { watch.follow(name, admin, start).await });
        }
        let party = |place: &Place, arrivals: Vec<Arrival>| {
            let traffic = Traffic::since(start);
            let crowd = send(place, &traffic, start, arrivals)?;
            Ok::<_, DemoError>(Party { crowd, traffic })
        };
        let crowd = |place: &Place| profile.arrivals(seed, &place.site);
        let members = neighbourhood.members.iter();
        let own = members
            .zip(seed.wrapping_add(1)..)
            .map(|(member, seed)| party(member, profile.everyday(seed, &member.site)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            own,
            with: party(&neighbourhood.origin, crowd(&neighbourhood.origin))?,
            without: party(&neighbourhood.alone, crowd(&neighbourhood.alone))?,
            neighbourhood,
            display,
            profile,
            start,
            watch,
            _watchers: watchers,
        })
    }

    /// Until every visitor of the community's site has gone home.
    async fn crowd(&mut self) -> Result<(), DemoError> {
        while !self.with.crowd.is_over() {
            let now = self.start.elapsed();
            let end = self.profile.calm + self.profile.crowd;
            let (phase, until) = if now < self.profile.calm {
                ("calm before the crowd", self.profile.calm)
            } else if now < end {
                ("the crowd is here", end)
            } else {
                ("the last visitors", end)
            };
            self.tick(phase, until.checked_sub(now)).await?;
        }
        Ok(())
    }

    /// Asks for nothing but redirects, a little faster than the link can give them.
    async fn bound_phase(&mut self) -> Result<Option<BoundPlayed>, DemoError> {
        let origin = &self.neighbourhood.origin;
        // Objects that every rescue server has by now: what the hot post consists of.
        let post = origin.site.post();
        let mut paths = vec![post.path.clone()];
        paths.extend(post.images.iter().cloned());
        let records = self.with.crowd.ledger().records();
        let Some(redirect_bytes) = expected_redirect(&records, &post.path, &paths) else {
            return Ok(None);
        };
        self.warm_caches(&paths).await?;
        let rate = BOUND_OFFERED * LINK as f64 / (redirect_bytes + CONNECTION_OVERHEAD as f64);
        let arrivals = steady(rate, BOUND_LENGTH, &paths);
        let start = Instant::now();
        let crowd = send(
            &self.neighbourhood.origin,
            &self.with.traffic,
            start,
            arrivals,
        )?;
        while !crowd.is_over() {
            let left = BOUND_LENGTH.checked_sub(start.elapsed());
            self.tick("as many redirects as the link can carry", left)
                .await?;
        }
        Ok(Some(BoundPlayed {
            start: start.saturating_duration_since(self.start),
            length: BOUND_LENGTH,
            rate,
            records: crowd.ledger().records(),
        }))
    }

    /// Asks every rescue server for `paths` under its alias: one that was drafted late may not have
    /// met all of them, and the bound phase leaves the link no room for fetches.
    async fn warm_caches(&mut self, paths: &[String]) -> Result<(), DemoError> {
        let visitor = Visitor::new(
            Traffic::since(self.start),
            "levee-lab".to_owned(),
            Habit::KeepAlive,
        );
        for peer in self.watch.last("news").rescue_servers {
            for path in paths {
                let Ok(url) = format!("http://{}{path}", peer.alias).parse() else {
                    continue;
                };
                let mut trail = Trail::default();
                let fetching = visitor.fetch(&Method::GET, &url, &mut trail);
                // What stays cold shows in the figures of the phase.
                let _ = tokio::time::timeout(PATIENCE, fetching).await;
            }
            self.tick("rescue servers' caches are made warm", None)
                .await?;
        }
        Ok(())
    }

    /// Until nobody helps anybody any more and the crowd alone has gone home too.
    async fn back_to_normal(&mut self) -> Result<(), DemoError> {
        let from = Instant::now();
        loop {
            let all_normal = self
                .neighbourhood
                .places()
                .all(|place| self.watch.last(place.name()).is_normal());
            let over = self.without.crowd.is_over();
            if (all_normal && over) || from.elapsed() > NORMAL_WITHIN {
                return Ok(());
            }
            self.tick(
                "the crowd is gone, help is let go when calm has lasted",
                None,
            )
            .await?;
        }
    }

    async fn tick(&mut self, phase: &str, left: Option<Duration>) -> Result<(), DemoError> {
        if let Some(name) = self.neighbourhood.missing() {
            return Err(DemoError::Ended(name));
        }
        let seen = self.watch.last("news");
        let name = |site: &str| site.split('.').next().unwrap_or(site).to_owned();
        self.display.show(&Scene {
            phase: phase.to_owned(),
            left,
            with: self.with.crowd.ledger().progress(),
            without: self.without.crowd.ledger().progress(),
            state: seen.state,
            origin_rate: seen.rates.out,
            redirects: seen.lifetime.redirects,
            rescue_servers: seen
                .rescue_servers
                .iter()
                .map(|peer| (name(&peer.site), peer.rate))
                .collect(),
        });
        tokio::time::sleep(TICK).await;
        Ok(())
    }

    fn side(&self, party: &Party, place: &Place) -> Side {
        Side {
            records: party.crowd.ledger().records(),
            traffic: party.traffic.by_port(),
            looks: self.watch.all(place.name()),
            port: place.address.port,
            lag: party.crowd.ledger().lag_max(),
        }
    }

    fn members_seen(&self) -> BTreeMap<String, MemberSeen> {
        let members = self.neighbourhood.members.iter();
        members
            .zip(&self.own)
            .map(|(member, own)| {
                let seen = MemberSeen {
                    link: member.link,
                    looks: self.watch.all(member.name()),
                    own: own.crowd.ledger().records(),
                };
                (member.name().to_owned(), seen)
            })
            .collect()
    }
}

fn send(
    place: &Place,
    traffic: &Traffic,
    start: Instant,
    arrivals: Vec<Arrival>,
) -> Result<Crowd, DemoError> {
    let stage = Stage {
        site: Arc::clone(&place.site),
        address: place.address.clone(),
        traffic: traffic.clone(),
        ledger: Arc::new(Ledger::since(start)),
        patience: PATIENCE,
    };
    Crowd::send(place.name(), stage, arrivals).map_err(machine("send the crowd"))
}

/// Bytes of a redirect for `paths`, from those that the crowd got for the post on connections of
/// their own: they differ by the length of the path alone.
fn expected_redirect(records: &[Record], post: &str, paths: &[String]) -> Option<f64> {
    let sizes: Vec<u64> = records
        .iter()
        .filter(|record| record.kind == Asked::Post)
        .filter_map(|record| Some(record.redirected?.1))
        .collect();
    if sizes.is_empty() {
        return None;
    }
    let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    let length = paths.iter().map(String::len).sum::<usize>() as f64 / paths.len() as f64;
    Some(mean + length - post.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_redirect_follows_the_length_of_its_path() {
        let record = |kind, bytes| Record {
            kind,
            arrived: Duration::ZERO,
            asked: Duration::ZERO,
            ended: Duration::ZERO,
            redirected: Some((Duration::ZERO, bytes)),
            result: Err(crate::crowd::client::Failure::Late),
        };
        let records = [
            record(Asked::Post, 200),
            record(Asked::Post, 210),
            record(Asked::Page, 900),
        ];
        let paths = ["/12345678".to_owned(), "/1234".to_owned()];
        assert_eq!(expected_redirect(&records, "/1234", &paths), Some(207.0));
        assert_eq!(expected_redirect(&records[2..], "/1234", &paths), None);
    }
}
