//! Every kind of line, good and bad, and what it means.
#![allow(clippy::unwrap_used)]

mod orders;
mod registry_lines;
mod rescue_lines;

use levee_vocab::WebAddress;
use levee_wire::rescue::{Message, parse};

fn web(host: &str, port: u16) -> WebAddress {
    let host = host.parse().unwrap();
    WebAddress { host, port }
}

/// The line means the message, and the message gives the line back.
fn check_both_ways(line: &str, message: &Message) {
    assert_eq!(parse(line.as_bytes()).as_ref(), Ok(message), "{line}");
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{line}\n"));
}
