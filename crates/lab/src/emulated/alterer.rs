//! The face of a hostile rescue server: it stands before an honest one and alters a page on the
//! way.
//!
//! ```text
//!   visitors ──▶ alterer, port 80 of the host ──▶ levee, port 80 of loopback
//!            ◀── one word replaced             ◀──
//! ```
//!
//! Words are replaced by others of the same length, so nothing else has to be understood of HTTP:
//! lengths stay right, and so does every head. Which page it is, the word says. On the way there
//! the name of `Accept-Encoding` is replaced as well, since in what is compressed no word is found.
//! The server behind it learns who comes by the PROXY protocol.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

use crate::processes::LAB_READY;

/// What `levee-lab alter` is told.
#[derive(Clone, Debug, Args)]
pub struct AltererArguments {
    /// Where visitors come.
    #[arg(long)]
    listen: SocketAddr,
    /// The honest server behind it.
    #[arg(long)]
    to: SocketAddr,
}

/// What it looks for in pages.
pub const TRUTH: &str = "nobody else has this page";
/// What it says instead.
const LIE: &str = "send your money to Malory";
/// What it takes out of requests, and what it puts there.
const QUESTION: &str = "accept-encoding";
const NOTHING: &str = "x-never-said-so";

const _: () = assert!(TRUTH.len() == LIE.len() && QUESTION.len() == NOTHING.len());

/// Passes on what comes until it is ended.
pub fn run(arguments: &AltererArguments) -> ExitCode {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(serve(arguments)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("levee-lab alter: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: &AltererArguments) -> io::Result<()> {
    let listener = TcpListener::bind(arguments.listen).await?;
    println!("{LAB_READY}");
    loop {
        let (visitor, from) = listener.accept().await?;
        let (listen, to) = (arguments.listen, arguments.to);
        // Whoever leaves half-way has no need of the rest.
        tokio::spawn(async move { drop(relay(visitor, from, (listen, to)).await) });
    }
}

async fn relay(
    mut visitor: TcpStream,
    from: SocketAddr,
    (listen, to): (SocketAddr, SocketAddr),
) -> io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
    let (source, target) = (from.ip(), listen.ip());
    let header = format!(
        "PROXY {family} {source} {target} {} {}\r\n",
        from.port(),
        listen.port()
    );
    server.write_all(header.as_bytes()).await?;
    let (visitor_reads, visitor_says) = visitor.split();
    let (server_reads, server_says) = server.split();
    let there = pass_on(visitor_reads, server_says, (QUESTION, NOTHING));
    let back = pass_on(server_reads, visitor_says, (TRUTH, LIE));
    tokio::try_join!(there, back).map(drop)
}

/// Passes on everything until the end, with each `word` replaced.
async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    (word, other): (&str, &str),
) -> io::Result<()> {
    let mut held = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut buffer).await?;
        held.extend_from_slice(&buffer[..length]);
        let sure = match length {
            0 => held.len(),
            _ => replace(&mut held, (word, other)),
        };
        to.write_all(&held[..sure]).await?;
        held.drain(..sure);
        if length == 0 {
            return to.shutdown().await;
        }
    }
}

/// Replaces each `word`, in whatever case, and says how many bytes can be passed on: the end may be
/// the beginning of one more.
fn replace(bytes: &mut [u8], (word, other): (&str, &str)) -> usize {
    let mut at = 0;
    while at + word.len() <= bytes.len() {
        let place = &mut bytes[at..at + word.len()];
        if place.eq_ignore_ascii_case(word.as_bytes()) {
            place.copy_from_slice(other.as_bytes());
        }
        at += 1;
    }
    let may_begin = |length: &usize| {
        let end = &bytes[bytes.len() - length..];
        end.eq_ignore_ascii_case(&word.as_bytes()[..*length])
    };
    let longest = word.len().min(bytes.len() + 1);
    bytes.len() - (1..longest).rev().find(may_begin).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_replaced_wherever_a_read_ends() {
        let text =
            format!("GET / HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n{TRUTH} {TRUTH}").into_bytes();
        let expected = String::from_utf8(text.clone()).unwrap();
        let expected = expected.replace(TRUTH, LIE);
        for size in 1..text.len() {
            let (mut held, mut passed) = (Vec::new(), Vec::new());
            for part in text.chunks(size) {
                held.extend_from_slice(part);
                let sure = replace(&mut held, (TRUTH, LIE));
                passed.extend(held.drain(..sure));
            }
            passed.append(&mut held);
            assert_eq!(String::from_utf8(passed).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn a_header_loses_its_name_in_whatever_case() {
        let mut head = b"Accept-Encoding: br\r\naccept: */*\r\n\r\n".to_vec();
        let sure = replace(&mut head, (QUESTION, NOTHING));
        assert_eq!(&head[..sure], b"x-never-said-so: br\r\naccept: */*\r\n\r\n");
    }
}
