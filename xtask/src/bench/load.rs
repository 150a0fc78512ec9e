//! Load on a server, by programs that others trust, and what they report.

use std::process::Command;

use super::workloads::{Load, Workload};
use crate::command::Failure;

/// What a load generator saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Answers that came whole and right.
    pub requests: u64,
    /// Answers of a wrong status, connections that broke, answers that never came.
    pub errors: u64,
    /// Requests in a second.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// The latency that one in a hundred exceeds, in microseconds.
    pub p99_us: f64,
}

/// Where and how long a load is made.
#[derive(Clone, Debug)]
pub struct Target {
    /// Port of the server on the loopback address.
    pub port: u16,
    /// The Host that is asked for.
    pub host: String,
    /// Length of the load.
    pub seconds: u32,
    /// The cores of the generator.
    pub cores: String,
}

/// Connections at a time: enough that a server always has work, few enough that none waits long.
const CONNECTIONS: &str = "-c64";

/// Makes the load of `workload` and waits for its end.
pub fn run(workload: &Workload, target: &Target) -> Result<Seen, Failure> {
    let mut arguments: Vec<String> = ["-t1", CONNECTIONS, "--latency", "--timeout", "5s"]
        .map(str::to_owned)
        .to_vec();
    arguments.push(format!("-d{}s", target.seconds));
    arguments.extend(["-H".to_owned(), format!("Host: {}", target.host)]);
    match workload.load {
        Load::Kept => {}
        Load::New => arguments.extend(["-H".to_owned(), "Connection: close".to_owned()]),
    }
    arguments.push(format!("http://127.0.0.1:{}{}", target.port, workload.path));
    let mut command = Command::new("setsid");
    command
        .args(["--wait", "taskset", "--cpu-list", &target.cores, "wrk"])
        .args(&arguments);
    let text = crate::command::capture(&mut command)?;
    parse_wrk(&text).ok_or_else(|| Failure::Unexpected {
        story: format!("wrk said nothing that we understand:\n{text}"),
    })
}

/// Reads wrk's report. Its own count of requests includes those of a wrong status.
fn parse_wrk(text: &str) -> Option<Seen> {
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
        let seen = parse_wrk(REPORT).unwrap();
        assert_eq!((seen.requests, seen.errors), (75_020, 0));
        assert_eq!(seen.rate, 75_001.5);
        assert_eq!((seen.p50_us.round(), seen.p99_us.round()), (814.0, 2030.0));
    }

    #[test]
    fn errors_are_counted_and_wrong_answers_are_no_requests() {
        let broken = "  Socket errors: connect 1, read 20, write 0, timeout 3\n  \
                      Non-2xx or 3xx responses: 20\nRequests/sec:";
        let seen = parse_wrk(&REPORT.replace("Requests/sec:", broken)).unwrap();
        assert_eq!((seen.requests, seen.errors), (75_000, 44));
    }

    #[test]
    fn nonsense_is_not_a_report() {
        assert_eq!(parse_wrk("unable to connect to 127.0.0.1"), None);
        assert_eq!(microseconds("1.50s"), Some(1_500_000.0));
        assert_eq!(microseconds("5 hours"), None);
    }
}
