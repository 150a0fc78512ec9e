//! What the status page shows of a closed community.

use levee_observe::{TrustRefusal, TrustStatus};
use levee_trust::{Deed, Role, Roster, SignedList, may};

use super::{Trust, unix_now};

impl Trust {
    /// How it stands with a site; none in an open community.
    pub fn status(&self) -> Option<TrustStatus> {
        self.status_for(Deed::CallForHelp)
    }

    /// How it stands with whoever is there to do `deed`; none in an open community.
    pub fn status_for(&self, deed: Deed) -> Option<TrustStatus> {
        let mut status = self.roster(|roster| self.of_list(roster, deed))?;
        let refused = self.denied.all().into_iter();
        status.refused = refused
            .map(|(cause, one)| TrustRefusal {
                cause: cause.to_owned(),
                count: one.count,
                last: one.last,
                at: one.at.0 / 1000,
            })
            .collect();
        status.list_trouble = self.list_trouble().unwrap_or_default();
        Some(status)
    }

    fn of_list(&self, roster: &Roster, deed: Deed) -> TrustStatus {
        let own = self.identity.key();
        let list = roster.newest().map(SignedList::list);
        let (state, cause) = self.standing(roster, deed);
        TrustStatus {
            key: own.to_string(),
            authority: roster.authority().to_string(),
            community: list.map_or_else(String::new, |list| list.community.to_string()),
            serial: roster.serial(),
            members: list.map_or(0, |list| list.members().len() as u64),
            expires: list.map_or(0, |list| list.expires.0 / 1000),
            state: state.to_owned(),
            cause,
            ..TrustStatus::default()
        }
    }

    fn standing(&self, roster: &Roster, deed: Deed) -> (&'static str, String) {
        let now = unix_now();
        let role = match roster.who(&self.identity.key(), now) {
            Ok((_, role)) => role,
            Err(why) => {
                return ("out", format!("We are no member: {why}"));
            }
        };
        let due = roster.newest().filter(|list| list.is_due(now));
        match due {
            _ if !may(Some(role), deed) => {
                let told = match role {
                    Role::Registry => "We are on the list as a registry, and cannot call for help",
                    Role::Site => "We are on the list as a site, and cannot be a registry",
                };
                ("out", told.to_owned())
            }
            Some(list) => {
                let expires = list.list().expires;
                let told = format!("The list ends on {expires}: its authority should renew it");
                ("due", told)
            }
            None => ("ok", String::new()),
        }
    }
}
