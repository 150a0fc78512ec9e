//! The commands of the story language: one line, one command, plain words.
//!
//! ```text
//! set low-intervals 5 · set idle 20s · set ttl 60s · set wait 5s · set backlog 1s
//! set visitors http | https           (https: the aliases of these sites answer by it, too)
//! site NAME link RATE kB/s            stranger NAME link RATE kB/s (in no community)
//! files SITE BYTES..                  delay TIME                  loss SHARE %
//! crowd NAME at SITE RATE/s..         [random | each TIME]        one file each, in turn
//! pages NAME at SITE RATE/s..         [random | each TIME]        a page with all its objects each
//! stampede NAME at SITE N servers within TIME
//! crawlers NAME at SITE RATE/s..      [random | each TIME]        one file each, by who says so
//! CROWD leaves                        visitor of CROWD goes to SITE
//! pass TIME
//! SITE dies | loses power | restarts | hangs | recovers | falls silent | speaks again
//! SITE drills TIME | ends the drill
//! SITE clock jumps TIME               registry dies | registry returns
//! partition NAME.. / NAME..           heal           (names: sites, registry, visitors)
//! show [NAME..]                       breakpoint
//! expect SITE normal | sos | rescue   expect SITE rescued by SITE.. | nobody
//! expect SITE below SHARE %           expect CROWD answered SHARE %
//! ```
//!
//! No variables and no loops: what needs them is a test in Rust.

use std::time::Duration;

use levee_control::{Law, Visitors};
use levee_vocab::{ByteRate, ServerState};
use thiserror::Error;

use levee_sim::crowd::{Arrivals, Wants};

/// Something that a story does or asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Changes a setting of the sites that follow.
    Set(Setting),
    /// Adds a site.
    Site {
        /// Its label.
        name: String,
        /// B.
        link: ByteRate,
        /// Whether it takes part in the community.
        member: Membership,
    },
    /// The files of a site, bytes each.
    Files(String, Vec<u64>),
    /// One-way delay of the network.
    Delay(Duration),
    /// Share of the messages that lose a packet.
    Loss(f64),
    /// A crowd comes.
    Crowd {
        /// Its name.
        name: String,
        /// Where it goes.
        site: String,
        /// When.
        arrivals: Arrivals,
        /// What for.
        wants: Wants,
    },
    /// A visitor of a crowd goes to the alias that this rescue server gave its site.
    Visitor {
        /// The crowd.
        crowd: String,
        /// The rescue server.
        site: String,
    },
    /// Time passes.
    Pass(Duration),
    /// Something happens to a site or a crowd.
    Happen(String, Happening),
    /// Groups are cut off from each other.
    Partition(Vec<Vec<String>>),
    /// All partitions end.
    Heal,
    /// Prints figures of sites and crowds; of all if none is named.
    Show(Vec<String>),
    /// Something must hold now.
    Expect(String, Expectation),
    /// Prints all that the Brains know to standard error.
    Breakpoint,
}

/// Whether a site takes part in the community.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It does.
    Member,
    /// It stands alone.
    Stranger,
}

/// A setting of the sites that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Who decides what is redirected.
    Law(Law),
    /// N_low.
    LowIntervals(u32),
    /// What origins let their rescue servers be idle.
    Idle(Duration),
    /// Lifetime of objects.
    ObjectTtl(Duration),
    /// Wait before a refusal.
    Wait(Duration),
    /// Backlog up to which pages are admitted.
    Backlog(Duration),
    /// By which scheme visitors come.
    Visitors(Visitors),
}

/// Something that happens to a site, a crowd or the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Nobody else comes.
    Leaves,
    /// SIGKILL.
    Dies,
    /// Its host is gone.
    LosesPower,
    /// It starts again.
    Restarts,
    /// It freezes.
    Hangs,
    /// It goes on.
    Recovers,
    /// It says nothing more on its rescue links.
    FallsSilent,
    /// It does again.
    SpeaksAgain,
    /// Its operator orders a drill of so long.
    Drills(Duration),
    /// Its operator ends the drill that it holds or takes part in.
    EndsDrill,
    /// Its clock jumps ahead.
    ClockJumps(Duration),
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// The site is in this state.
    State(ServerState),
    /// Exactly these sites rescue it.
    RescuedBy(Vec<String>),
    /// d_out of the last interval is below this share of D_out.
    Below(f64),
    /// At least this share of the crowd's finished requests was answered in time.
    Answered(f64),
}

