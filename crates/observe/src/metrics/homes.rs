//! Metrics of the homes of objects: rows of the table about what rescue servers of one origin do
//! for each other.

use super::Audience::Operator;
use super::Kind::Counter;
use super::Metric;

pub(super) const ASKS: Metric = Metric {
    name: "levee_home_asks_total",
    kind: Counter,
    unit: "asks",
    level: Operator,
    help: "Requests to other rescue servers of the same origin for objects that have their home there.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.home_asks),
};

pub(super) const ANSWERS: Metric = Metric {
    name: "levee_home_answers_total",
    kind: Counter,
    unit: "answers",
    level: Operator,
    help: "Objects that came from their home, so that the origin was not asked.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.home_answers),
};

pub(super) const EXCEPTIONS: Metric = Metric {
    name: "levee_home_exceptions_total",
    kind: Counter,
    unit: "exceptions",
    level: Operator,
    help: "How often the origin, or the next home, was asked although an object's home is elsewhere: purged lately, resting after a failure, busy, unreachable, late, broken off, or refused.",
    labels: &["reason"],
    read: |s, out| {
        for (reason, count) in &s.lifetime.home_exceptions {
            out.labelled([reason], *count);
        }
    },
};
