//! Visitors of a real community: curl, wrk, a browser and a hand-written client against real
//! processes of the real binary, most of them in the middle of a crowd.
//!
//! Each test has a community of its own, so they can run at the same time. What they look at is in
//! the files of the folder beside this one, by theme.
#![allow(clippy::unwrap_used)]

#[path = "real_visitors/application.rs"]
mod application;
#[path = "../../levee/tests/browser.rs"]
mod browser;
#[path = "real_visitors/by_http2.rs"]
mod by_http2;
#[path = "real_visitors/command_line.rs"]
mod command_line;
#[path = "real_visitors/helping.rs"]
mod helping;
#[path = "real_visitors/http.rs"]
mod http;
#[path = "real_visitors/in_the_crowd.rs"]
mod in_the_crowd;
#[path = "real_visitors/logs.rs"]
mod logs;
#[path = "real_visitors/stage.rs"]
mod stage;
#[path = "real_visitors/watching.rs"]
mod watching;
