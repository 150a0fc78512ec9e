//! Forgiving at the admin address: `POST /-/forgive?member=www.example.net` takes a member off the
//! list of the expelled. Who is on it stands in the status.

use hyper::StatusCode;
use levee_vocab::HostName;

use super::StatusSource;
use super::routes::{Answer, TEXT, whole};

/// Takes a member off the list.
pub(super) fn forgive(query: Option<&str>, source: &dyn StatusSource) -> Answer {
    let member = query.and_then(|query| query.strip_prefix("member="));
    let member: Option<HostName> = member.and_then(|member| member.parse().ok());
    let Some(member) = member else {
        let told = "give member=www.example.net, the name of a member\n";
        return whole(StatusCode::BAD_REQUEST, TEXT, told);
    };
    match source.forgive(&member) {
        Ok(sentence) => whole(StatusCode::OK, TEXT, sentence + "\n"),
        Err(complaint) => whole(StatusCode::NOT_FOUND, TEXT, complaint + "\n"),
    }
}
