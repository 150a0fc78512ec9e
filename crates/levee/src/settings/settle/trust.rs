//! The part of `[community]` that says whom this server trusts.

use std::path::PathBuf;

use levee_trust::PublicKey;

use super::values::Values;
use crate::settings::read::Complaint;

/// Whom this server trusts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrustSettings {
    /// File of its own key; without one it has another key after each start.
    pub identity: Option<PathBuf>,
    /// Who says who is a member; none in an open community.
    pub authority: Option<PublicKey>,
    /// The member list, where the operator puts it there.
    pub members: Option<PathBuf>,
}

pub(super) fn trust(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> TrustSettings {
    let state = values.path("state.folder");
    let by_default = state.map(|folder| folder.join(IDENTITY_FILE));
    let settings = TrustSettings {
        identity: values.path("community.identity").or(by_default),
        authority: authority(values, complaints),
        members: values.path("community.members"),
    };
    let mut complain = |setting: &str, text: &str| {
        let (line, text) = (values.file.line(setting), text.to_owned());
        complaints.push(Complaint { line, text });
    };
    if settings.authority.is_some() && settings.identity.is_none() {
        let text = "community.authority: a member needs a key that outlives a restart; give \
                    community.identity = \"identity.key\", or state.folder";
        complain("community.authority", text);
    }
    let is_given = values.file.given("community.authority").is_some();
    if settings.members.is_some() && !is_given {
        let text = "community.members: means nothing without community.authority, the key that \
                    signed the list";
        complain("community.members", text);
    }
    settings
}

fn authority(values: &Values<'_>, complaints: &mut Vec<Complaint>) -> Option<PublicKey> {
    let text = values.text("community.authority");
    if text.is_empty() {
        return None;
    }
    match text.parse() {
        Ok(key) => Some(key),
        Err(error) => {
            complaints.push(Complaint {
                line: values.file.line("community.authority"),
                text: format!(
                    "community.authority: {error}; `levee community init` and `levee community \
                     verify` print it"
                ),
            });
            None
        }
    }
}

const IDENTITY_FILE: &str = "identity.key";
