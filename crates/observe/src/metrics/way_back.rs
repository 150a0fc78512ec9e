//! Metrics of visitors who are sent back by a rescue server, or do not go there: rows of the table
//! for both sides.

use super::Audience::Operator;
use super::Kind::Counter;
use super::Metric;

pub(super) const KEPT: Metric = Metric {
    name: "levee_kept_visits_total",
    kind: Counter,
    unit: "visits",
    level: Operator,
    help: "Visits that stayed here while others were redirected, only because nobody may keep the page (no-store, private, a cookie for one visitor, Vary: *): a rescue server would have fetched each through our link.",
    labels: &[],
    read: |s, out| out.value(s.lifetime.kept_visits),
};

pub(super) const SENT_BACK: Metric = Metric {
    name: "levee_sent_back_visitors_total",
    kind: Counter,
    unit: "visitors",
    level: Operator,
    help: "Visitors of origins whom we sent back to them, by reason: missing (the object is not here and cannot be fetched now), busy (no capacity left), over (the rescue is over).",
    labels: &["reason"],
    read: |s, out| {
        for (reason, count) in &s.lifetime.sent_back {
            out.labelled([reason], *count);
        }
    },
};

pub(super) const COMEBACKS: Metric = Metric {
    name: "levee_comebacks_total",
    kind: Counter,
    unit: "comebacks",
    level: Operator,
    help: "Requests of visitors whom a rescue server has sent back, by what the word in their URL was worth: believed (answered here), unsigned or doubtful (no proof, an old link, or forged: redirected once more, with a mark), returned (with that mark: answered here).",
    labels: &["word"],
    read: |s, out| {
        for (word, count) in &s.lifetime.comebacks {
            out.labelled([word], *count);
        }
    },
};
