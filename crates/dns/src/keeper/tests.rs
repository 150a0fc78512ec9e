//! A keeper against a zone in memory that may fail, and that others edit.

use super::*;

/// The zone, the list on disk, and a keeper between them.
struct Stage {
    keeper: Keeper,
    zone: Addresses,
    list: Addresses,
    now: Timestamp,
    todo: Option<Output>,
    /// What was done, in order.
    story: Vec<&'static str>,
}

fn addresses(lasts: &[u8]) -> Addresses {
    let address = |&last: &u8| match last {
        100.. => format!("2001:db8::{last}").parse().unwrap(),
        _ => IpAddr::from([192, 0, 2, last]),
    };
    lasts.iter().map(address).collect()
}

impl Stage {
    fn new(zone: &[u8], list: &[u8]) -> Self {
        let kept = KeptName {
            name: "www.example.org".parse().unwrap(),
            own: addresses(&[1]),
            ttl: Duration::from_secs(10),
        };
        let (keeper, todo) = Keeper::new(kept, addresses(list), 7);
        Self {
            keeper,
            zone: addresses(zone),
            list: addresses(list),
            now: Timestamp::ZERO,
            todo: Some(todo),
            story: vec![],
        }
    }

    fn give(&mut self, input: Input) {
        self.todo = self.keeper.handle(self.now, input);
    }

    /// Does one thing, and gives whether there was one.
    fn step(&mut self) -> bool {
        let Some(todo) = self.todo.take() else {
            return false;
        };
        let outcome = match todo {
            Output::Read => {
                self.story.push("read");
                Input::NameRead(Ok(self.zone.clone()))
            }
            Output::Remember(list) => {
                self.story.push("remember");
                self.list = list;
                Input::Remembered(Ok(()))
            }
            Output::Change(change) => {
                self.story.push("change");
                Input::Changed(self.apply(&change))
            }
        };
        self.give(outcome);
        true
    }

    fn run(&mut self) {
        while self.step() {}
    }

    fn want(&mut self, lasts: &[u8]) {
        self.give(Input::Wanted(addresses(lasts)));
        self.run();
    }

    /// The next thing to do fails with `failure`.
    fn fail(&mut self, failure: Cause) {
        let outcome = match self.todo.take().expect("something to do") {
            Output::Read => Input::NameRead(Err(failure)),
            Output::Remember(_) => Input::Remembered(Err(failure.to_string())),
            Output::Change(_) => Input::Changed(Err(failure)),
        };
        self.give(outcome);
    }

    fn pass_deadline(&mut self) {
        self.now = self.keeper.next_deadline().expect("a deadline");
        self.give(Input::TimerFired);
    }

    fn apply(&mut self, change: &Change) -> Result<(), Cause> {
        for expected in &change.expected {
            let of_kind = |one: &&IpAddr| Value::Address(**one).kind() == expected.kind;
            let there = self.zone.iter().filter(of_kind);
            let there: Vec<Value> = there.map(|one| Value::Address(*one)).collect();
            if there != expected.values {
                let name = expected.name.clone();
                return Err(Cause::Conflict { name });
            }
        }
        for edit in &change.edits {
            match edit {
                Edit::Add(Record {
                    value: Value::Address(one),
                    ..
                }) => self.zone.insert(*one),
                Edit::Remove(_, Value::Address(one)) => self.zone.remove(one),
                Edit::Add(_) | Edit::Remove(..) | Edit::Clear(..) => panic!("{edit:?}"),
            };
        }
        Ok(())
    }

    fn check(&self, zone: &[u8], list: &[u8]) {
        assert_eq!(self.zone, addresses(zone), "zone after {:?}", self.story);
        assert_eq!(self.list, addresses(list), "list after {:?}", self.story);
    }
}

fn away() -> Cause {
    Cause::Unreachable { why: "x".into() }
}

#[test]
fn rescue_servers_enter_and_leave_and_the_list_is_written_first() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.check(&[1], &[]);
    stage.story.clear();
    stage.want(&[2, 103]);
    stage.check(&[1, 2, 103], &[2, 103]);
    assert_eq!(stage.story, ["read", "remember", "change"]);
    stage.want(&[103]);
    stage.check(&[1, 103], &[103]);
    stage.want(&[]);
    stage.check(&[1], &[]);
    assert!(stage.keeper.is_settled());
    assert_eq!(stage.keeper.next_deadline(), None, "nothing to watch");
}

#[test]
fn what_a_crash_left_behind_is_taken_out_at_the_next_start() {
    let mut stage = Stage::new(&[1, 2, 3], &[2, 4]);
    stage.run();
    stage.check(&[1, 3], &[]);
}

#[test]
fn what_others_put_in_stays_even_if_we_would_have_put_it_in() {
    let mut stage = Stage::new(&[1, 5], &[]);
    stage.run();
    stage.want(&[5, 6]);
    stage.check(&[1, 5, 6], &[6]);
    stage.want(&[]);
    stage.check(&[1, 5], &[]);
}

#[test]
fn a_name_never_loses_its_last_address() {
    let mut stage = Stage::new(&[2], &[2]);
    stage.run();
    stage.check(&[1], &[]);
    // Nobody's: the site's own is put in at once, and is nobody's afterwards either.
    let mut stage = Stage::new(&[], &[]);
    stage.run();
    stage.want(&[7]);
    stage.check(&[1, 7], &[7]);
    stage.want(&[]);
    stage.check(&[1], &[]);
}

