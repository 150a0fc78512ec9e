//! The engine over real sockets, with plans made by hand.
#![allow(clippy::unwrap_used)]

mod arrivals;
mod challenges;
mod copies;
mod crawlers;
mod drill;
mod files;
mod framing;
mod http2;
mod http2_attacks;
mod link;
mod orphans;
mod parts;
mod publishing;
mod purge;
mod redirects;
mod rescue;
mod support;
mod tls;
mod trailers;
mod tunnels;
mod unix;
mod unkept;
mod upstream;
mod visitors;
mod way_back;
