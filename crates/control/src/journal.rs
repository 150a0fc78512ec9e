//! What a Brain decided and why, kept for people (STYLE 11).
//!
//! Two rings: the last decisions with their reasons, which the status page shows; and the last
//! inputs and outputs, which can be printed as a story: a line for what happened, and an indented
//! line for each thing done about it. A failure in the field becomes a test by copying it.

use std::collections::VecDeque;
use std::fmt::Write;

use levee_vocab::Timestamp;

use crate::input::Input;
use crate::output::Output;
use crate::reason::Reason;
use crate::view::Entry;

/// Decisions that are kept: some minutes of a busy rescue.
const DECISIONS_MAX: usize = 256;

/// Inputs and outputs that are kept.
const MOMENTS_MAX: usize = 1024;

/// Both rings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    decisions: VecDeque<Entry>,
    moments: VecDeque<(Timestamp, Moment)>,
}

#[derive(Clone, Debug)]
enum Moment {
    Happened(Input),
    Done(Output),
}

impl Journal {
    /// Keeps a decision, unless it only repeats the one before.
    pub(crate) fn note(&mut self, at: Timestamp, reason: Reason) {
        if self
            .decisions
            .back()
            .is_some_and(|last| last.reason == reason)
        {
            return;
        }
        if self.decisions.len() == DECISIONS_MAX {
            self.decisions.pop_front();
        }
        self.decisions.push_back(Entry { at, reason });
    }

    /// Keeps what happened and what was done about it.
    pub(crate) fn record(&mut self, at: Timestamp, input: Input, outputs: &[Output]) {
        self.push(at, Moment::Happened(input));
        for output in outputs {
            self.push(at, Moment::Done(output.clone()));
        }
    }

    /// The last decisions, oldest first.
    pub(crate) fn decisions(&self) -> Vec<Entry> {
        self.decisions.iter().cloned().collect()
    }

    /// The last inputs and outputs as a story.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for (at, moment) in &self.moments {
            let written = match moment {
                Moment::Happened(input) => writeln!(story, "{at} {input:?}"),
                Moment::Done(Output::Explain(reason)) => writeln!(story, "{at}   # {reason}"),
                Moment::Done(output) => writeln!(story, "{at}   {output:?}"),
            };
            written.expect("writing to a string never fails");
        }
        story
    }

    fn push(&mut self, at: Timestamp, moment: Moment) {
        if self.moments.len() == MOMENTS_MAX {
            self.moments.pop_front();
        }
        self.moments.push_back((at, moment));
    }
}
