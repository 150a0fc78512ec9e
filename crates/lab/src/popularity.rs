//! What a real crowd asks for: popularity and sizes, fitted to a published trace.
//!
//! The demo's readers must not ask for everything alike: how often each page and each image is
//! wanted decides how soon the caches of rescue servers are warm. The figures come from one day of
//! the NASA Kennedy Space Center's web server (1 August 1995). The trace itself is not in the
//! repository; a few numbers drawn from it are, in `data/nasa-1995-08-01.json`, and
//! `levee-lab fit-trace FILE` draws them again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often the most wanted objects of a site are asked for, and how large they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Popularity {
    /// Where the figures come from.
    pub source: String,
    /// Requests that were looked at: answered pages and images.
    pub requests: u64,
    /// Requests for images per request for a page.
    pub images_per_page: f64,
    /// Those requests by quarters of an hour, from the first request on.
    pub quarter_hours: Vec<u64>,
    /// Pages, most wanted first.
    pub pages: Vec<Ranked>,
    /// Images, most wanted first.
    pub images: Vec<Ranked>,
}

/// One object of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// Share among all requests of its kind.
    pub share: f64,
    /// Size of its body.
    pub bytes: u64,
}

/// A trace that cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// A line without the columns that are needed.
    #[error("line {0} of the trace has no method, url, response and bytes columns")]
    Columns(usize),
    /// No page or no image was answered in it.
    #[error("the trace holds no answered request for a page, or none for an image")]
    Empty,
}

impl Popularity {
    /// The figures that the repository carries.
    pub fn of_nasa() -> Self {
        serde_json::from_str(include_str!("../data/nasa-1995-08-01.json"))
            .expect("the committed popularity file is written by `levee-lab fit-trace`")
    }

    /// Draws the figures from the text of a trace: tab-separated, one head line, then host,
    /// logname, time, method, url, response, bytes.
    pub fn fit(source: &str, trace: &str) -> Result<Self, TraceError> {
        let mut pages = Counts::new();
        let mut images = Counts::new();
        let mut times = Vec::new();
        for (number, line) in trace.lines().enumerate().skip(1) {
            let columns: Vec<&str> = line.split('\t').collect();
            let &[_, _, time, "GET", url, response, bytes, ..] = columns.as_slice() else {
                if columns.len() < 7 {
                    return Err(TraceError::Columns(number + 1));
                }
                continue;
            };
            // A 304 tells of interest as much as a 200 does; errors tell nothing.
            if response != "200" && response != "304" {
                continue;
            }
            let counts = match kind_of(url) {
                Kind::Page => &mut pages,
                Kind::Image => &mut images,
                Kind::Other => continue,
            };
            times.push(time.parse().unwrap_or(0));
            let seen = counts.entry(url).or_default();
            seen.0 += 1;
            seen.1 = seen.1.max(bytes.parse().unwrap_or(0));
        }
        let (page_requests, image_requests) = (total(&pages), total(&images));
        if page_requests == 0 || image_requests == 0 {
            return Err(TraceError::Empty);
        }
        Ok(Self {
            source: source.to_owned(),
            requests: page_requests + image_requests,
            images_per_page: rounded(image_requests as f64 / page_requests as f64),
            quarter_hours: quarter_hours(&times),
            pages: ranked(&pages, page_requests, PAGES_KEPT),
            images: ranked(&images, image_requests, IMAGES_KEPT),
        })
    }
}

/// What `levee-lab fit-trace` is told.
#[derive(Debug, Args)]
pub struct FitArguments {
    /// The trace: tab-separated, with a head line, compressed with gzip.
    trace: PathBuf,
}

/// Prints the figures of a trace as the JSON that the repository keeps.
pub fn run(arguments: &FitArguments) -> ExitCode {
    match fit_file(&arguments.trace) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let trace = arguments.trace.display();
            eprintln!("levee-lab: cannot fit {trace}: {error}");
            ExitCode::from(2)
        }
    }
}

