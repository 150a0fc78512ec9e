//! h2load: HTTP/2 over TLS.

use std::fs;

use super::{Seen, Target, bounded};
use crate::command::{Failure, capture};
use crate::workspace::failed;

/// With 4 requests at a time each there are as many as the other workloads have.
const SHAPE: &[&str] = &["-t1", "-c16"];
/// What wrk and our own generator offer, too.
const CRYPTOGRAPHY: &[&str] = &["--tls13-ciphers=TLS_AES_128_GCM_SHA256", "--groups=X25519"];

/// Makes the load, `at_a_time` requests on each connection, and waits for its end.
pub fn run(target: &Target, path: &str, at_a_time: u32) -> Result<Seen, Failure> {
    let log = target.openssl_conf.with_file_name("h2load.log");
    if log.exists() {
        // It appends.
        fs::remove_file(&log).map_err(failed("remove", &log))?;
    }
    let mut command = bounded(target);
    command
        .arg("h2load")
        .args(SHAPE)
        .arg(format!("-m{at_a_time}"))
        .args(CRYPTOGRAPHY)
        .arg(format!("--duration={}", target.seconds))
        .arg(format!("--connect-to=127.0.0.1:{}", target.port))
        .arg(format!("--log-file={}", log.display()))
        // Without the port, as a browser on port 443 asks: some servers compare it.
        .args(["-H", &format!(":authority: {}", target.host)])
        .arg(format!("https://{}:{}{path}", target.host, target.port))
        .env("OPENSSL_CONF", &target.openssl_conf);
    let text = capture(&mut command)?;
    let latencies = fs::read_to_string(&log).map_err(failed("read", &log))?;
    parse(&text, &latencies).ok_or_else(|| Failure::Unexpected {
        story: format!("h2load said nothing that we understand:\n{text}"),
    })
}

/// Reads the report, and the log for the latencies: each line is begin, status, microseconds.
fn parse(text: &str, log: &str) -> Option<Seen> {
    let line = |start: &str| text.lines().find(|line| line.starts_with(start));
    let before = |line: &str, word: &str| -> Option<u64> {
        let (head, _) = line.split_once(word)?;
        head.split_whitespace().last()?.parse().ok()
    };
    let requests = line("requests: ")?;
    let statuses = line("status codes: ")?;
    let (_, rate) = line("finished in ")?.split_once(", ")?;
    let wrong: u64 = [" 4xx", " 5xx"]
        .iter()
        .filter_map(|word| before(statuses, word))
        .sum();
    let broken: u64 = [" failed", " errored", " timeout"]
        .iter()
        .filter_map(|word| before(requests, word))
        .sum();
    let mut latencies: Vec<u64> = log
        .lines()
        .filter_map(|line| line.split('\t').nth(2)?.trim().parse().ok())
        .collect();
    latencies.sort_unstable();
    let at = |percent: usize| {
        let index = latencies.len() * percent / 100;
        latencies.get(index).map_or(f64::NAN, |us| *us as f64)
    };
    Some(Seen {
        requests: before(requests, " succeeded")?,
        errors: wrong + broken,
        rate: rate.split(' ').next()?.parse().ok()?,
        p50_us: at(50),
        p99_us: at(99),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "finished in 1.00s, 25013.00 req/s, 245.10MB/s
requests: 25013 total, 25077 started, 25013 done, 25000 succeeded, 13 failed, 3 errored, 0 timeout
status codes: 25000 2xx, 0 3xx, 10 4xx, 0 5xx
";

    #[test]
    fn the_report_of_h2load_is_read() {
        let log = "1\t200\t300\n2\t200\t100\n3\t200\t200\n";
        let seen = parse(REPORT, log).unwrap();
        assert_eq!((seen.requests, seen.errors), (25_000, 26));
        assert_eq!(seen.rate, 25_013.0);
        assert_eq!((seen.p50_us, seen.p99_us), (200.0, 300.0));
    }

    #[test]
    fn nonsense_is_not_a_report() {
        assert_eq!(parse("Could not resolve address", ""), None);
    }
}
