//! Asking again for requests that wait for capacity.

use std::time::Duration;

use levee_control::Verdict;

use super::Engine;
use crate::connection::{Granted, Phase};
use crate::parked::ParkedQueue;

/// How often parked requests are asked for: budgets grow smoothly, and at 54 kB/s one redirect
/// takes the link 10 ms.
const ROUND: Duration = Duration::from_millis(5);

impl Engine {
    /// Asks the Gate for those that wait, first come, first asked.
    pub(super) fn ask_parked(&mut self) {
        if self.core.parked.is_empty() {
            self.core.next_round = None;
            return;
        }
        let now = self.core.now;
        if self.core.next_round.is_some_and(|at| at > now) {
            return;
        }
        let mut round = ParkedQueue::begin_round();
        while let Some(request) = self.core.parked.next(&mut round) {
            let (token, ticket) = (request.token, request.ticket);
            let connection = self.connections.find(token);
            let waits = connection
                .filter(|one| matches!(one.phase, Phase::Parked { ticket: own } if own == ticket));
            let Some(connection) = waits else {
                self.core.parked.remove(&round);
                continue;
            };
            // The plan may have changed, and with it the numbers of those who hold it.
            request.ask.copies = self.core.hot.find(request.ask.resource_hash);
            let visitor = request.ask.visitor;
            let visitor = self.core.crawlers.look_again(now, visitor, request.block);
            request.ask.visitor = visitor;
            request.ask.waited = now.since(request.since);
            request.ask.backlog = match &self.core.link {
                Some(link) => link.backlog_for(visitor, now),
                None => Duration::ZERO,
            };
            let ask = request.ask.clone();
            let verdict = self.core.decide(&ask);
            if verdict == Verdict::Wait {
                self.core.parked.keep(&mut round);
                continue;
            }
            let Some(request) = self.core.parked.remove(&round) else {
                break;
            };
            self.core.renew_visitor(connection, request.ask.visitor);
            connection.granted = Some(Granted {
                verdict,
                ask: request.ask,
                since: request.since,
            });
            connection.phase = Phase::boundary(now);
            self.drive(token);
        }
        self.core.next_round = (!self.core.parked.is_empty()).then(|| now + ROUND);
        self.core
            .counters
            .waiting
            .set(self.core.parked.len() as u64);
    }
}