fn fit_file(path: &Path) -> io::Result<String> {
    // The trace is older than UTF-8: stray bytes stand in its URLs.
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fitted =
        Popularity::fit(&name, &String::from_utf8_lossy(&bytes)).map_err(io::Error::other)?;
    Ok(serde_json::to_string_pretty(&fitted)?)
}

/// URL to requests and largest size seen.
type Counts<'a> = BTreeMap<&'a str, (u64, u64)>;

enum Kind {
    Page,
    Image,
    Other,
}

/// Enough to see the shape of the popularity; the demo's site uses the head of each list.
const PAGES_KEPT: usize = 40;
const IMAGES_KEPT: usize = 60;

fn kind_of(url: &str) -> Kind {
    let path = url.split('?').next().unwrap_or(url).to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
    if ends(&[".gif", ".jpg", ".jpeg", ".xbm"]) {
        Kind::Image
    } else if ends(&[".html", ".htm", "/"]) {
        Kind::Page
    } else {
        Kind::Other
    }
}

fn quarter_hours(times: &[u64]) -> Vec<u64> {
    let first = times.iter().min().copied().unwrap_or(0);
    let mut counts = Vec::new();
    for time in times {
        let quarter = ((time - first) / 900) as usize;
        if counts.len() <= quarter {
            counts.resize(quarter + 1, 0);
        }
        counts[quarter] += 1;
    }
    counts
}

fn total(counts: &Counts) -> u64 {
    counts.values().map(|&(requests, _)| requests).sum()
}

fn ranked(counts: &Counts, requests: u64, kept: usize) -> Vec<Ranked> {
    let mut objects: Vec<(u64, u64)> = counts.values().copied().collect();
    objects.sort_by(|left, right| right.cmp(left));
    objects
        .into_iter()
        .take(kept)
        .map(|(seen, bytes)| Ranked {
            share: rounded(seen as f64 / requests as f64),
            bytes,
        })
        .collect()
}

/// Five digits: enough for a share, and a file that people can read.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_figures_are_shares_in_order() {
        let popularity = Popularity::of_nasa();
        for list in [&popularity.pages, &popularity.images] {
            assert!(list.len() >= 40);
            assert!(list.iter().map(|object| object.share).sum::<f64>() < 1.0);
            assert!(list.windows(2).all(|pair| pair[0].share >= pair[1].share));
        }
        let day: u64 = popularity.quarter_hours.iter().sum();
        assert_eq!(
            (popularity.quarter_hours.len(), day),
            (52, popularity.requests)
        );
        assert!((1.0..5.0).contains(&popularity.images_per_page));
    }

    #[test]
    fn a_trace_is_counted_by_kind_and_errors_are_left_out() {
        let trace = "host\tlogname\ttime\tmethod\turl\tresponse\tbytes\treferer\tuseragent\n\
            a\t-\t1\tGET\t/\t200\t700\t\t\n\
            b\t-\t2\tGET\t/\t304\t0\t\t\n\
            c\t-\t3\tGET\t/a.html\t200\t90\t\t\n\
            d\t-\t3\tGET\t/a.html\t404\t90\t\t\n\
            e\t-\t4\tHEAD\t/a.html\t200\t0\t\t\n\
            f\t-\t5\tGET\t/x.gif\t200\t10\t\t\n";
        let fitted = Popularity::fit("test", trace).unwrap();
        let shares: Vec<f64> = fitted.pages.iter().map(|page| page.share).collect();
        assert_eq!(shares, [0.66667, 0.33333]);
        assert_eq!(fitted.pages[0].bytes, 700);
        assert_eq!(fitted.images_per_page, 0.33333);
        assert_eq!(fitted.quarter_hours, [4]);
        assert_eq!(quarter_hours(&[1_900, 1_000, 2_800]), [1, 1, 1]);
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused() {
        assert_eq!(
            Popularity::fit("test", "head\nnonsense\n"),
            Err(TraceError::Columns(2))
        );
        assert_eq!(Popularity::fit("test", "head\n"), Err(TraceError::Empty));
    }
}
