//! wrk: HTTP/1.1, with connections that are kept or with a new one for each request.

use super::{CONNECTIONS, Seen, Target, Transport, bounded};
use crate::command::{Failure, capture};

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Kept from request to request.
    Kept,
    /// One for each request.
    New,
}

/// Makes the load and waits for its end.
pub fn run(
    target: &Target,
    path: &str,
    connections: Connections,
    transport: Transport,
) -> Result<Seen, Failure> {
    let mut command = bounded(target);
    command
        .args(["wrk", "-t1"])
        .args(["--latency", "--timeout", "5s"])
        .arg(format!("-c{CONNECTIONS}"))
        .arg(format!("-d{}s", target.seconds))
        .args(["-H", &format!("Host: {}", target.host)])
        .env("OPENSSL_CONF", &target.openssl_conf);
    match connections {
        Connections::Kept => {}
        Connections::New => {
            command.args(["-H", "Connection: close"]);
        }
    }
    let scheme = match transport {
        Transport::Clear => "http",
        Transport::Tls => "https",
    };
    command.arg(format!("{scheme}://127.0.0.1:{}{path}", target.port));
    let text = capture(&mut command)?;
    parse(&text).ok_or_else(|| Failure::Unexpected {
        story: format!("wrk said nothing that we understand:\n{text}"),
    })
}

/// Reads wrk's report. Its own count of requests includes those of a wrong status.
fn parse(text: &str) -> Option<Seen> {
    let after = |start: &str| {
        let line = text
            .lines()
            .map(str::trim)
            .find(|line| line.starts_with(start))?;
        Some(line[start.len()..].trim())
    };
    let all: u64 = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())?;
    let wrong: u64 =
        after("Non-2xx or 3xx responses:").map_or(Some(0), |text| text.parse().ok())?;
    let broken: u64 = after("Socket errors:").map_or(Some(0), |text| {
        let counts = text
            .split(',')
            .map(|part| part.split_whitespace().last()?.parse::<u64>().ok());
        counts.sum()
    })?;
    Some(Seen {
        requests: all - wrong,
        errors: wrong + broken,
        rate: after("Requests/sec:")?.parse().ok()?,
        p50_us: microseconds(after("50%")?)?,
        p99_us: microseconds(after("99%")?)?,
    })
}

/// `814.00us`, `2.03ms`, `1.20s`, `1.00m`.
fn microseconds(text: &str) -> Option<f64> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let factor = match &text[split..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => return None,
    };
    Some(text[..split].parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Running 1s test @ http://127.0.0.1:8001/1k
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   850.20us  214.70us   4.12ms   80.00%
    Req/Sec    75.10k     2.10k   78.00k    80.00%
  Latency Distribution
     50%  814.00us
     75%    0.90ms
     90%    1.10ms
     99%    2.03ms
  75020 requests in 1.00s, 90.00MB read
Requests/sec:  75001.50
Transfer/sec:     89.90MB
";

    #[test]
    fn the_report_of_wrk_is_read() {
        let seen = parse(REPORT).unwrap();
        assert_eq!((seen.requests, seen.errors), (75_020, 0));
        assert_eq!(seen.rate, 75_001.5);
        assert_eq!((seen.p50_us.round(), seen.p99_us.round()), (814.0, 2030.0));
    }

    #[test]
    fn errors_are_counted_and_wrong_answers_are_no_requests() {
        let broken = "  Socket errors: connect 1, read 20, write 0, timeout 3\n  \
                      Non-2xx or 3xx responses: 20\nRequests/sec:";
        let seen = parse(&REPORT.replace("Requests/sec:", broken)).unwrap();
        assert_eq!((seen.requests, seen.errors), (75_000, 44));
    }

    #[test]
    fn nonsense_is_not_a_report() {
        assert_eq!(parse("unable to connect to 127.0.0.1"), None);
        assert_eq!(microseconds("1.50s"), Some(1_500_000.0));
        assert_eq!(microseconds("5 hours"), None);
    }
}
