//! What protocol a request wants to go on with (RFC 9110 section 7.8).
//!
//! Only WebSocket is ever passed on. Everything else in `Upgrade` is ignored, as the RFC allows: a
//! tunnel for `h2c` would carry requests past all that this server checks.

use super::{BodyLength, Version};

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// Nothing else, or nothing that we would pass on.
    None,
    /// `Upgrade: websocket` of a GET without a body, named by `Connection`.
    WebSocket,
}

/// What stands in the fields of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish<'b> {
    pub upgrade: Option<&'b [u8]>,
    /// `Connection: upgrade`.
    pub is_named: Option<()>,
}

impl Wish<'_> {
    /// What of it is heard.
    pub fn settle(&self, method: &str, version: Version, body: BodyLength) -> Upgrade {
        let (Some(protocols), Some(())) = (self.upgrade, self.is_named) else {
            return Upgrade::None;
        };
        //= RFC 9110 section 7.8: "A server MUST ignore an Upgrade header field that is received in
        // an HTTP/1.0 request." HTTP/2 has no Upgrade at all (RFC 9113 section 8.6).
        if method != "GET" || version != Version::Http11 || body != BodyLength::None {
            return Upgrade::None;
        }
        let is_websocket =
            |protocol: &[u8]| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket");
        match protocols.split(|&byte| byte == b',').any(is_websocket) {
            true => Upgrade::WebSocket,
            false => Upgrade::None,
        }
    }
}
