//! Who vouches for a word that a visitor brings back (H5): a MAC with the key of the rescue.
//!
//! Origin and rescue server share one secret, the fetch key of the SOS. A word is good for one URL,
//! for one rescue, and for about a minute: its age is told in the age of the rescue, which both
//! have counted since they agreed on it, so their calendars need not agree. Nobody else can make a
//! word that the origin learns from, and one that is shown again soon says nothing for long.
//!
//! HMAC-SHA-256 (RFC 2104) cut to 72 bits, by the library that does the TLS. What is signed begins
//! with a name of its own, so that no other use of the key can be taken for this one.

use std::collections::BTreeMap;

use aws_lc_rs::{constant_time, hmac};
use levee_control::{OriginRoute, RoutePlan};
use levee_vocab::{FetchKey, LinkId, Timestamp};
use levee_wire::{BACK_MAC_BYTES, BackReason, BackToken};

/// Steps for which a word is good: a minute for visitors on slow networks.
pub(crate) const OLD_AFTER: i16 = 15;
/// Steps by which the rescue server's count may be ahead: one begins when it says yes, the other
/// when the answer has come.
const AHEAD_MAX: i16 = 8;

/// The keys of one core: those of our rescue servers, and since when we rescue others.
#[derive(Debug, Default)]
pub(crate) struct BackKeys {
    ours: Vec<RescueKey>,
    given: BTreeMap<LinkId, Timestamp>,
}

/// What a rescue server of ours signs with.
#[derive(Debug)]
struct RescueKey {
    link: LinkId,
    key: FetchKey,
    mac: hmac::Key,
    hint: u8,
    since: Timestamp,
}

/// The URL that a word is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Url<'a> {
    /// Name of the origin, in lower case and without port.
    pub host: &'a str,
    pub path: &'a str,
}

impl BackKeys {
    /// Knows the rescues of `plan` from now on; those that it knew have begun when they began.
    pub fn adopt(&mut self, now: Timestamp, plan: &RoutePlan) {
        let mut before = std::mem::take(&mut self.ours);
        for &(link, key) in &plan.fetch_keys {
            let known = before
                .iter()
                .position(|one| one.link == link && one.key == key);
            self.ours.push(match known {
                Some(index) => before.swap_remove(index),
                None => RescueKey::new(link, key, now),
            });
        }
        let before = std::mem::take(&mut self.given);
        let origins = plan.hosts.origins.iter();
        let signing = origins.filter(|origin| origin.key.is_some());
        self.given = signing
            .map(|origin| {
                let since = before.get(&origin.link).copied();
                (origin.link, since.unwrap_or(now))
            })
            .collect();
    }

    /// Whether a word can be signed for `origin`.
    pub fn can_sign(&self, origin: &OriginRoute) -> bool {
        origin.key.is_some() && self.given.contains_key(&origin.link)
    }

    /// Signs that a visitor of `path` is sent back to `origin`.
    pub fn sign(
        &self,
        now: Timestamp,
        origin: &OriginRoute,
        path: &str,
        reason: BackReason,
    ) -> Option<BackToken> {
        let mac = mac_key(&origin.key?);
        let mut token = BackToken {
            reason,
            key_hint: hint(&mac),
            age: age(*self.given.get(&origin.link)?, now),
            mac: [0; BACK_MAC_BYTES],
        };
        let host = origin.origin.host.as_str();
        token.mac = sum(&mac, &token, Url { host, path });
        Some(token)
    }

    /// The link of the rescue server that has signed `token` for `url` a moment ago; none where
    /// that cannot be believed.
    pub fn signer(&self, now: Timestamp, token: &BackToken, url: Url<'_>) -> Option<LinkId> {
        let hinted = self.ours.iter().filter(|one| one.hint == token.key_hint);
        hinted
            .filter(|one| {
                let late = age(one.since, now).wrapping_sub(token.age).cast_signed();
                let mac = sum(&one.mac, token, url);
                (-AHEAD_MAX..=OLD_AFTER).contains(&late)
                    && constant_time::verify_slices_are_equal(&mac, &token.mac).is_ok()
            })
            .map(|one| one.link)
            .next()
    }
}

impl RescueKey {
    fn new(link: LinkId, key: FetchKey, since: Timestamp) -> Self {
        let mac = mac_key(&key);
        Self {
            link,
            key,
            hint: hint(&mac),
            mac,
            since,
        }
    }
}

fn mac_key(key: &FetchKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes())
}

/// Seven bits that tell the keys of an origin's rescue servers apart, nearly always, and nothing
/// else of them.
fn hint(mac: &hmac::Key) -> u8 {
    let tag = hmac::sign(mac, b"levee-back key hint");
    tag.as_ref()[0] & BackToken::HINT_MASK
}

/// Steps since the rescue began, counted round.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> u16 {
    let steps = now.since(since).as_secs() / BackToken::AGE_STEP_SECONDS;
    (steps & u64::from(u16::MAX)) as u16
}

fn sum(mac: &hmac::Key, token: &BackToken, url: Url<'_>) -> [u8; BACK_MAC_BYTES] {
    // A name never has a slash and a path begins with one, so the pieces cannot be cut otherwise.
    let pieces = [
        b"levee-back word",
        &token.claim()[..],
        url.host.as_bytes(),
        url.path.as_bytes(),
    ];
    cut_sum(mac, &pieces)
}