#[test]
fn an_operator_who_chose_other_addresses_keeps_them() {
    let mut stage = Stage::new(&[9], &[]);
    stage.run();
    stage.want(&[7]);
    stage.check(&[7, 9], &[7]);
    stage.want(&[]);
    stage.check(&[9], &[]);
}

#[test]
fn somebody_else_who_edits_at_the_same_time_loses_nothing() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    assert!(stage.step() && stage.step(), "read and remembered");
    stage.zone.insert(IpAddr::from([192, 0, 2, 50]));
    stage.run();
    stage.check(&[1, 2, 50], &[2]);
}

#[test]
fn a_conflict_without_end_is_told_and_tried_again_later() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    let conflict = Cause::Conflict {
        name: "www.example.org".parse().unwrap(),
    };
    let mut conflicts = 0;
    while stage.keeper.next_deadline().is_none() {
        if let Some(Output::Change(_)) = stage.todo {
            conflicts += 1;
            stage.fail(conflict.clone());
        } else {
            stage.step();
        }
    }
    assert_eq!(conflicts, CONFLICTS_MAX + 1);
    stage.pass_deadline();
    stage.run();
    stage.check(&[1, 2], &[2]);
}

#[test]
fn failures_are_tried_again_with_growing_pauses_until_it_works() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    let mut pauses = vec![];
    for _ in 0..10 {
        stage.fail(away());
        let until = stage.keeper.next_deadline().expect("a deadline");
        pauses.push(until.since(stage.now));
        let KeeperState::Failing { failure, next } = stage.keeper.view(stage.now).state else {
            panic!("not told");
        };
        assert_eq!(failure, Failure::Zone(away()));
        assert_eq!(next, pauses.last().copied());
        stage.pass_deadline();
    }
    assert!(pauses[0] < Duration::from_millis(350), "{pauses:?}");
    assert!(pauses[4] > pauses[0] * 8, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= RETRY_MAX.mul_f64(1.25)));
    stage.run();
    stage.check(&[1, 2], &[2]);
    assert_eq!(stage.keeper.view(stage.now).state, KeeperState::Settled);
}

#[test]
fn nothing_is_put_in_that_could_not_be_written_down() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    assert!(stage.step(), "read");
    stage.fail(away());
    stage.check(&[1], &[]);
    let state = stage.keeper.view(stage.now).state;
    let is_told = matches!(
        state,
        KeeperState::Failing {
            failure: Failure::NotRemembered(_),
            ..
        }
    );
    assert!(is_told, "{state:?}");
}

/// Until it paused here too, it read the name and failed to write without end.
#[test]
fn what_cannot_be_crossed_off_is_told_and_tried_again_later() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.want(&[2]);
    stage.check(&[1, 2], &[2]);
    stage.give(Input::Wanted(addresses(&[])));
    assert!(stage.step() && stage.step(), "read, change");
    assert_eq!(stage.todo, Some(Output::Remember(addresses(&[]))));
    stage.give(Input::Remembered(Err("no space left".into())));
    stage.check(&[1], &[2]);
    assert_eq!(stage.todo, None, "it pauses");
    let state = stage.keeper.view(stage.now).state;
    assert!(
        matches!(
            &state,
            KeeperState::Failing {
                failure: Failure::NotRemembered(why),
                next: Some(_),
            } if why == "no space left"
        ),
        "{state:?}"
    );
    stage.pass_deadline();
    stage.run();
    stage.check(&[1], &[]);
    assert_eq!(stage.keeper.view(stage.now).state, KeeperState::Settled);
}

#[test]
fn an_update_whose_answer_was_lost_is_found_done() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    assert!(stage.step() && stage.step());
    // It arrived, but nobody heard the answer.
    stage.zone = addresses(&[1, 2]);
    stage.fail(Cause::TimedOut {
        wait: Duration::from_secs(3),
    });
    stage.pass_deadline();
    stage.run();
    stage.check(&[1, 2], &[2]);
    stage.want(&[]);
    stage.check(&[1], &[]);
}

#[test]
fn what_is_wanted_meanwhile_is_done_afterwards() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.give(Input::Wanted(addresses(&[2])));
    let todo = stage.todo.take();
    stage.give(Input::Wanted(addresses(&[3])));
    assert_eq!(stage.todo, None, "one thing at a time");
    stage.todo = todo;
    stage.run();
    stage.check(&[1, 3], &[3]);
    stage.give(Input::Wanted(addresses(&[])));
    assert!(stage.step());
    let todo = stage.todo.take();
    stage.give(Input::Wanted(addresses(&[4])));
    stage.todo = todo;
    stage.run();
    stage.check(&[1, 4], &[4]);
}

#[test]
fn a_zone_that_was_loaded_anew_gets_our_addresses_again() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.want(&[2]);
    stage.zone = addresses(&[1]);
    stage.pass_deadline();
    stage.run();
    stage.check(&[1, 2], &[2]);
}

#[test]
fn inputs_that_do_not_belong_to_the_phase_change_nothing() {
    let mut stage = Stage::new(&[1], &[]);
    stage.run();
    stage.want(&[2]);
    for input in [
        Input::NameRead(Ok(addresses(&[]))),
        Input::Remembered(Err("x".into())),
        Input::Changed(Err(away())),
        Input::TimerFired,
        Input::Wanted(addresses(&[2])),
    ] {
        assert_eq!(stage.keeper.handle(stage.now, input), None);
    }
    assert!(stage.keeper.is_settled());
    stage.check(&[1, 2], &[2]);
}
