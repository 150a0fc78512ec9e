//! Whether a response would be kept as a copy. The origin asks before it sends one, the rescue
//! server before it takes one; both by the same rules.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::super::response::{body_end, content_length};
use crate::cache::KeptBy;
use crate::cacheability::{Answer, Credentials, Decision, Policy, decide};
use crate::flight::Purpose;

/// Most lines of a head that is looked at.
const LINES_MAX: usize = 128;

/// What the beginning of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushJudgement {
    /// Its head is not there yet.
    GoesOn,
    /// A rescue server may keep it and give it to everybody.
    MayBeKept {
        /// Bytes of its body, where it says so.
        length: Option<u64>,
    },
    /// It is for one visitor, for a moment, or no whole page; or no response at all.
    NotToBeKept,
}

/// Judges a response by its first bytes, as they went over a connection.
pub fn judge_push(bytes: &[u8]) -> PushJudgement {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut head = httparse::Response::new(&mut lines);
    match head.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return PushJudgement::GoesOn,
        Err(_) => return PushJudgement::NotToBeKept,
    }
    let mut headers = HeaderMap::new();
    for line in head.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) else {
            return PushJudgement::NotToBeKept;
        };
        headers.append(name, value);
    }
    let status = head.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
    let answer = Answer {
        status,
        headers: &headers,
        body_end: body_end(status, &headers),
        arrived: SystemTime::now(),
        credentials: Credentials::None,
    };
    match may_be_a_copy(&answer, &policy()) {
        true => PushJudgement::MayBeKept {
            length: content_length(&headers),
        },
        false => PushJudgement::NotToBeKept,
    }
}

/// Whether everybody may be given the response for a while: a whole page that varies by nothing but
/// its coding. One that varies by more would be kept for whoever sends the very fields that the
/// origin sent, and for nobody else.
pub(super) fn may_be_a_copy(answer: &Answer<'_>, policy: &Policy) -> bool {
    answer.status == StatusCode::OK
        && varies_by_coding_only(answer.headers)
        && match decide(answer, policy) {
            Decision::Store(keeping) => !keeping.lifetime.is_zero(),
            Decision::ShareOnce { .. } | Decision::PassWithCredentials | Decision::Pass => false,
        }
}

/// Who may keep the response to a visitor without credentials that the cache of its own site does
/// not keep. An error says nothing of what comes when it is over.
pub(in crate::fetch) fn kept_by(answer: &Answer<'_>) -> KeptBy {
    let is_error = answer.status.is_client_error() || answer.status.is_server_error();
    let is_usual = answer.credentials == Credentials::None && !is_error;
    match is_usual && decide(answer, &policy()) == Decision::Pass {
        true => KeptBy::Nobody,
        false => KeptBy::Others,
    }
}

fn varies_by_coding_only(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::VARY).iter();
    let mut names = values.flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    names.all(|name| {
        // A visitor who follows a link or loads a picture sends no Origin, as we do.
        let known = [header::ACCEPT_ENCODING.as_str(), header::ORIGIN.as_str()];
        let is = |known: &&str| name.trim_ascii().eq_ignore_ascii_case(known.as_bytes());
        name.trim_ascii().is_empty() || known.iter().any(is)
    })
}

/// That of a rescue server, as far as an origin can know it: any lifetime will do.
const fn policy() -> Policy {
    Policy {
        purpose: Purpose::Rescue,
        ttl: Duration::from_secs(1),
        heuristic_max: Duration::from_secs(1),
        negative: Duration::ZERO,
        stale_if_error: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_judged_as_soon_as_its_head_is_there() {
        let head = |fields: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{fields}\r\n");
        let judge = |text: String| judge_push(text.as_bytes());
        let kept = PushJudgement::MayBeKept { length: Some(5) };
        assert_eq!(judge(head("")), kept);
        assert_eq!(judge(head("Vary: accept-encoding,Origin\r\n") + "he"), kept);
        for fields in [
            "Vary: *\r\n",
            "Vary: Accept-Encoding\r\nVary: Cookie\r\n",
            "Set-Cookie: a=b\r\n",
            "Cache-Control: no-cache\r\n",
            "Cache-Control: private\r\n",
        ] {
            assert_eq!(judge(head(fields)), PushJudgement::NotToBeKept, "{fields}");
        }
        for text in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "hello\r\n\r\n",
        ] {
            assert_eq!(judge_push(text.as_bytes()), PushJudgement::NotToBeKept);
        }
        assert_eq!(
            judge_push(b"HTTP/1.1 200 OK\r\nContent-Le"),
            PushJudgement::GoesOn
        );
        assert_eq!(judge_push(b""), PushJudgement::GoesOn);
    }
}
