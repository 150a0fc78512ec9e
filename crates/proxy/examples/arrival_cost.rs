//! What it costs a core to note which resource was asked for (H1): nanoseconds and instructions.
//!
//! `cargo run --release -p levee-proxy --example arrival_cost`
//!
//! Each case asks for resources in an order of its own: one resource, as many as the table has
//! places, a crowd among many others, and never the same one twice, which is the worst there is.
//! Nanoseconds are the median of several runs. Instructions are counted by valgrind's callgrind,
//! where it is installed: this program runs itself under it, with N and with 2N requests, and
//! divides the difference by N.

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use levee_control::{Arrival, ArrivalTable};
use levee_vocab::{Random, Timestamp};

type Failure = Box<dyn std::error::Error>;

/// As many places as a core has.
const PLACES: usize = 256;
const REQUESTS: u64 = 2_000_000;
const REQUESTS_IN_VALGRIND: u64 = 100_000;
/// Requests between two intervals.
const INTERVAL: u64 = 50_000;
const RUNS: usize = 9;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Always the same.
    One,
    /// As many as there are places, in any order.
    Full,
    /// Nine in ten for one of twenty, the others for one of a million.
    Crowd,
    /// Each once.
    Strangers,
}

const CASES: [Case; 4] = [Case::One, Case::Full, Case::Crowd, Case::Strangers];

impl Case {
    const fn name(self) -> &'static str {
        match self {
            Self::One => "one resource",
            Self::Full => "as many as there are places",
            Self::Crowd => "a crowd among many others",
            Self::Strangers => "never the same twice",
        }
    }

    fn next(self, random: &mut Random, number: u64) -> u64 {
        match self {
            Self::One => 1,
            Self::Full => random.within(0..PLACES as u64),
            Self::Crowd if random.chance(0.9) => random.within(0..20),
            Self::Crowd => random.within(20..1_000_000),
            Self::Strangers => number,
        }
    }
}

fn main() -> Result<ExitCode, Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, count] = words.as_slice()
        && flag == "--play"
    {
        let case = CASES.into_iter().find(|case| case.name() == name);
        play(case.ok_or("no such case")?, count.parse()?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("a request noted, {PLACES} places             ns  instructions");
    for case in CASES {
        let name = case.name();
        let spent = nanoseconds(case);
        match instructions(case) {
            Ok(each) => println!("{name:32} {spent:9.1}  {each:12}"),
            Err(error) => println!("{name:32} {spent:9.1}  not counted: {error}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The hashes of a case, spread as the hash of a path is, made before anything is measured.
fn hashes(case: Case, count: u64) -> Vec<u64> {
    let mut random = Random::from_seed(1);
    (0..count)
        .map(|number| Random::from_seed(case.next(&mut random, number)).next_bits())
        .collect()
}

fn play(case: Case, count: u64) {
    note(&hashes(case, count));
}

/// What is measured; callgrind looks for it by its name.
#[inline(never)]
fn note(hashes: &[u64]) {
    let mut table = ArrivalTable::new(PLACES);
    for (number, &hash) in (0_u64..).zip(hashes) {
        let arrival = Arrival {
            hash,
            bytes: 10_000,
            host: "www.example.org",
            path: "/2026/11/a-post-of-usual-length/",
        };
        table.note(Timestamp::from_nanoseconds(number), black_box(&arrival));
        if number % INTERVAL == INTERVAL - 1 {
            black_box(table.take());
        }
    }
    black_box(&table);
}

fn nanoseconds(case: Case) -> f64 {
    let hashes = hashes(case, REQUESTS);
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            note(&hashes);
            start.elapsed().as_nanos() as f64 / REQUESTS as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

fn instructions(case: Case) -> Result<u64, Failure> {
    let once = collected(case, REQUESTS_IN_VALGRIND)?;
    let twice = collected(case, 2 * REQUESTS_IN_VALGRIND)?;
    Ok(twice.saturating_sub(once) / REQUESTS_IN_VALGRIND)
}

fn collected(case: Case, count: u64) -> Result<u64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(["--toggle-collect=arrival_cost::note*"])
        .arg(std::env::current_exe()?)
        .args(["--play", case.name(), &count.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once("Collected :"));
    let (_, number) = lines.next().ok_or("callgrind gave no figure")?;
    Ok(number.trim().parse()?)
}
