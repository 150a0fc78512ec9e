//! What an experiment leaves behind: rows that compare, plots that show, a file that keeps both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bench::Form;

/// All that came of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Its name, as `levee lab run` takes it.
    pub experiment: String,
    /// What it shows, for people.
    pub title: String,
    /// Which figure of which paper it plays again.
    pub source: String,
    /// How it was played, in sentences.
    pub method: Vec<String>,
    /// `full`, `compressed` or `shortest`.
    pub form: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// What is compared.
    pub rows: Vec<Row>,
    /// What is shown.
    pub plots: Vec<Plot>,
    /// Further figures, by name, for whoever reads the JSON.
    pub figures: BTreeMap<String, f64>,
}

/// One comparison with a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What is compared.
    pub name: String,
    /// Unit of the three figures.
    pub unit: String,
    /// What the paper says; none where it says nothing.
    pub published: Option<f64>,
    /// What was measured.
    pub ours: f64,
    /// What arithmetic allows at most; none where nothing bounds it.
    pub bound: Option<f64>,
    /// What was aimed at.
    pub goal: Goal,
    /// Whether it was reached.
    pub verdict: Verdict,
    /// In which forms that can be said. Files need not know: their verdicts are those of a form.
    #[serde(skip)]
    judged_in: JudgedIn,
}

/// Forms that are long enough to reach a goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum JudgedIn {
    /// All three.
    #[default]
    EveryForm,
    /// The full and the compressed one.
    LongerForms,
}

/// What a row aims at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// This share of the bound, or more.
    OfBound(f64),
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
    /// Nothing; the figure is told for what it is.
    Told,
}

/// Whether a goal was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was.
    Met,
    /// It was not.
    Missed,
    /// There is one, but what was played is too short to reach it.
    NotJudged,
    /// There was none.
    Told,
}

impl Row {
    /// A row without paper, bound or goal.
    pub fn told(name: &str, unit: &str, ours: f64) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            published: None,
            ours,
            bound: None,
            goal: Goal::Told,
            verdict: Verdict::Told,
            judged_in: JudgedIn::EveryForm,
        }
    }

    /// The same with what the paper says.
    pub fn published(self, published: f64) -> Self {
        Self {
            published: Some(published),
            ..self
        }
    }

    /// The same with what arithmetic allows.
    pub fn bounded_by(self, bound: f64) -> Self {
        Self {
            bound: Some(bound),
            ..self
        }
    }

    /// The same, judged by a goal.
    pub fn judged_by(self, goal: Goal) -> Self {
        let met = match goal {
            Goal::OfBound(share) => self.bound.map(|bound| self.ours >= share * bound),
            Goal::AtLeast(least) => Some(self.ours >= least),
            Goal::AtMost(most) => Some(self.ours <= most),
            Goal::Told => None,
        };
        let verdict = match met {
            None => Verdict::Told,
            Some(true) => Verdict::Met,
            Some(false) => Verdict::Missed,
        };
        Self {
            goal,
            verdict,
            ..self
        }
    }

    /// The same, but not judged in the shortest form, which is too short to reach its goal.
    pub fn only_in_longer_forms(self) -> Self {
        Self {
            judged_in: JudgedIn::LongerForms,
            ..self
        }
    }

    /// The same with the verdict that this form allows.
    fn in_form(self, form: Form) -> Self {
        let verdict = match (self.judged_in, form, self.verdict) {
            (JudgedIn::LongerForms, Form::Shortest, Verdict::Met | Verdict::Missed) => {
                Verdict::NotJudged
            }
            (JudgedIn::LongerForms | JudgedIn::EveryForm, _, verdict) => verdict,
        };
        Self { verdict, ..self }
    }
}

impl Findings {
    /// The same, as found in this form: goals that it is too short for are not judged.
    pub fn in_form(self, form: Form) -> Self {
        let rows = self.rows.into_iter();
        Self {
            form: form.name().to_owned(),
            rows: rows.map(|row| row.in_form(form)).collect(),
            ..self
        }
    }
}

impl Goal {
    /// For people, with the unit of its row.
    pub fn in_words(self, unit: &str) -> String {
        match self {
            Self::OfBound(share) => format!("at least {:.0} % of the bound", share * 100.0),
            Self::AtLeast(least) => format!("at least {} {unit}", plain(least)),
            Self::AtMost(most) => format!("at most {} {unit}", plain(most)),
            Self::Told => "none".to_owned(),
        }
    }
}

/// A plot, as data: the page is drawn from it, also much later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// Heading.
    pub title: String,
    /// What to see in it.
    pub text: String,
    /// Name and unit of the horizontal axis.
    pub across: String,
    /// Name and unit of the vertical axis.
    pub up: String,
    /// What is drawn, first things below.
    pub series: Vec<Series>,
}

/// One line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A line with its points.
    Line,
    /// A dashed line without points: a limit.
    Limit,
    /// Points alone.
    Dots,
}

impl Plot {
    /// The same with one more series.
    pub fn with(mut self, name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        self.series.push(Series {
            name: name.to_owned(),
            mark,
            points,
        });
        self
    }
}

/// A figure with as many digits as say something.
pub fn plain(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 || value == 0.0 => trimmed(format!("{value:.1}")),
        _ => trimmed(format!("{value:.3}")),
    }
}

fn trimmed(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_judges_what_was_measured() {
        let row = Row::told("R_max", "requests/s", 95.0).bounded_by(100.0);
        let verdict = |goal| row.clone().judged_by(goal).verdict;
        assert_eq!(verdict(Goal::OfBound(0.95)), Verdict::Met);
        assert_eq!(verdict(Goal::OfBound(0.96)), Verdict::Missed);
        assert_eq!(verdict(Goal::AtLeast(96.0)), Verdict::Missed);
        assert_eq!(verdict(Goal::AtMost(95.0)), Verdict::Met);
        assert_eq!(verdict(Goal::Told), Verdict::Told);
        let unbounded = Row::told("R_max", "requests/s", 95.0);
        let row = unbounded.judged_by(Goal::OfBound(0.9));
        assert_eq!(row.verdict, Verdict::Told);
    }

    #[test]
    fn a_goal_that_the_shortest_form_cannot_reach_is_not_judged_there() {
        let row = |ours| Row::told("R_max", "requests/s", ours).judged_by(Goal::AtLeast(90.0));
        let findings = Findings {
            rows: vec![
                row(80.0),
                row(80.0).only_in_longer_forms(),
                row(95.0).only_in_longer_forms(),
                Row::told("D_max", "kB/s", 1.0).only_in_longer_forms(),
            ],
            ..Findings::default()
        };
        let verdicts = |form| {
            let played = findings.clone().in_form(form);
            assert_eq!(played.form, form.name());
            let rows = played.rows.into_iter();
            rows.map(|row| row.verdict).collect::<Vec<_>>()
        };
        use Verdict::{Met, Missed, NotJudged, Told};
        let shortest = [Missed, NotJudged, NotJudged, Told];
        assert_eq!(verdicts(Form::Shortest), shortest);
        for longer in [Form::Compressed, Form::Full] {
            assert_eq!(verdicts(longer), [Missed, Missed, Met, Told]);
        }
    }

    #[test]
    fn figures_have_as_many_digits_as_say_something() {
        let shown = [18_000.4, 544.13, 97.0, 9.78, 0.0, 0.0125].map(plain);
        assert_eq!(shown, ["18000", "544.1", "97", "9.78", "0", "0.013"]);
    }
}
