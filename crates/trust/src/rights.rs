//! Who may do what: the one table.
//!
//! TLS and signatures say who somebody is, the member list says in which role; this says what that
//! role may do. Everything that a peer can ask for stands here, so that a new message needs a row.

use crate::Role;

/// Something that one member does to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Asks for the newest member list, or hands in a newer one. The list is signed, so it does
    /// not matter who carries it.
    ExchangeLists,
    /// Offers itself, and takes its own offer back.
    Register,
    /// Asks a registry for offers, and for what members say of each other.
    Search,
    /// Says that another member altered what it delivered.
    Accuse,
    /// Calls for help, and is helped.
    CallForHelp,
    /// Answers a call for help.
    Rescue,
    /// Answers questions for offers.
    AnswerSearches,
    /// Tells another registry what it knows.
    SpreadEntries,
}

/// Whether somebody in `role` may do `deed`; without a role it is no member.
pub const fn may(role: Option<Role>, deed: Deed) -> bool {
    match (deed, role) {
        // A site that has just been added is unknown to a registry with an older list, and must
        // be able to bring the newer one.
        (Deed::ExchangeLists, _) => true,
        (_, None) => false,
        (Deed::Register | Deed::Accuse | Deed::CallForHelp | Deed::Rescue, Some(role)) => {
            match role {
                Role::Site => true,
                Role::Registry => false,
            }
        }
        (Deed::Search, Some(Role::Site | Role::Registry)) => true,
        (Deed::AnswerSearches | Deed::SpreadEntries, Some(role)) => match role {
            Role::Site => false,
            Role::Registry => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_may_only_carry_lists() {
        let deeds = [
            Deed::Register,
            Deed::Search,
            Deed::Accuse,
            Deed::CallForHelp,
            Deed::Rescue,
            Deed::AnswerSearches,
            Deed::SpreadEntries,
        ];
        assert!(deeds.into_iter().all(|deed| !may(None, deed)));
        assert!(may(None, Deed::ExchangeLists));
    }

    #[test]
    fn a_site_is_no_registry_and_a_registry_is_no_site() {
        assert!(may(Some(Role::Site), Deed::CallForHelp));
        assert!(!may(Some(Role::Registry), Deed::CallForHelp));
        assert!(may(Some(Role::Registry), Deed::SpreadEntries));
        assert!(!may(Some(Role::Site), Deed::SpreadEntries));
        assert!(!may(Some(Role::Site), Deed::AnswerSearches));
        assert!(!may(Some(Role::Registry), Deed::Accuse));
    }
}
