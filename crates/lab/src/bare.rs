//! The bare loop: the least that a web server can do for a request, as a yardstick.
//!
//! `cargo xtask bench peers` sets every server beside it. It reads a request head with a parser,
//! and writes a head and a body that were made at its start; nothing else. It has no timeouts, no
//! metering, no limits and no log, so nobody may run it as a server: what it needs for a request is
//! the practical limit of an event loop over this kernel's sockets, and the rest of any server's
//! time is what that server's own work costs.
//!
//! The loop over epoll is here. The same over io_uring needs `unsafe`, so it stands where that may
//! stand: `crates/net/examples/bare_uring.rs`.

mod epoll;
mod pages;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use pages::Pages;

/// What `levee-lab bare` is told.
#[derive(Clone, Debug, Args)]
pub struct BareArguments {
    /// Folder whose files are served from memory; read once.
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Serves until it is killed; returns only when that is impossible.
pub fn run(arguments: &BareArguments) -> ExitCode {
    let Err(error) = serve(arguments);
    eprintln!("levee-lab: the bare loop ended: {error}");
    ExitCode::FAILURE
}

fn serve(arguments: &BareArguments) -> io::Result<std::convert::Infallible> {
    let pages = Pages::read(&arguments.folder)?;
    let server = epoll::Loop::bind(arguments.listen, &pages)?;
    println!("bare loop: ready on {}", server.address());
    io::stdout().flush()?;
    server.run()
}
