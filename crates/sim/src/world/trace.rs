//! What happened, a line each, for people and for the expected output of stories.
//!
//! What comes to a Brain stands at the margin, what it does about it is indented below. What
//! happens each second in the same way (intervals, beats, registrations) is left out, or nobody
//! would read it.

use levee_control::{Input, Output, Reason};
use levee_vocab::{HostName, Timestamp};

/// The lines so far.
#[derive(Debug, Default)]
pub struct Trace {
    lines: Vec<String>,
    names: Vec<(String, String)>,
    detail: Detail,
}

/// How much is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Everything that is worth reading.
    #[default]
    Decisions,
    /// Nothing: storms are long.
    Nothing,
}

impl Trace {
    /// Sets how much is written down from now on.
    pub const fn set_detail(&mut self, detail: Detail) {
        self.detail = detail;
    }

    /// A site is called by its label instead of its name.
    pub fn name_site(&mut self, name: &HostName, label: &str) {
        self.names.push((name.to_string(), label.to_owned()));
    }

    /// Writes down what a Brain was told and what it wants.
    pub fn record(&mut self, now: Timestamp, site: &str, input: &Input, outputs: &[Output]) {
        if self.detail == Detail::Nothing {
            return;
        }
        let done: Vec<String> = outputs.iter().filter_map(describe_output).collect();
        let told = match describe_input(input) {
            Told::Always(text) => text,
            Told::WithOutputs(text) if !done.is_empty() => text,
            Told::WithOutputs(_) => return,
        };
        self.write(now, site, &told);
        for line in done {
            self.write(now, site, &format!("  {line}"));
        }
    }

    /// Writes down what was done to the world.
    pub fn note(&mut self, now: Timestamp, what: &str) {
        if self.detail != Detail::Nothing {
            self.lines.push(format!("{now} {what}"));
        }
    }

    /// Takes out the lines so far.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn write(&mut self, now: Timestamp, site: &str, text: &str) {
        let mut line = format!("{now} {site}: {text}");
        for (name, label) in &self.names {
            line = line.replace(name.as_str(), label);
        }
        self.lines.push(line);
    }
}

enum Told {
    Always(String),
    WithOutputs(String),
}

fn describe_input(input: &Input) -> Told {
    let seconds = |sample: &levee_control::LoadSample| sample.elapsed.as_secs_f64().max(1e-9);
    match input {
        Input::IntervalEnded(sample) => {
            let rate = sample.bytes_out() as f64 / seconds(sample) / 1000.0;
            Told::WithOutputs(format!("interval ended, out {rate:.1} kB/s"))
        }
        Input::TimerFired => Told::WithOutputs("timer fired".to_owned()),
        Input::CandidatesFound(found) => {
            Told::WithOutputs(format!("{} candidates found", found.len()))
        }
        Input::SearchFailed => Told::WithOutputs("search failed".to_owned()),
        Input::RescueAccepted { alias, rate, .. } => {
            Told::Always(format!("200 OK from {alias}, {rate}"))
        }
        Input::RescueRefused { link, rejection } => {
            Told::Always(format!("no help on {link}: {rejection}"))
        }
        Input::SosReceived { link, call } => {
            Told::Always(format!("SOS from {} on {link}", call.origin.host))
        }
        Input::RateReceived { link, rate, .. } => {
            Told::WithOutputs(format!("RATE {rate} on {link}"))
        }
        Input::PeersReceived { link, peers } => {
            Told::WithOutputs(format!("PEERS on {link}, {} of them", peers.members.len()))
        }
        Input::PermitReceived { link, length } => {
            Told::WithOutputs(format!("PERMIT for {} s on {link}", length.as_secs()))
        }
        Input::OriginReturned { link } => Told::Always(format!("the origin of {link} is back")),
        Input::MembersExpelled(hosts) => Told::Always(format!("{} are expelled", hosts.len())),
        Input::RecordsChanged(records) => Told::Always(records.to_string()),
        Input::DeliveryLate { link } => Told::Always(format!("what {link} delivers is late")),
        Input::AnswerReceived { link } => Told::WithOutputs(format!("answer on {link}")),
        Input::ShutdownReceived { link } => Told::Always(format!("SHUTDOWN on {link}")),
        Input::LinkLost { link, loss } => Told::WithOutputs(format!("lost {link}: {loss}")),
        Input::ResourcesStepped(steps) => {
            Told::WithOutputs(format!("{} steps of resources", steps.len()))
        }
        Input::EmbeddedFound { page, resources } => {
            Told::WithOutputs(format!("{page} embeds {} objects", resources.len()))
        }
        Input::CopyEnded { link, url, outcome } => {
            Told::WithOutputs(format!("copy of {url} on {link}: {outcome:?}"))
        }
        Input::CopyMissing { link, url } => Told::Always(format!("no copy of {url} on {link}")),
        Input::ParametersChanged(_) => Told::Always("settings reloaded".to_owned()),
        Input::DrillOrdered(order) => {
            Told::Always(format!("told to drill for {} s", order.length.as_secs()))
        }
        Input::DrillStopped(stop) => Told::Always(format!("drill stopped: {}", stop.why())),
        Input::DrainStarted => Told::Always("told to stop".to_owned()),
    }
}

/// Seconds of refusals and steps of T_redi follow from the crowd, not from a decision: `show` tells
/// them. Registrations, searches, plans and beats happen all the time.
fn describe_output(output: &Output) -> Option<String> {
    match output {
        Output::CallForHelp {
            link, candidate, ..
        } => Some(format!("SOS to {} on {link}", candidate.site.host)),
        Output::AcceptSos { link, alias, rate } => {
            Some(format!("200 OK on {link}: {alias}, {rate}"))
        }
        Output::RejectSos { link, .. } => Some(format!("403 Reject on {link}")),
        Output::ShutDown { link, cause } => Some(format!("SHUTDOWN on {link}: {cause}")),
        Output::DropLink { link } => Some(format!("drop {link}")),
        Output::Explain(reason) => describe_reason(reason),
        Output::TellRate { .. }
        | Output::TellPeers { .. }
        | Output::SearchRegistry { .. }
        | Output::Register { .. }
        | Output::Copy(_)
        | Output::SwapPlan
        | Output::RememberAliases
        | Output::RememberGiven => None,
    }
}

fn describe_reason(reason: &Reason) -> Option<String> {
    match reason {
        Reason::RedirectThreshold { .. } | Reason::Refusing { .. } | Reason::LoadRose { .. } => {
            None
        }
        Reason::StateChanged { .. }
        | Reason::Asked { .. }
        | Reason::RescueBegan { .. }
        | Reason::RescueEnded { .. }
        | Reason::GraceEnded { .. }
        | Reason::OriginDied { .. }
        | Reason::RateChanged { .. }
        | Reason::CameBack { .. }
        | Reason::NotHelped { .. }
        | Reason::SosRejected { .. }
        | Reason::DrillBegan { .. }
        | Reason::DrillRefused { .. }
        | Reason::DrillJoined { .. }
        | Reason::DrillEnded { .. }
        | Reason::CallingEarly { .. }
        | Reason::Copying { .. }
        | Reason::RedirectingResource { .. }
        | Reason::ServedHere { .. }
        | Reason::CopyRefused { .. }
        | Reason::NoCandidate(_) => Some(reason.to_string()),
    }
}