/// The MAC of these pieces, one behind the other, cut to what a token has room for.
pub(crate) fn cut_sum(mac: &hmac::Key, pieces: &[&[u8]]) -> [u8; BACK_MAC_BYTES] {
    let mut context = hmac::Context::with_key(mac);
    for piece in pieces {
        context.update(piece);
    }
    let tag = context.sign();
    let mut cut = [0; BACK_MAC_BYTES];
    cut.copy_from_slice(&tag.as_ref()[..BACK_MAC_BYTES]);
    cut
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use levee_control::OriginPhase;
    use levee_vocab::WebAddress;

    use super::*;

    const LINK: LinkId = LinkId::Outbound(4);
    const URL: Url<'static> = Url {
        host: "origin.example",
        path: "/a",
    };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    /// A rescue server that rescues by `key` since the fifth second.
    fn rescue_server(key: Option<FetchKey>) -> (BackKeys, Arc<OriginRoute>) {
        let origin = Arc::new(OriginRoute {
            tls: None,
            slot: 1,
            link: LinkId::Inbound(1),
            origin: WebAddress {
                host: "origin.example".parse().unwrap(),
                port: 80,
            },
            address: ([127, 0, 0, 1], 80).into(),
            alias: "a-vh1.rescue.example".parse().unwrap(),
            key,
            ttl: Duration::from_secs(60),
            homes: None,
            misses: levee_vocab::Misses::Fetch,
            phase: OriginPhase::Live,
        });
        let mut plan = RoutePlan::default();
        plan.hosts.origins.push(Arc::clone(&origin));
        let mut keys = BackKeys::default();
        keys.adopt(at(5), &plan);
        keys.adopt(at(50), &plan);
        (keys, origin)
    }

    /// An origin whose rescue server has had `key` since the second 1006, by its clock.
    fn origin(key: FetchKey) -> BackKeys {
        let plan = RoutePlan {
            fetch_keys: vec![
                (LinkId::Outbound(3), FetchKey::from_bytes([8; 16])),
                (LINK, key),
            ],
            ..RoutePlan::default()
        };
        let mut keys = BackKeys::default();
        keys.adopt(at(1006), &plan);
        keys.adopt(at(1050), &plan);
        keys
    }

    fn signed(after: u64) -> BackToken {
        let (keys, origin) = rescue_server(Some(FetchKey::from_bytes([7; 16])));
        let token = keys.sign(at(5 + after), &origin, "/a", BackReason::Missing);
        token.unwrap()
    }

    #[test]
    fn a_word_is_believed_for_a_minute() {
        let keys = origin(FetchKey::from_bytes([7; 16]));
        for age in [0, 100, 270_000] {
            let token = signed(age);
            let link = |late| keys.signer(at(1006 + age + late), &token, URL);
            assert_eq!([link(0), link(30), link(56)], [Some(LINK); 3], "{age}");
            assert_eq!([link(70), link(100_000)], [None; 2], "{age}");
        }
        // A rescue server that began to count earlier is ahead.
        assert_eq!(keys.signer(at(1006), &signed(30), URL), Some(LINK));
        assert_eq!(keys.signer(at(1006), &signed(60), URL), None);
    }

    #[test]
    fn a_word_is_good_for_its_rescue_and_its_url_only() {
        let now = at(1106);
        let token = signed(100);
        let keys = origin(FetchKey::from_bytes([7; 16]));
        assert_eq!(keys.signer(now, &token, URL), Some(LINK));
        let elsewhere = [
            Url { path: "/b", ..URL },
            Url { path: "", ..URL },
            Url {
                host: "other.example",
                ..URL
            },
        ];
        for url in elsewhere {
            assert_eq!(keys.signer(now, &token, url), None, "{url:?}");
        }
        let changed = [
            BackToken {
                reason: BackReason::Busy,
                ..token
            },
            BackToken {
                age: token.age + 1,
                ..token
            },
            BackToken {
                mac: [0; BACK_MAC_BYTES],
                ..token
            },
        ];
        for token in changed {
            assert_eq!(keys.signer(now, &token, URL), None, "{token:?}");
        }
        let others = origin(FetchKey::from_bytes([9; 16]));
        assert_eq!(others.signer(now, &token, URL), None);
    }

    #[test]
    fn keys_whose_hints_meet_are_all_tried() {
        let key = FetchKey::from_bytes([7; 16]);
        let own = hint(&mac_key(&key));
        let other = (0..=u8::MAX)
            .map(|byte| FetchKey::from_bytes([byte; 16]))
            .find(|other| *other != key && hint(&mac_key(other)) == own);
        let plan = RoutePlan {
            fetch_keys: vec![(LinkId::Outbound(1), other.unwrap()), (LINK, key)],
            ..RoutePlan::default()
        };
        let mut keys = BackKeys::default();
        keys.adopt(at(1006), &plan);
        assert_eq!(keys.signer(at(1006), &signed(0), URL), Some(LINK));
    }

    #[test]
    fn without_a_key_nothing_is_signed() {
        let (keys, origin) = rescue_server(None);
        assert!(!keys.can_sign(&origin));
        assert_eq!(keys.sign(at(9), &origin, "/a", BackReason::Busy), None);
    }
}
