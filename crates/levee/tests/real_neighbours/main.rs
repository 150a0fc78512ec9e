//! The real server between real neighbours: HAProxy and nginx in front of it and behind it, curl
//! and nghttp as visitors. Who the visitor is, sockets in the file system, what comes behind bodies
//! and before heads.
#![allow(clippy::unwrap_used)]

#[path = "../support/program.rs"]
mod program;
mod proxy_protocol;
mod stage;
mod trailers;
mod unix_sockets;
