//! Which order is carried out next: of those that wait, the first one for the rescue server that
//! has the fewest under way.
//!
//! Why: an order to one that does not answer holds its place until the deadline. The Brain gives
//! orders by the same measure, but it forgets them where a rescue ends and begins anew, and here
//! they are still under way.
//!
//! Whatever ends one, also a bug of ours, gives its place back.

use std::collections::{BTreeMap, HashMap, VecDeque};

use levee_vocab::LinkId;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

/// Copies under way. What they send goes one after another over the same link anyway; several
/// hide the round trips.
const PLACES: usize = 8;
/// Beyond so many only a rescue server gets one that has none.
const PLACES_AT_WILL: usize = PLACES / 2;
/// Places of one rescue server at most.
const PLACES_PER_LINK: usize = 2;

/// What waits, and how much is under way for whom.
#[derive(Debug)]
struct Places<J> {
    waiting: VecDeque<(LinkId, J)>,
    under_way: BTreeMap<LinkId, usize>,
}

impl<J> Default for Places<J> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
        }
    }
}

impl<J> Places<J> {
    /// How many wait.
    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// It is to be carried out when there is a place.
    fn push(&mut self, link: LinkId, job: J) {
        self.waiting.push_back((link, job));
    }

    /// What to begin now; it has a place until it is told to have ended.
    fn next(&mut self) -> Option<(LinkId, J)> {
        let total: usize = self.under_way.values().sum();
        let allowed = match total {
            0..PLACES_AT_WILL => PLACES_PER_LINK,
            PLACES_AT_WILL..PLACES => 1,
            _full => 0,
        };
        let places = |link| self.under_way.get(link).copied().unwrap_or_default();
        let waiting = self.waiting.iter().map(|(link, _)| places(link));
        let (index, _) = waiting
            .enumerate()
            .filter(|&(_, places)| places < allowed)
            .min_by_key(|&(_, places)| places)?;
        let (link, job) = self.waiting.remove(index)?;
        *self.under_way.entry(link).or_default() += 1;
        Some((link, job))
    }

    /// One for this rescue server is over.
    fn ended(&mut self, link: LinkId) {
        if let Some(places) = self.under_way.get_mut(&link) {
            *places -= 1;
            if *places == 0 {
                self.under_way.remove(&link);
            }
        }
    }
}

/// Carries out what comes, `waiting_max` of which may wait, until nothing can come any more; what
/// is under way then is dropped.
pub(super) async fn work<J, F>(
    mut inbox: mpsc::Receiver<(LinkId, J)>,
    waiting_max: usize,
    carry_out: impl Fn(J) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut places = Places::default();
    let mut under_way = JoinSet::new();
    let mut links: HashMap<Id, LinkId> = HashMap::new();
    loop {
        tokio::select! {
            job = inbox.recv(), if places.waiting() < waiting_max => match job {
                Some((link, job)) => places.push(link, job),
                None => return,
            },
            Some(ended) = under_way.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => {
                        tracing::error!("a copy broke off: {error}");
                        error.id()
                    }
                };
                if let Some(link) = links.remove(&id) {
                    places.ended(link);
                }
            }
        }
        while let Some((link, job)) = places.next() {
            let task = under_way.spawn(carry_out(job));
            links.insert(task.id(), link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_copy_that_breaks_off_gives_its_place_back() {
        let (jobs, inbox) = mpsc::channel(8);
        let (done, mut told) = mpsc::channel(8);
        let carry_out = move |job: u64| {
            let done = done.clone();
            async move {
                assert_ne!(job, 0, "a bug that the test is about");
                done.send(job).await.unwrap();
            }
        };
        let working = tokio::spawn(work(inbox, 4, carry_out));
        // More than there are places for one rescue server, and in all.
        for _ in 0..=PLACES {
            jobs.send((LinkId::Outbound(1), 0)).await.unwrap();
        }
        jobs.send((LinkId::Outbound(1), 7)).await.unwrap();
        assert_eq!(told.recv().await, Some(7));
        drop(jobs);
        working.await.unwrap();
    }

    fn drain(places: &mut Places<u64>) -> Vec<u64> {
        std::iter::from_fn(|| places.next())
            .map(|(_, job)| job)
            .collect()
    }

    #[test]
    fn no_rescue_server_holds_more_than_its_part_while_others_wait() {
        let mut places = Places::default();
        for link in [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6] {
            places.push(LinkId::Outbound(link), link);
        }
        assert_eq!(drain(&mut places), [1, 2, 3, 4, 5, 6]);
        places.push(LinkId::Outbound(7), 7);
        assert_eq!(drain(&mut places), [7]);
        assert_eq!(places.waiting(), 5);
        // Whoever hangs keeps one place; the others go on.
        for link in [5, 6, 7] {
            places.ended(LinkId::Outbound(link));
        }
        assert_eq!(drain(&mut places), Vec::<u64>::new());
        places.ended(LinkId::Outbound(3));
        assert_eq!(drain(&mut places), [3]);
    }

    #[test]
    fn a_single_rescue_server_has_two_places() {
        let mut places = Places::default();
        for job in 0..3 {
            places.push(LinkId::Outbound(1), job);
        }
        assert_eq!(drain(&mut places), [0, 1]);
        places.ended(LinkId::Outbound(1));
        assert_eq!(drain(&mut places), [2]);
    }
}