/// Why a line is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// No command begins like this or has these words.
    #[error("not a command: {0}")]
    Unknown(String),
    /// A number or time is expected.
    #[error("not a {what}: {text}")]
    BadValue {
        /// What is expected.
        what: &'static str,
        /// What stands there.
        text: String,
    },
}

impl Command {
    /// Reads one line.
    pub fn parse(line: &str) -> Result<Self, CommandError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["set", name, value] => Ok(Self::Set(Setting::parse(name, value)?)),
            ["site", name, "link", rate, "kB/s"] => site(name, rate, Membership::Member),
            ["stranger", name, "link", rate, "kB/s"] => site(name, rate, Membership::Stranger),
            ["files", name, ref sizes @ ..] => {
                let sizes = sizes.iter().map(|size| number(size));
                Ok(Self::Files(
                    name.to_owned(),
                    sizes.collect::<Result<_, _>>()?,
                ))
            }
            ["delay", delay] => Ok(Self::Delay(time(delay)?)),
            ["loss", percent, "%"] => Ok(Self::Loss(share(percent)?)),
            ["crowd", name, "at", site, ref rest @ ..] => {
                crowd(name, site, arrivals(rest)?, Wants::FilesInTurn)
            }
            ["pages", name, "at", site, ref rest @ ..] => {
                crowd(name, site, arrivals(rest)?, Wants::WholePage)
            }
            ["crawlers", name, "at", site, ref rest @ ..] => {
                crowd(name, site, arrivals(rest)?, Wants::Crawl)
            }
            [
                "stampede",
                name,
                "at",
                site,
                count,
                "servers",
                "within",
                within,
            ] => {
                let (servers, within) = (number(count)?, time(within)?);
                let arrivals = Arrivals::Stampede { servers, within };
                crowd(name, site, arrivals, Wants::Preview)
            }
            ["visitor", "of", crowd, "goes", "to", site] => Ok(Self::Visitor {
                crowd: crowd.to_owned(),
                site: site.to_owned(),
            }),
            ["pass", duration] => Ok(Self::Pass(time(duration)?)),
            ["partition", ref names @ ..] => Ok(Self::Partition(
                names.split(|name| *name == "/").map(owned).collect(),
            )),
            ["heal"] => Ok(Self::Heal),
            ["show", ref names @ ..] => Ok(Self::Show(owned(names))),
            ["expect", name, ref rest @ ..] => {
                let expectation = Expectation::parse(line, rest)?;
                Ok(Self::Expect(name.to_owned(), expectation))
            }
            ["breakpoint"] => Ok(Self::Breakpoint),
            [name, ref rest @ ..] => {
                let happening = Happening::parse(line, rest)?;
                Ok(Self::Happen(name.to_owned(), happening))
            }
            [] => Err(unknown(line)),
        }
    }
}

impl Setting {
    fn parse(name: &str, value: &str) -> Result<Self, CommandError> {
        match name {
            "low-intervals" => {
                let count = value.parse().map_err(|_| bad("number", value))?;
                Ok(Self::LowIntervals(count))
            }
            "law" => match value {
                "combined" => Ok(Self::Law(Law::Combined)),
                "load" => Ok(Self::Law(Law::Load)),
                _ => Err(bad("law", value)),
            },
            "idle" => Ok(Self::Idle(time(value)?)),
            "ttl" => Ok(Self::ObjectTtl(time(value)?)),
            "wait" => Ok(Self::Wait(time(value)?)),
            "backlog" => Ok(Self::Backlog(time(value)?)),
            "visitors" => match value {
                "http" => Ok(Self::Visitors(Visitors::Http)),
                "https" => Ok(Self::Visitors(Visitors::Https)),
                _ => Err(bad("scheme", value)),
            },
            _ => Err(bad("setting", name)),
        }
    }
}

impl Happening {
    fn parse(line: &str, words: &[&str]) -> Result<Self, CommandError> {
        match words {
            ["leaves" | "leave"] => Ok(Self::Leaves),
            ["dies"] => Ok(Self::Dies),
            ["loses", "power"] => Ok(Self::LosesPower),
            ["restarts" | "returns"] => Ok(Self::Restarts),
            ["hangs"] => Ok(Self::Hangs),
            ["recovers"] => Ok(Self::Recovers),
            ["falls", "silent"] => Ok(Self::FallsSilent),
            ["speaks", "again"] => Ok(Self::SpeaksAgain),
            ["drills", length] => Ok(Self::Drills(time(length)?)),
            ["ends", "the", "drill"] => Ok(Self::EndsDrill),
            ["clock", "jumps", ahead] => Ok(Self::ClockJumps(time(ahead)?)),
            _ => Err(unknown(line)),
        }
    }
}

