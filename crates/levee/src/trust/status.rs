//! How we stand in a closed community: for the status page, and for the log.

use std::time::Duration;

use levee_observe::{TrustRefusal, TrustStatus};
use levee_trust::{Deed, NotAMember, Role, Roster, SignedList, may};

use super::{Trust, accusations, unix_now};

/// How we stand, with a sentence for the operator where something is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Members take us for one of them.
    Member,
    /// They do, until the list ends, and that is soon.
    Due(String),
    /// We know nothing yet, which is how each first start begins.
    Waiting(String),
    /// They do not.
    Out(String),
}

impl Standing {
    /// The same after `waited` since the start: what is not normal any more is a lack.
    pub(super) fn after(self, waited: Duration) -> Self {
        match self {
            Self::Waiting(cause) if waited >= LIST_WAIT => Self::Out(cause),
            Self::Member | Self::Due(_) | Self::Waiting(_) | Self::Out(_) => self,
        }
    }
}

impl Trust {
    /// How we stand in the `role` that we are started for; none in an open community.
    pub fn status(&self, role: Role) -> Option<TrustStatus> {
        let mut status = self.roster(|roster| self.of_list(roster, role))?;
        let refused = self.denied.all().into_iter();
        status.refused = refused
            .map(|(cause, one)| TrustRefusal {
                cause: cause.to_owned(),
                count: one.count,
                last: one.last,
                at: one.at.0 / 1000,
            })
            .collect();
        status.accusations = self.said_now(|said| accusations(said));
        status.list_trouble = self.list_trouble().unwrap_or_default();
        Some(status)
    }

    /// Why members do not take us for one of them, in a sentence; none where they do.
    pub fn exclusion(&self, role: Role) -> Option<String> {
        match self.roster(|roster| self.standing(roster, role))? {
            Standing::Waiting(cause) | Standing::Out(cause) => Some(cause),
            Standing::Member | Standing::Due(_) => None,
        }
    }

    fn of_list(&self, roster: &Roster, role: Role) -> TrustStatus {
        let own = self.identity.key();
        let list = roster.newest().map(SignedList::list);
        let (state, cause) = match self.standing(roster, role) {
            Standing::Member => ("ok", String::new()),
            Standing::Due(cause) => ("due", cause),
            Standing::Waiting(cause) | Standing::Out(cause) => ("out", cause),
        };
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

    pub(super) fn standing(&self, roster: &Roster, wanted: Role) -> Standing {
        let now = unix_now();
        let key = self.identity.key();
        let found = match &self.name {
            Some(name) => roster.check(name, &key, now),
            None => roster.who(&key, now).map(|(_, role)| role),
        };
        let role = match found {
            Ok(role) => role,
            Err(NotAMember::UnknownKey(key)) => {
                let list = roster.serial();
                return Standing::Out(format!(
                    "We are no member: our key {key} is not on list {list}; the authority puts it \
                     there by `levee community add`"
                ));
            }
            Err(NotAMember::WrongName { said, is }) => {
                return Standing::Out(format!(
                    "We are no member: this site says that it is {said}, but its key is that of \
                     {is}"
                ));
            }
            Err(why) => {
                let cause = format!("We are no member: {why}");
                return match why == NotAMember::NoList {
                    true => Standing::Waiting(cause),
                    false => Standing::Out(cause),
                };
            }
        };
        let (deed, lack) = match wanted {
            Role::Site => (Deed::CallForHelp, "cannot call for help"),
            Role::Registry => (Deed::AnswerSearches, "cannot be a registry"),
        };
        if !may(Some(role), deed) {
            let role = role.text();
            return Standing::Out(format!("We are on the list as a {role}, and {lack}"));
        }
        match roster.newest().filter(|list| list.is_due(now)) {
            Some(list) => {
                let expires = list.list().expires;
                Standing::Due(format!(
                    "The list ends on {expires}: its authority should renew it"
                ))
            }
            None => Standing::Member,
        }
    }
}

/// Registries that are started with us have their list by then, and every one has been asked.
const LIST_WAIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_not_there_yet_is_normal_for_a_while() {
        let waiting = Standing::Waiting("no list".to_owned());
        let short = LIST_WAIT - Duration::from_secs(1);
        assert_eq!(waiting.clone().after(short), waiting);
        assert_eq!(
            waiting.after(LIST_WAIT),
            Standing::Out("no list".to_owned())
        );
        assert_eq!(Standing::Member.after(LIST_WAIT), Standing::Member);
    }
}
