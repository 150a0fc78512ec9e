//! What members say of each other, among registries: it comes to all, also to those who were away,
//! and whom two accuse nobody finds.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use levee_registry::{
    Asker, LinkId, Mesh, MeshInput, MeshOutput, MeshRules, PrivateAddresses, RegistryLimits, Side,
};
use levee_vocab::{HostName, Random, Timestamp};
use levee_wire::Digest;
use levee_wire::registry::{Accusation, AccusationProof, Reply, Request, Sight, parse_request};

const NOW: Timestamp = Timestamp::ZERO;
const CLOCK: u64 = 1_790_000_000_000;

/// Registries, and which pairs are linked.
#[derive(Default)]
struct Town {
    registries: Vec<Mesh>,
    /// The other registry, and the link there, by registry and link.
    links: BTreeMap<(usize, LinkId), (usize, LinkId)>,
    told: usize,
}

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

fn said(accuser: &str, stamp: u64, sight: Option<Sight>) -> Request {
    Request::Accuse(Box::new(Accusation {
        accuser: host(accuser),
        accused: host("www.liar.test"),
        stamp,
        sight,
        proof: AccusationProof {
            key: "k".parse().unwrap(),
            signature: "s".parse().unwrap(),
        },
    }))
}

fn sight() -> Option<Sight> {
    Some(Sight::of("/", Digest([1; 32])))
}

impl Town {
    fn of(count: usize) -> Self {
        let limits = RegistryLimits {
            private_addresses: PrivateAddresses::Permitted,
            ..RegistryLimits::default()
        };
        let mesh = || Mesh::new(limits.clone(), MeshRules::default(), Random::from_seed(1));
        Self {
            registries: (0..count).map(|_| mesh()).collect(),
            ..Self::default()
        }
    }

    fn links(&mut self, one: usize, other: usize) {
        let number = self.links.len() as u64;
        let (there, back) = (LinkId(number), LinkId(number + 1));
        self.links.insert((one, there), (other, back));
        self.links.insert((other, back), (one, there));
        for (registry, link, side) in [(one, there, Side::Opener), (other, back, Side::Acceptor)] {
            self.registries[registry].handle(NOW, MeshInput::LinkOpened { link, side });
        }
        self.settles();
    }

    /// Carries everything that there is to say.
    fn settles(&mut self) {
        while let Some((&from, &to)) = self.links.iter().find(|((registry, link), _)| {
            let with_mail: Vec<_> = self.registries[*registry].links_with_mail().collect();
            with_mail.contains(link)
        }) {
            while let Some(message) = self.registries[from.0].next_message(NOW, from.1) {
                self.told += 1;
                assert!(self.told < 10_000, "it goes round and round");
                let input = MeshInput::MessageReceived {
                    link: to.1,
                    message,
                    clock: CLOCK,
                };
                self.registries[to.0].handle(NOW, input);
            }
        }
    }

    fn asks(&mut self, registry: usize, request: Request) -> Reply {
        let asker = Asker {
            connection: 1,
            address: "127.0.0.1".parse().unwrap(),
            clock: CLOCK,
        };
        let input = MeshInput::RequestReceived { asker, request };
        let outputs = self.registries[registry].handle(NOW, input);
        self.settles();
        let answer = outputs.into_iter().find_map(|output| match output {
            MeshOutput::Answer { reply, .. } => Some(reply),
            MeshOutput::Announce(_) | MeshOutput::CloseLink(_) => None,
        });
        answer.unwrap()
    }

    /// At which registries the liar is found.
    fn finds_liar(&mut self) -> Vec<bool> {
        let find = parse_request(b"1 SEARCH 9").unwrap().1;
        let count = self.registries.len();
        let found = (0..count).map(|registry| {
            let Reply::Found(found) = self.asks(registry, find.clone()) else {
                panic!("registry {registry} does not answer a search");
            };
            !found.is_empty()
        });
        found.collect()
    }
}

/// Three registries in a row, with the liar's entry at all of them.
fn row() -> Town {
    let mut town = Town::of(3);
    town.links(0, 1);
    town.links(1, 2);
    let line = b"1 REGISTER www.liar.test 80 127.0.0.1 7401 500 600 stamp=1790000000000";
    let register = parse_request(line).unwrap().1;
    for registry in 0..3 {
        town.asks(registry, register.clone());
    }
    assert_eq!(town.finds_liar(), [true; 3]);
    town
}

#[test]
fn whom_two_accuse_at_two_registries_is_found_at_none() {
    let mut town = row();
    assert_eq!(
        town.asks(0, said("www.a.test", CLOCK, sight())),
        Reply::Noted(1)
    );
    assert_eq!(
        town.asks(2, said("www.a.test", CLOCK, sight())),
        Reply::Noted(0)
    );
    assert_eq!(town.finds_liar(), [true; 3]);
    assert_eq!(
        town.asks(2, said("www.b.test", CLOCK, sight())),
        Reply::Noted(1)
    );
    assert_eq!(town.finds_liar(), [false; 3]);
    let Reply::Said(all) = town.asks(1, Request::Accusations) else {
        panic!("what was said");
    };
    assert_eq!(all.len(), 2);
    // One of them takes it back at a third one.
    assert_eq!(
        town.asks(1, said("www.a.test", CLOCK + 1, None)),
        Reply::Noted(1)
    );
    assert_eq!(town.finds_liar(), [true; 3]);
    // That is told too: somebody else may still say the older word.
    let Reply::Said(all) = town.asks(0, Request::Accusations) else {
        panic!("what was said");
    };
    let counts: Vec<bool> = all.iter().map(|one| one.sight.is_some()).collect();
    assert_eq!(counts, [true, false]);
}

#[test]
fn a_registry_that_was_away_learns_all_of_it() {
    let mut town = row();
    for accuser in ["www.a.test", "www.b.test"] {
        town.asks(0, said(accuser, CLOCK, sight()));
    }
    let mut late = Town::of(1);
    town.registries.append(&mut late.registries);
    town.links(2, 3);
    let accusations = town.registries[3].accusations();
    assert!(accusations.are_believed_of(&host("www.liar.test")));
}

#[test]
fn the_word_of_who_is_no_member_any_more_counts_nowhere() {
    let mut town = row();
    for accuser in ["www.a.test", "www.b.test"] {
        town.asks(0, said(accuser, CLOCK, sight()));
    }
    let gone = BTreeSet::from([host("www.a.test")]);
    for registry in &mut town.registries {
        registry.handle(NOW, MeshInput::AccusersGone(gone.clone()));
    }
    assert_eq!(town.finds_liar(), [true; 3]);
}

#[test]
fn it_ends_by_itself_after_a_day() {
    let mut town = row();
    for accuser in ["www.a.test", "www.b.test"] {
        town.asks(0, said(accuser, CLOCK, sight()));
    }
    let day = NOW + levee_registry::ACCUSATION_LIFETIME;
    let mesh = &mut town.registries[0];
    mesh.handle(day, MeshInput::TimerFired);
    assert_eq!(mesh.accusations().all().count(), 0);
}
