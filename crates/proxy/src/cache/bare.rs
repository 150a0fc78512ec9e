//! The object cache without requests around it: for measuring what it keeps and what it weighs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use levee_vocab::{HostName, Timestamp};

use super::{Body, Cache, CacheKey, Found, Stored};
use crate::cacheability::{Credentials, Keeping, Sharing};
use crate::flight::{ObjectKey, ObjectRef, ResponseHead, Space, SpaceRef};
use crate::tags::Tags;

const NOBODY: [(Bytes, Bytes); 0] = [];

/// See the head of this file.
pub struct BareCache {
    cache: Cache,
    /// Whose objects, and how visitors come, are the same for all.
    site: HostName,
}

/// As long as the usual.
const BASE: &[u8] = b"https://www.example.org";

impl BareCache {
    /// An empty cache of at most `limit` bytes, for objects of at most `object_max`.
    pub fn new(limit: u64, object_max: u64) -> Self {
        Self {
            cache: Cache::new(limit, object_max, None),
            site: "www.example.org".parse().expect("a host name"),
        }
    }

    /// Whether it has the object. Counts as a request for it.
    pub fn ask(&self, target: &[u8]) -> bool {
        let object = ObjectRef {
            space: SpaceRef::Own(&self.site),
            base: BASE,
            target,
        };
        let found = self.cache.find(object, NOBODY.as_slice(), Timestamp::ZERO);
        matches!(found, Found::Object(_))
    }

    /// Keeps an object with these header lines, where there is room for it.
    pub fn keep(&self, target: &[u8], lines: Bytes, body: Bytes) {
        let head = ResponseHead {
            reading: crate::flight::Reading::Unsaid,
            status: StatusCode::OK,
            lines,
            tags: Tags::default(),
            forwarding: crate::flight::Forwarding::unkept(crate::flight::Why::UriMiss),
            length: Some(body.len() as u64),
            age_initial: Duration::ZERO,
            received: Timestamp::ZERO,
        };
        let keeping = Keeping {
            lifetime: Duration::from_secs(60),
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            sharing: Sharing(Credentials::Cookie),
            vary: None,
            unshared: Vec::new(),
        };
        let stored = Stored::new(Arc::new(head), Body::Memory(body), &keeping);
        let key = CacheKey::plain(ObjectKey {
            space: Space::Own(self.site.clone()),
            base: Bytes::from_static(BASE),
            target: Bytes::copy_from_slice(target),
        });
        // What is larger than the cache may hold is not kept, as in service.
        let _ = self.cache.insert(key, Arc::new(stored));
    }

    /// Bytes that it counts, and the limit.
    pub fn bytes(&self) -> (u64, u64) {
        self.cache.bytes()
    }
}
