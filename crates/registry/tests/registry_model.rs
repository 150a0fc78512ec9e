//! The registry against a model so simple that it is obviously right: a list.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use levee_registry::{Asker, Input, Output, Registry, RegistryLimits};
use levee_vocab::{AliasHttps, ByteRate, HostName, Timestamp, WebAddress};
use levee_wire::registry::{Entry, Farewell, Refusal, Reply, Request, Search};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Ask { owner: u8, request: Request },
    Pass(Duration),
    Timer,
}

/// A list of (entry, owner, end), searched from end to end for everything.
#[derive(Default)]
struct Model {
    list: Vec<(Entry, u8, Timestamp)>,
}

impl Model {
    fn answer(&mut self, now: Timestamp, owner: u8, request: &Request) -> Reply {
        self.list.retain(|(_, _, end)| *end > now);
        let foreign = |list: &[(Entry, u8, Timestamp)], site: &HostName| {
            list.iter()
                .any(|(entry, by, _)| entry.site.host == *site && *by != owner)
        };
        match request {
            Request::Register(entry) => {
                if entry.rescue.ip() != address(owner) {
                    return Reply::Refused(Refusal::AddressRefused);
                }
                if foreign(&self.list, &entry.site.host) {
                    return Reply::Refused(Refusal::Taken);
                }
                let mut rest = self.list.clone();
                rest.retain(|(old, _, _)| old.site.host != entry.site.host);
                let is_new = rest.len() == self.list.len();
                let own = rest.iter().filter(|(_, by, _)| *by == owner).count();
                if is_new && (rest.len() >= limits().entries_max || own >= 2) {
                    return Reply::Refused(Refusal::Full);
                }
                rest.push((entry.clone(), owner, now + entry.lifetime));
                self.list = rest;
                Reply::Registered(entry.lifetime)
            }
            Request::Deregister(Farewell { site, .. }) => {
                if foreign(&self.list, site) {
                    return Reply::Refused(Refusal::Taken);
                }
                let before = self.list.len();
                self.list.retain(|(entry, _, _)| entry.site.host != *site);
                Reply::Removed((before - self.list.len()) as u32)
            }
            Request::Search(Search { count, except, .. }) => {
                let offers = self.list.iter().filter(|(entry, _, _)| {
                    Some(&entry.site.host) != except.as_ref() && entry.free > ByteRate::ZERO
                });
                let mut found: Vec<_> = offers.map(|held| left(now, held)).collect();
                found.sort_by_key(|entry| (std::cmp::Reverse(entry.free), entry.site.host.clone()));
                found.truncate((*count as usize).min(limits().found_max));
                Reply::Found(found)
            }
            Request::Query(site) => {
                let of_site = self
                    .list
                    .iter()
                    .filter(|(entry, _, _)| entry.site.host == *site);
                Reply::Found(of_site.map(|held| left(now, held)).collect())
            }
            // Nobody accuses anybody here: `crates/registry/src/accusations/tests.rs`.
            Request::Accuse(_) => Reply::Noted(1),
            Request::Accusations => Reply::Said(Vec::new()),
            Request::Unknown(_) => Reply::Refused(Refusal::UnknownCommand),
        }
    }
}

fn left(now: Timestamp, (entry, _, end): &(Entry, u8, Timestamp)) -> Entry {
    Entry {
        lifetime: end.since(now),
        ..entry.clone()
    }
}

/// Without the stamps that the registry gives to sites that give none.
fn unstamped(output: Output) -> Output {
    match output {
        Output::Answer {
            connection,
            reply: Reply::Found(mut found),
        } => {
            found.iter_mut().for_each(|entry| entry.stamp = 0);
            let reply = Reply::Found(found);
            Output::Answer { connection, reply }
        }
        Output::Answer { .. } | Output::Announce(_) => output,
    }
}

fn limits() -> RegistryLimits {
    RegistryLimits {
        entries_max: 5,
        entries_per_address_max: 2,
        found_max: 3,
        ..RegistryLimits::default()
    }
}

fn address(owner: u8) -> IpAddr {
    Ipv4Addr::new(8, 0, 0, owner).into()
}

fn site() -> impl Strategy<Value = HostName> {
    "[a-g]".prop_map(|name| name.parse().unwrap())
}

prop_compose! {
    fn entry()(
        host in site(),
        owner in 0_u8..4,
        kilobytes in 0_u64..4,
        seconds in 2_u64..20,
        https in prop::sample::select(&[AliasHttps::Unknown, AliasHttps::No, AliasHttps::Yes][..]),
    ) -> Entry {
        let rescue = SocketAddr::new(address(owner), 7401);
        let free = ByteRate::from_kilobytes(kilobytes);
        let lifetime = Duration::from_secs(seconds);
        Entry { https, ..Entry::new(WebAddress { host, port: 80 }, rescue, free, lifetime) }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let honest = entry().prop_map(|entry| match entry.rescue.ip() {
        IpAddr::V4(ip) => Step::Ask {
            owner: ip.octets()[3],
            request: Request::Register(entry),
        },
        IpAddr::V6(_) => unreachable!("the strategy makes IPv4 addresses"),
    });
    let request = prop_oneof![
        entry().prop_map(Request::Register),
        site().prop_map(|site| Request::Deregister(Farewell::new(site))),
        (0_u32..6, prop::option::of(site()))
            .prop_map(|(count, except)| Search {
                count,
                except,
                ..Search::default()
            })
            .prop_map(Request::Search),
        site().prop_map(Request::Query),
        Just(Request::Unknown("X".to_owned())),
    ];
    prop_oneof![
        4 => honest,
        4 => (0_u8..4, request).prop_map(|(owner, request)| Step::Ask { owner, request }),
        1 => (0_u64..9000).prop_map(|time| Step::Pass(Duration::from_millis(time))),
        1 => Just(Step::Timer),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_registry_answers_as_a_plain_list_would(steps in prop::collection::vec(step(), 1..60)) {
        let mut registry = Registry::new(limits());
        let mut model = Model::default();
        let mut now = Timestamp::ZERO;
        for step in steps {
            match step {
                Step::Pass(time) => now = now + time,
                Step::Timer => {
                    registry.handle(now, Input::TimerFired);
                }
                Step::Ask { owner, request } => {
                    let reply = model.answer(now, owner, &request);
                    let asker = Asker { connection: 1, address: address(owner), clock: 0 };
                    let outputs = registry.handle(now, Input::RequestReceived { asker, request });
                    let answer = outputs.into_iter().last().map(unstamped);
                    prop_assert_eq!(answer, Some(Output::Answer { connection: 1, reply }));
                    // It also wakes to forget those that are gone.
                    let first = model.list.iter().map(|(_, _, end)| *end).min();
                    prop_assert!(first.is_none() || registry.next_deadline() <= first);
                    prop_assert_eq!(registry.view().entries, model.list.len());
                }
            }
        }
    }
}
