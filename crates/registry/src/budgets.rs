//! What each of many may send: a burst, and then so many a second.
//!
//! Nobody's budget is touched by what others send. Memory is bounded: whose budget is full again is
//! forgotten, and where the table is full all the same, whoever has used least of his own makes
//! room, so a crowd of newcomers gives no flooder a fresh budget.
//!
//! Whose a budget is, the shell says: in a closed community who has proved a key, in an open one a
//! network.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use levee_vocab::Timestamp;
use levee_wire::MessageBudget;

/// How much each may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Messages at once. At least 1.
    pub burst: u32,
    /// Messages a second on average. At least 1.
    pub per_second: u32,
    /// Those who are told apart. At least 1.
    pub holders_max: usize,
}

/// The budgets of all who have sent something lately.
#[derive(Clone, Debug)]
pub struct Budgets<H> {
    limits: BudgetLimits,
    budgets: BTreeMap<H, MessageBudget>,
    /// When each is full again.
    by_end: BTreeSet<(Timestamp, H)>,
}

impl<H: Ord + Clone> Budgets<H> {
    /// Nobody has sent anything yet.
    pub const fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            budgets: BTreeMap::new(),
            by_end: BTreeSet::new(),
        }
    }

    /// Takes one message from the budget of `holder`.
    ///
    /// # Errors
    /// The time until there is one to take, where there is none; then nothing is taken.
    pub fn take(&mut self, now: Timestamp, holder: &H) -> Result<(), Duration> {
        self.forget(now);
        let BudgetLimits {
            burst, per_second, ..
        } = self.limits;
        let fresh = || MessageBudget::new(burst, per_second);
        let mut budget = self.remove(holder).unwrap_or_else(fresh);
        let taken = match budget.take(now) {
            true => Ok(()),
            false => Err(budget.wait(now)),
        };
        while self.budgets.len() >= self.limits.holders_max.max(1)
            && let Some((_, least)) = self.by_end.first().cloned()
        {
            self.remove(&least);
        }
        self.by_end.insert((budget.full_at(), holder.clone()));
        self.budgets.insert(holder.clone(), budget);
        taken
    }

    /// How many are told apart now.
    pub fn holders(&self) -> usize {
        self.budgets.len()
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((full_at, holder)) = self.by_end.first()
            && *full_at <= now
        {
            let holder = holder.clone();
            self.remove(&holder);
        }
    }

    fn remove(&mut self, holder: &H) -> Option<MessageBudget> {
        let budget = self.budgets.remove(holder)?;
        let is_indexed = self.by_end.remove(&(budget.full_at(), holder.clone()));
        assert!(is_indexed, "every budget is in the index of ends");
        Some(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_seconds(10);

    fn budgets(holders_max: usize) -> Budgets<&'static str> {
        Budgets::new(BudgetLimits {
            burst: 10,
            per_second: 2,
            holders_max,
        })
    }

    fn taken(budgets: &mut Budgets<&'static str>, now: Timestamp, who: &'static str) -> usize {
        let takes = (0..1000).map(|_| budgets.take(now, &who));
        takes.filter(Result::is_ok).count()
    }

    #[test]
    fn a_flood_costs_nobody_but_who_sends_it() {
        let mut budgets = budgets(100);
        assert_eq!(taken(&mut budgets, START, "flooder"), 10);
        assert_eq!(
            budgets.take(START, &"flooder"),
            Err(Duration::from_millis(500))
        );
        assert_eq!(taken(&mut budgets, START, "neighbour"), 10);
        let later = START + Duration::from_secs(3);
        assert_eq!(taken(&mut budgets, later, "flooder"), 6);
    }

    #[test]
    fn who_has_been_silent_is_forgotten_and_newcomers_give_nobody_a_fresh_budget() {
        let mut budgets = budgets(3);
        assert_eq!(taken(&mut budgets, START, "flooder"), 10);
        for newcomer in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(budgets.take(START, &newcomer), Ok(()));
            assert!(budgets.holders() <= 3);
        }
        assert_eq!(taken(&mut budgets, START, "flooder"), 0);
        let later = START + Duration::from_secs(5);
        assert_eq!(budgets.take(later, &"a"), Ok(()));
        assert_eq!(budgets.holders(), 1);
    }
}
