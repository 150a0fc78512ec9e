//! Who comes when: the whole crowd is drawn before it sets off.
//!
//! Arrivals do not wait for answers (an open loop), as real visitors do not know of each other. The
//! same seed draws the same crowd, so that two sites can be given exactly the same one.

use std::ops::Range;
use std::time::Duration;

use levee_vocab::Random;

use crate::site::Site;

/// One visit and when it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Time since the start of the schedule.
    pub at: Duration,
    /// Who comes, and for what.
    pub visit: Visit,
}

/// A kind of visit.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// A fediverse server that makes a link preview: HEAD and GET of the post, GET of its image.
    Preview {
        /// Number of the server.
        server: u32,
    },
    /// A reader who loads a page with its images.
    Reader {
        /// Rank of the page in the site.
        page: usize,
    },
    /// One object over a connection of its own.
    Single {
        /// Its path.
        path: String,
    },
}

/// Shape of a crowd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Quiet time before the onset, with one request a second.
    pub calm: Duration,
    /// Length of the crowd.
    pub crowd: Duration,
    /// Fediverse servers, evenly over the crowd.
    pub servers: u32,
    /// Page loads a second in the crowd.
    pub readers: f64,
}

/// Page loads a second at a member that has no crowd.
const EVERYDAY_READERS: f64 = 1.0;

impl Profile {
    /// 740 servers within 60 seconds, as seen in the fediverse, and readers beside them.
    pub fn stampede(crowd: Duration) -> Self {
        Self {
            calm: Duration::from_secs(6),
            crowd,
            servers: (740.0 * crowd.as_secs_f64() / 60.0).round() as u32,
            readers: 18.0,
        }
    }

    /// Draws every visit, earliest first.
    pub fn arrivals(&self, seed: u64, site: &Site) -> Vec<Arrival> {
        let mut random = Random::from_seed(seed);
        let mut servers = random.fork();
        let mut readers = random.fork();
        // One page a second without its images: a load that alerts nobody, so that the onset of
        // the crowd is the onset of everything.
        let mut arrivals: Vec<Arrival> = (0..self.calm.as_secs())
            .map(|second| Arrival {
                at: Duration::from_secs(second),
                visit: Visit::Single {
                    path: site.pages[draw_page(&mut random, site)].path.clone(),
                },
            })
            .collect();
        arrivals.extend((0..self.servers).map(|server| Arrival {
            at: self.calm + self.crowd.mul_f64(servers.fraction()),
            visit: Visit::Preview { server },
        }));
        let crowd = self.calm..self.calm + self.crowd;
        arrivals.extend(poisson(&mut readers, site, crowd, self.readers));
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    /// The visitors of a site that has no crowd in the same time.
    pub fn everyday(&self, seed: u64, site: &Site) -> Vec<Arrival> {
        let mut random = Random::from_seed(seed);
        let whole = Duration::ZERO..self.calm + self.crowd;
        poisson(&mut random, site, whole, EVERYDAY_READERS)
    }
}

/// Readers who come independently of each other, `rate` of them a second.
fn poisson(random: &mut Random, site: &Site, span: Range<Duration>, rate: f64) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut at = span.start;
    loop {
        // The gaps of a Poisson process are exponential.
        at += Duration::from_secs_f64(-(1.0 - random.fraction()).ln() / rate);
        if at >= span.end {
            return arrivals;
        }
        arrivals.push(Arrival {
            at,
            visit: Visit::Reader {
                page: draw_page(random, site),
            },
        });
    }
}

/// `rate` single requests a second for `length`, evenly, over `paths` in turn.
pub fn steady(rate: f64, length: Duration, paths: &[String]) -> Vec<Arrival> {
    let count = (rate * length.as_secs_f64()).floor() as usize;
    (0..count)
        .zip(paths.iter().cycle())
        .map(|(number, path)| Arrival {
            at: Duration::from_secs_f64(number as f64 / rate),
            visit: Visit::Single { path: path.clone() },
        })
        .collect()
}

fn draw_page(random: &mut Random, site: &Site) -> usize {
    let mut left = random.fraction();
    for (rank, page) in site.pages.iter().enumerate() {
        left -= page.share;
        if left < 0.0 {
            return rank;
        }
    }
    site.pages.len() - 1
}

#[cfg(test)]
mod tests {
    use levee_vocab::WebAddress;

    use super::*;

    fn site() -> Site {
        Site::generate(
            1,
            &WebAddress {
                host: "news.localhost".parse().unwrap(),
                port: 40000,
            },
        )
    }

    #[test]
    fn the_stampede_is_whole_and_the_same_for_a_seed() {
        let site = site();
        let profile = Profile::stampede(Duration::from_secs(60));
        let arrivals = profile.arrivals(7, &site);
        assert_eq!(arrivals, profile.arrivals(7, &site));
        assert_ne!(arrivals, profile.arrivals(8, &site));
        let previews = arrivals
            .iter()
            .filter(|arrival| matches!(arrival.visit, Visit::Preview { .. }));
        assert_eq!(previews.count(), 740);
        assert!(arrivals.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn readers_come_at_the_rate_and_for_the_pages_that_were_asked_for() {
        let site = site();
        let profile = Profile {
            servers: 0,
            ..Profile::stampede(Duration::from_secs(1_000))
        };
        let arrivals = profile.arrivals(7, &site);
        let expected = 18_000.0;
        assert!((arrivals.len() as f64 - expected).abs() < expected * 0.05);
        let first = arrivals
            .iter()
            .filter(|arrival| arrival.visit == Visit::Reader { page: 0 })
            .count() as f64;
        let share = first / arrivals.len() as f64;
        assert!((share - site.pages[0].share).abs() < 0.02, "{share}");
    }

    #[test]
    fn steady_requests_are_even() {
        let arrivals = steady(4.0, Duration::from_secs(2), &["/a".into(), "/b".into()]);
        assert_eq!(arrivals.len(), 8);
        assert_eq!(arrivals[7].at, Duration::from_millis(1750));
        assert_eq!(
            arrivals[3].visit,
            Visit::Single {
                path: "/b".to_owned()
            }
        );
    }
}
