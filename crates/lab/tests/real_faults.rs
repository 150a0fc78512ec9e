//! Faults of real processes of the real binary: killed, frozen, cut off, out of disk, stopped and
//! reloaded, each in the middle of a crowd.
//!
//! The same faults are played under the virtual clock in `scenarios/`; here the promises are read
//! from outside, from what visitors get and when they get it. Each test has a community of its own,
//! so they can run at the same time. What happens in them is in the files of the folder beside this
//! one, by theme.
#![allow(clippy::unwrap_used)]

#[path = "real_faults/copies.rs"]
mod copies;
#[path = "real_faults/crowd.rs"]
mod crowd;
#[path = "real_faults/deaths.rs"]
mod deaths;
#[path = "real_faults/disk.rs"]
mod disk;
#[path = "real_faults/dns.rs"]
mod dns;
#[path = "real_faults/drill.rs"]
mod drill;
#[path = "real_faults/far_network.rs"]
mod far_network;
#[path = "real_faults/homes.rs"]
mod homes;
#[path = "real_faults/http.rs"]
mod http;
#[path = "real_faults/integrity.rs"]
mod integrity;
#[path = "real_faults/link.rs"]
mod link;
#[path = "../../dns/tests/real_bind/named.rs"]
mod named;
#[path = "real_faults/network.rs"]
mod network;
#[path = "real_faults/operator.rs"]
mod operator;
#[path = "real_faults/own_world.rs"]
mod own_world;
#[path = "real_faults/purge.rs"]
mod purge;
#[path = "real_faults/rewritten.rs"]
mod rewritten;
#[path = "real_faults/roles.rs"]
mod roles;
#[path = "real_faults/silence.rs"]
mod silence;
#[path = "real_faults/stage.rs"]
mod stage;
#[path = "real_faults/time.rs"]
mod time;
#[path = "real_faults/way_back.rs"]
mod way_back;
