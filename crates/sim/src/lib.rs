//! A world of many sites under a virtual clock, from one seed.
//!
//! [`World`] holds sites, a registry, a network and crowds of visitors. Each site runs the same
//! `Brain` and `Gate` as the server, so what is simulated is what ships. Two read it: the lab
//! plays stories, storms and experiments in it, and `levee replay` plays a site's own log.
//!
//! It has no clock, socket, file or thread: whoever holds a world moves its time.

pub mod replay;
mod world;

pub use world::{
    RegistryState, SiteId, World, cache, crowd, event, faults, fetch, links, meter, network, pacer,
    path, queue, registry, request, rescue, shell, site, trace, visitors, watch,
};
