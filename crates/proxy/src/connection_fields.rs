//! Which fields of a message belong to one connection, and so end at its other end.
//!
//! Everybody who passes messages on asks here, whichever way they go and whichever protocol they
//! came by: heads, interim responses, requests, what HTTP/2 may not carry. Fields that one
//! direction drops or rewrites for other reasons stand with whoever does that.

/// Fields that always do.
//= RFC 9110 section 7.6.1: "Intermediaries SHOULD remove or replace fields that are known to
// require removal before forwarding, whether or not they appear as a connection-option"
const ALWAYS: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Whether a field of this name always does, in whatever case it is written.
pub(crate) fn is_of_connection(name: &str) -> bool {
    ALWAYS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The fields of one message that do.
#[derive(Debug)]
pub(crate) struct ConnectionFields<'a> {
    named: Vec<&'a [u8]>,
}

impl<'a> ConnectionFields<'a> {
    /// Those of a message with these `Connection` fields.
    //= RFC 9110 section 7.6.1: "for each connection-option in this field, remove any header or
    // trailer field(s) from the message with the same name as the connection-option"
    pub fn of(connection: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let members = connection.into_iter().flat_map(members);
        Self {
            named: members.collect(),
        }
    }

    /// Whether a field of this name is one of them, in whatever case it is written.
    pub fn contains(&self, name: &str) -> bool {
        let is_named = |other: &&[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        is_of_connection(name) || self.named.iter().any(is_named)
    }
}

/// Whether a `TE` field with this value says that trailers are welcome (RFC 9110 section 10.1.4).
pub(crate) fn welcomes_trailers(te: &[u8]) -> bool {
    members(te).any(|member| member.eq_ignore_ascii_case(b"trailers"))
}

/// The members of a list of words.
fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    members.filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_connection_is_known_or_named() {
        let fields = ConnectionFields::of([&b"close, X-Hop"[..], b"", b" ,\tETag "]);
        for name in ["Keep-Alive", "te", "x-hop", "etag", "close", "Connection"] {
            assert!(fields.contains(name), "{name}");
        }
        for name in ["", "x-ho", "date", "trailer", "content-length"] {
            assert!(!fields.contains(name), "{name}");
        }
        assert!(!is_of_connection("x-hop"));
    }

    #[test]
    fn trailers_are_welcome_to_those_who_say_so() {
        for te in ["trailers", "gzip;q=0.5, Trailers", "trailers,deflate"] {
            assert!(welcomes_trailers(te.as_bytes()), "{te}");
        }
        for te in ["", "gzip", "trailersx", "trailers;q=0"] {
            assert!(!welcomes_trailers(te.as_bytes()), "{te}");
        }
    }
}
