//! Requests to play: one object after the other, each with its size.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use levee_vocab::Random;

/// One request: the object's number and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub object: u32,
    pub bytes: u32,
}

/// Objects of the mix that are asked for again and again.
const HOT_OBJECTS: u32 = 100_000;
/// Requests of the mix.
const REQUESTS: u32 = 1_000_000;
/// Largest object.
pub const BYTES_MAX: u32 = 512 << 10;

/// Half of the requests go to objects by Zipf's law (exponent 0.9), four tenths are for objects
/// that nobody asks for again, and in between a robot walks twice through ten thousand others.
pub fn mix() -> Vec<Asked> {
    let mut random = Random::from_seed(17);
    let sums: Vec<f64> = (1..=HOT_OBJECTS)
        .scan(0.0, |sum, rank| {
            *sum += f64::from(rank).powf(-0.9);
            Some(*sum)
        })
        .collect();
    let whole = sums[sums.len() - 1];
    let mut next_new = 10_000_000;
    let mut asked = Vec::with_capacity(REQUESTS as usize);
    for number in 0..REQUESTS {
        let is_walk = (number / 100_000) % 4 == 2 && number % 10 == 0;
        let object = if is_walk {
            HOT_OBJECTS + (number / 10) % 10_000
        } else if random.within(0..100) < 56 {
            let at = random.within(0..1 << 52) as f64 / (1_u64 << 52) as f64 * whole;
            sums.partition_point(|&sum| sum < at) as u32
        } else {
            next_new += 1;
            next_new
        };
        let bytes = size_of(object);
        asked.push(Asked { object, bytes });
    }
    asked
}

/// Every object has one size: the product of four dice, from some hundred bytes to half a
/// megabyte, about 8 kB in the middle.
fn size_of(object: u32) -> u32 {
    let mut dice = Random::from_seed(u64::from(object));
    let exponent: f64 = (0..4).map(|_| dice.within(0..1000) as f64 / 1000.0).sum();
    ((60.0 * 11.5_f64.powf(exponent)) as u32).min(BYTES_MAX)
}

/// The GET requests of a log with the columns `method`, `url`, `response` and `bytes`, tabs between
/// them.
pub fn read(path: &str) -> Result<Vec<Asked>, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let mut lines = BufReader::new(file).lines().map_while(Result::ok);
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| {
        let found = head.split('\t').position(|column| column == name);
        found.ok_or_else(|| format!("{path} has no column {name}; unpack it first"))
    };
    let (method, url) = (column("method")?, column("url")?);
    let (response, bytes) = (column("response")?, column("bytes")?);
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut sizes: HashMap<u32, u32> = HashMap::new();
    let mut asked = Vec::new();
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |index: usize| cells.get(index).copied().unwrap_or_default();
        if cell(method) != "GET" || !["200", "304"].contains(&cell(response)) {
            continue;
        }
        let next = numbers.len() as u32;
        let object = *numbers.entry(cell(url).to_owned()).or_insert(next);
        let told: u32 = cell(bytes).parse().unwrap_or(0);
        let known = sizes.entry(object).or_insert(0);
        *known = (*known).max(told);
        asked.push(Asked { object, bytes: 0 });
    }
    for one in &mut asked {
        one.bytes = sizes[&one.object].clamp(100, BYTES_MAX);
    }
    match asked.is_empty() {
        true => Err(format!("{path} has no answered GET")),
        false => Ok(asked),
    }
}
