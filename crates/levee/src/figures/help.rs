//! What was given to others, for the status.

use levee_control::BrainView;
use levee_observe::{HelpStatus, RefusedSite};

use super::{Calendar, Figures, Surroundings};

impl Figures {
    pub(super) fn help(
        &self,
        view: &BrainView,
        surroundings: &Surroundings<'_>,
        calendar: &Calendar,
    ) -> HelpStatus {
        let help = &view.help;
        let limits = &surroundings.parameters.help;
        let site = |(origin, bytes): &(Option<levee_vocab::HostName>, u64)| {
            let name = origin.as_ref().map(ToString::to_string);
            (name.unwrap_or_else(|| "others".to_owned()), *bytes)
        };
        let refused = help.refused.iter().rev().map(|call| RefusedSite {
            site: call.origin.to_string(),
            why: call.refusal.why().to_owned(),
            at: calendar.unix(call.at),
            times: call.times,
        });
        let kinds = help.refused_by_kind.iter();
        HelpStatus {
            given: help.given,
            given_max: limits.bytes_per_day,
            member_given_max: limits.member_bytes_per_day,
            rate: help.rate.as_bytes(),
            sites: help.origins.iter().map(site).collect(),
            disk: self.fetcher.disk_bytes_of_others(),
            refused: refused.collect(),
            refused_calls: kinds
                .map(|(&kind, &calls)| (kind.to_owned(), calls))
                .collect(),
            state_trouble: surroundings.state_trouble.clone(),
        }
    }
}