impl Expectation {
    fn parse(line: &str, words: &[&str]) -> Result<Self, CommandError> {
        match words {
            ["normal"] => Ok(Self::State(ServerState::Normal)),
            ["sos"] => Ok(Self::State(ServerState::Sos)),
            ["rescue"] => Ok(Self::State(ServerState::Rescue)),
            ["rescued", "by", "nobody"] => Ok(Self::RescuedBy(Vec::new())),
            ["rescued", "by", names @ ..] => Ok(Self::RescuedBy(owned(names))),
            ["below", percent, "%"] => Ok(Self::Below(share(percent)?)),
            ["answered", percent, "%"] => Ok(Self::Answered(share(percent)?)),
            _ => Err(unknown(line)),
        }
    }
}

fn site(name: &str, rate: &str, member: Membership) -> Result<Command, CommandError> {
    let is_label = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !name.bytes().all(is_label) {
        return Err(bad("label of small letters and digits", name));
    }
    Ok(Command::Site {
        name: name.to_owned(),
        link: ByteRate::from_kilobytes(number(rate)?),
        member,
    })
}

fn crowd(
    name: &str,
    site: &str,
    arrivals: Arrivals,
    wants: Wants,
) -> Result<Command, CommandError> {
    Ok(Command::Crowd {
        name: name.to_owned(),
        site: site.to_owned(),
        arrivals,
        wants,
    })
}

fn arrivals(words: &[&str]) -> Result<Arrivals, CommandError> {
    let rates = |words: &[&str]| -> Result<Vec<f64>, CommandError> {
        words.iter().map(|word| rate(word)).collect()
    };
    match words {
        [one] => Ok(Arrivals::Constant { rate: rate(one)? }),
        [one, "random"] => Ok(Arrivals::Random { rate: rate(one)? }),
        [steps @ .., "each", each] => Ok(Arrivals::Steps {
            rates: rates(steps)?,
            each: time(each)?,
        }),
        _ => Err(unknown(&words.join(" "))),
    }
}

fn rate(text: &str) -> Result<f64, CommandError> {
    let digits = text.strip_suffix("/s");
    let rate = digits.and_then(|digits| digits.parse().ok());
    rate.filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| bad("rate like 20/s", text))
}

fn share(text: &str) -> Result<f64, CommandError> {
    let percent: Option<f64> = text.parse().ok();
    percent
        .filter(|percent| (0.0..=1000.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| bad("share in percent", text))
}

fn number(text: &str) -> Result<u64, CommandError> {
    text.parse().map_err(|_| bad("number", text))
}

fn time(text: &str) -> Result<Duration, CommandError> {
    let wrong = || bad("time like 20s or 50ms", text);
    if let Some(digits) = text.strip_suffix("ms") {
        return digits
            .parse()
            .map(Duration::from_millis)
            .map_err(|_| wrong());
    }
    let digits = text.strip_suffix('s').ok_or_else(wrong)?;
    let seconds: f64 = digits.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn unknown(line: &str) -> CommandError {
    CommandError::Unknown(line.to_owned())
}

fn bad(what: &'static str, text: &str) -> CommandError {
    let text = text.to_owned();
    CommandError::BadValue { what, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_and_mistakes_are_named() {
        let steps = Command::parse("crowd readers at origin 5/s 20/s each 10s");
        let arrivals = Arrivals::Steps {
            rates: vec![5.0, 20.0],
            each: Duration::from_secs(10),
        };
        let wants = Wants::FilesInTurn;
        let (name, site) = ("readers".to_owned(), "origin".to_owned());
        assert_eq!(
            steps,
            Ok(Command::Crowd {
                name,
                site,
                arrivals,
                wants
            })
        );
        assert_eq!(
            Command::parse("r1 falls silent"),
            Ok(Command::Happen("r1".to_owned(), Happening::FallsSilent))
        );
        let wrong = Command::parse("pass 10").map_err(|error| error.to_string());
        assert_eq!(wrong, Err("not a time like 20s or 50ms: 10".to_owned()));
        let wrong = Command::parse("r1 sings").map_err(|error| error.to_string());
        assert_eq!(wrong, Err("not a command: r1 sings".to_owned()));
    }
}
