//! The table `[help]`: what is given to others at most, and to whom.

use levee_control::HelpLimits;

use super::mesh::is_member;
use super::values::Values;
use crate::settings::read::Complaint;
use crate::settings::table::section;

/// The table `[help]`; ranges are checked by `control::Parameters`.
#[derive(Clone, Debug, PartialEq)]
pub struct HelpSettings {
    /// What rescue control goes by.
    pub limits: HelpLimits,
    /// Most origins at once.
    pub origins_max: usize,
    /// Most disk for their objects; none where they may have all of the cache's.
    pub disk: Option<u64>,
}

pub(super) fn help(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> HelpSettings {
    need_community(values, complaints);
    need_memory(values, complaints);
    HelpSettings {
        limits: HelpLimits {
            rate: values.rate("help.rate"),
            bytes_per_day: values.size("help.bytes_per_day"),
            member_rate: values.rate("help.member_rate"),
            member_bytes_per_day: values.size("help.member_bytes_per_day"),
            members: values.hosts("help.members"),
            never: values.hosts("help.never"),
        },
        origins_max: values.number("help.origins_max") as usize,
        disk: values.size("help.disk"),
    }
}

/// Who stands alone helps nobody.
fn need_community(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    if is_member(values) {
        return;
    }
    for name in section("help").filter(|name| values.file.given(name).is_some()) {
        complaints.push(Complaint {
            line: values.file.line(name),
            text: format!(
                "{name} does nothing without community.registry, community.registries or \
                 community.registry_domain, by which a site joins those whom it helps"
            ),
        });
    }
}

/// A limit of a day that each restart forgets is none.
fn need_memory(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    if values.path("state.folder").is_some() {
        return;
    }
    for name in ["help.bytes_per_day", "help.member_bytes_per_day"] {
        if values.size(name).is_some() {
            complaints.push(Complaint {
                line: values.file.line(name),
                text: format!(
                    "{name}: a restart would forget what was given; name a folder that remembers \
                     it, e.g. state.folder = \"/var/lib/levee\""
                ),
            });
        }
    }
}
