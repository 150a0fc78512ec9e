//! The mark of an origin (H5): with which it redirects a visitor once more who came back with a
//! word that it does not believe, or with none.
//!
//! It looks like a word of a rescue server, and is signed with a key that this process keeps to
//! itself. Who brings it back within a minute is answered and not redirected again; and since it
//! was made for one rescue server, it tells who has sent the visitor back. An alias is never given
//! to another, so a mark cannot be taken for one to somebody else.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::{constant_time, hmac};
use levee_control::RoutePlan;
use levee_vocab::{LinkId, Timestamp};
use levee_wire::{BACK_MAC_BYTES, BackReason, BackToken};

use crate::back_keys::{OLD_AFTER, Url, age, cut_sum};

/// The key of this process, and since when it has it. The same on every core.
#[derive(Clone, Debug)]
pub(crate) struct OwnKey {
    mac: hmac::Key,
    since: Timestamp,
}

/// The marks of one core.
#[derive(Debug)]
pub(crate) struct Marking {
    own: OwnKey,
    /// The rescue servers, in the order of the plan.
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    link: LinkId,
    alias: String,
    hint: u8,
}

impl OwnKey {
    /// A new key.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn generate(now: Timestamp) -> Result<Self, Unspecified> {
        Ok(Self {
            mac: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?,
            since: now,
        })
    }

    /// Seven bits by which the rescue server is found whose alias this is.
    fn hint(&self, alias: &str) -> u8 {
        let mut context = hmac::Context::with_key(&self.mac);
        context.update(b"levee-back mark hint");
        context.update(alias.as_bytes());
        context.sign().as_ref()[0] & BackToken::HINT_MASK
    }

    fn sum(&self, token: &BackToken, alias: &str, url: Url<'_>) -> [u8; BACK_MAC_BYTES] {
        // No name has a slash, and a path begins with one.
        let pieces = [
            b"levee-back mark",
            &token.claim()[..],
            alias.as_bytes(),
            b"/",
            url.host.as_bytes(),
            url.path.as_bytes(),
        ];
        cut_sum(&self.mac, &pieces)
    }
}

impl Marking {
    /// With nobody to redirect to.
    pub const fn new(own: OwnKey) -> Self {
        Self {
            own,
            targets: Vec::new(),
        }
    }

    /// Redirects by `plan` from now on.
    pub fn adopt(&mut self, plan: &RoutePlan) {
        let targets = plan.redirect.iter().flat_map(|redirect| &redirect.targets);
        let is_same = |(one, target): (&Target, &levee_control::Target)| {
            one.link == target.link && one.alias == target.alias.host.as_str()
        };
        let count = targets.clone().count();
        if count == self.targets.len() && self.targets.iter().zip(targets.clone()).all(is_same) {
            return;
        }
        let made = targets.map(|target| {
            let alias = target.alias.host.as_str();
            Target {
                link: target.link,
                alias: alias.to_owned(),
                hint: self.own.hint(alias),
            }
        });
        self.targets = made.collect();
    }

    /// The mark of a visitor of `url` who is redirected to the rescue server at `index` of the
    /// plan, and the link to that.
    pub fn mark(&self, now: Timestamp, index: usize, url: Url<'_>) -> Option<(LinkId, BackToken)> {
        let target = self.targets.get(index)?;
        let mut token = BackToken {
            reason: BackReason::Missing,
            key_hint: target.hint,
            age: age(self.own.since, now),
            mac: [0; BACK_MAC_BYTES],
        };
        token.mac = self.own.sum(&token, &target.alias, url);
        Some((target.link, token))
    }

    /// The link of the rescue server to which we redirected a visitor of `url` with this mark a
    /// moment ago; none where it is no mark of ours, or an old one.
    pub fn returned(&self, now: Timestamp, token: &BackToken, url: Url<'_>) -> Option<LinkId> {
        let late = age(self.own.since, now)
            .wrapping_sub(token.age)
            .cast_signed();
        if !(0..=OLD_AFTER).contains(&late) {
            return None;
        }
        let mut hinted = self.targets.iter().filter(|one| one.hint == token.key_hint);
        let made = |one: &&Target| {
            let mac = self.own.sum(token, &one.alias, url);
            constant_time::verify_slices_are_equal(&mac, &token.mac).is_ok()
        };
        hinted.find(made).map(|one| one.link)
    }
}

#[cfg(test)]
mod tests {
    use levee_control::{Law, RedirectPlan, Redirects, Target as PlanTarget};
    use levee_vocab::{ByteRate, WebAddress};

    use super::*;

    const URL: Url<'static> = Url {
        host: "origin.example",
        path: "/a",
    };

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn plan(aliases: &[&str]) -> RoutePlan {
        let target = |(index, alias): (usize, &&str)| PlanTarget {
            tls: None,
            link: LinkId::Outbound(index as u64),
            slot: index as u8,
            alias: WebAddress {
                host: alias.parse().unwrap(),
                port: 80,
            },
            address: [192, 0, 2, 1].into(),
            rate: ByteRate::from_kilobytes(100),
        };
        RoutePlan {
            redirect: Some(RedirectPlan {
                redirects: Redirects::On,
                law: Law::Combined,
                early: ByteRate::ZERO,
                hot: [].into(),
                direct: ByteRate::ZERO,
                direct_ceiling: ByteRate::ZERO,
                usable: ByteRate::ZERO,
                usable_share: 0.8,
                connection_overhead: 358,
                large_file: 100_000,
                targets: aliases.iter().enumerate().map(target).collect(),
            }),
            ..RoutePlan::default()
        }
    }

    #[test]
    fn a_mark_tells_for_a_minute_whom_it_was_made_for_and_nothing_else_does() {
        let mut marking = Marking::new(OwnKey::generate(at(3)).unwrap());
        assert_eq!(marking.mark(at(9), 0, URL), None);
        marking.adopt(&plan(&["a-vh1.rescue.example", "b-vh1.rescue.example"]));
        for since in [9, 300_000] {
            let (link, token) = marking.mark(at(since), 1, URL).unwrap();
            assert_eq!(link, LinkId::Outbound(1));
            let told = |seconds| marking.returned(at(since + seconds), &token, URL);
            assert_eq!([told(0), told(30), told(56)], [Some(link); 3]);
            assert_eq!([told(70), told(100_000)], [None; 2]);
            let elsewhere = Url { path: "/b", ..URL };
            assert_eq!(marking.returned(at(since), &token, elsewhere), None);
            let forged = BackToken {
                age: token.age.wrapping_sub(1),
                ..token
            };
            assert_eq!(marking.returned(at(since), &forged, URL), None);
        }
        let (_, token) = marking.mark(at(9), 0, URL).unwrap();
        let mut other = Marking::new(OwnKey::generate(at(3)).unwrap());
        other.adopt(&plan(&["a-vh1.rescue.example"]));
        assert_eq!(other.returned(at(9), &token, URL), None, "another process");
        marking.adopt(&plan(&["c-vh1.rescue.example"]));
        assert_eq!(marking.returned(at(9), &token, URL), None, "it is gone");
    }
}
