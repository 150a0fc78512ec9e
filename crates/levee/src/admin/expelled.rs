//! Forgiving at the admin address: `POST /-/forgive?member=www.example.net` takes a member off the
//! list of the expelled. Who is on it stands in the status.

use std::sync::Arc;

use hyper::StatusCode;
use levee_vocab::HostName;
use tokio::task::spawn_blocking;

use super::StatusSource;
use super::routes::{Answer, TEXT, whole};

/// Takes a member off the list.
///
/// Cancel safety: once begun it is done, whoever still listens.
pub(super) async fn forgive(query: Option<&str>, source: Arc<dyn StatusSource>) -> Answer {
    let member = query.and_then(|query| query.strip_prefix("member="));
    let member: Option<HostName> = member.and_then(|member| member.parse().ok());
    let Some(member) = member else {
        let told = "give member=www.example.net, the name of a member\n";
        return whole(StatusCode::BAD_REQUEST, TEXT, told);
    };
    // The list goes to the disk.
    match spawn_blocking(move || source.forgive(&member)).await {
        Ok(Ok(sentence)) => whole(StatusCode::OK, TEXT, sentence + "\n"),
        Ok(Err(complaint)) => whole(StatusCode::NOT_FOUND, TEXT, complaint + "\n"),
        Err(error) => whole(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("cannot forgive: {error}\n"),
        ),
    }
}
