//! What a crowd costs its origin in fetches does not grow with the number of those who help.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use levee_control::GateLimits;
use levee_sim::crowd::{Arrivals, CrowdSettings, Wants};
use levee_sim::faults::Death;
use levee_sim::site::{SiteSettings, default_parameters};
use levee_sim::trace::Detail;
use levee_sim::{SiteId, World};
use levee_vocab::{ByteRate, Timestamp};

const FILES: u64 = 200;

/// An origin of 1000 kB/s and five who can help, each with 1500 kB/s.
fn community() -> World {
    let mut world = World::new(1);
    world.trace.set_detail(Detail::Nothing);
    world.network.delay = Duration::from_millis(5);
    for (number, usable) in [1000, 1500, 1500, 1500, 1500, 1500].into_iter().enumerate() {
        let label = format!("site{number}");
        let link = ByteRate::from_kilobytes(usable).times(1.25);
        let mut parameters = default_parameters(world.next_site(), &label, link);
        parameters.object_ttl = Duration::from_secs(3600);
        world.add_site(SiteSettings {
            label,
            parameters,
            files: (0..FILES).map(|_| 4096).collect(),
            redirect_bytes: 227,
            limits: GateLimits::default(),
        });
    }
    world.run_until(Timestamp::from_seconds(15));
    world.add_crowd(CrowdSettings {
        name: "crowd".to_owned(),
        site: SiteId(0),
        arrivals: Arrivals::Steps {
            rates: vec![1000.0],
            each: Duration::from_secs(60),
        },
        wants: Wants::FilesInTurn,
        until: None,
    });
    world
}

fn fetches(world: &World) -> u64 {
    world.sites[0].totals.fetches
}

fn rescue_servers(world: &World) -> usize {
    let origin = world.sites[0].running().unwrap();
    origin.brain.view().rescue_servers.len()
}

#[test]
fn each_object_leaves_its_origin_about_once_whoever_helps() {
    let mut world = community();
    world.run_until(Timestamp::from_seconds(45));
    let helping = rescue_servers(&world);
    assert!(helping >= 4, "{helping} help");
    let before = fetches(&world);
    assert!((FILES..FILES * 3 / 2).contains(&before), "{before} fetches");

    let died = (1..6).map(SiteId).find(|site| {
        let running = world.sites[site.0].running();
        running.is_some_and(|running| !running.brain.view().origins.is_empty())
    });
    world.kill(died.unwrap(), Death::Killed);
    world.run_until(Timestamp::from_seconds(75));
    let after = fetches(&world) - before;
    assert!(after < FILES / 2, "{after} fetches after a death");
}
