//! How many redirects one core gives when no link bounds it: wrk asks as fast as it can.
//!
//! Redirects are those that the server counts, and its processor time is that of its process. On a
//! machine with other work a core is not the server's own, so the same is also told for each second
//! of processor time.

use std::process::Command;
use std::time::Instant;

use tokio::runtime;

use super::super::super::LabError;
use super::super::super::bench::Form;
use super::super::super::findings::{Goal, Row};
use super::super::super::network::Network;
use super::super::super::servers::{SITES, Servers, Site};
use super::{Ground, PUBLISHED_REDIRECTS, path};
use levee_vocab::ByteRate;

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneCore {
    kept: Measured,
    fresh: Measured,
}

#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    redirects: f64,
    seconds: f64,
    processor_seconds: f64,
}

/// The link as the settings tell it, the 100 Mb/s of the paper's switch: it must have one, for a
/// site without a full link needs no help. More redirects fit through it than the goal asks for, on
/// connections of their own too, and it is thin enough that nothing but redirects is left in the
/// end.
const LINK: ByteRate = ByteRate::from_kilobytes(12_500);
/// Twenty times what the paper's processor gave.
const GOAL: f64 = 20.0 * PUBLISHED_REDIRECTS;
/// Connections of wrk: so many that some always have a request under way, for on a limited link
/// answers leave in small groups, some milliseconds apart.
const CONNECTIONS: u32 = 400;

/// Measures kept connections, and one connection for each redirect.
pub fn run(ground: &Ground<'_>) -> Result<OneCore, LabError> {
    let network = Network::build(&ground.topology)?;
    let folder = ground.bench.folder("one-core");
    let owner = ground.bench.ground.owner;
    let mut servers = Servers::new(&network, &ground.bench.levee, &folder, owner);
    let running = ground.start_with_mirror(&mut servers, "core", Some(LINK))?;
    let seconds = match ground.bench.form {
        Form::Full => 20,
        Form::Compressed => 10,
        Form::Shortest => 1,
    };
    let wrk = Wrk {
        network: &network,
        site: &running[0],
        seconds,
    };
    // Until it redirects; what comes of it is not measured.
    wrk.ask(&[])?;
    let kept = wrk.measure(&[])?;
    let fresh = wrk.measure(&["-H", "Connection: close"])?;
    let core = OneCore { kept, fresh };
    ground.bench.say(&core.in_words());
    Ok(core)
}

struct Wrk<'a> {
    network: &'a Network,
    site: &'a Site,
    seconds: u32,
}

impl Wrk<'_> {
    fn measure(&self, more: &[&str]) -> Result<Measured, LabError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LabError::machine("start"))?;
        let redirects = || runtime.block_on(self.site.look()).lifetime.redirects;
        let (before, used, start) = (redirects(), self.processor_seconds(), Instant::now());
        self.ask(more)?;
        Ok(Measured {
            redirects: (redirects() - before) as f64,
            seconds: start.elapsed().as_secs_f64(),
            processor_seconds: self.processor_seconds() - used,
        })
    }

    fn ask(&self, more: &[&str]) -> Result<(), LabError> {
        let runner = self.network.host("visitors").runner();
        let core = self.network.host("core");
        let output = Command::new(&runner[0])
            .args(&runner[1..])
            .args(["wrk", "-t", "1", "-c", &CONNECTIONS.to_string()])
            .args(["-d", &format!("{}s", self.seconds)])
            .args(["-H", &format!("Host: core.{SITES}")])
            .args(more)
            .arg(format!("http://{}{}", core.address, path(10)))
            .output()
            .map_err(LabError::machine("run wrk"))?;
        match output.status.code() {
            Some(0) => Ok(()),
            // What `nsenter` says where it finds no such program.
            Some(127) => Err(LabError::MissingTool {
                program: "wrk",
                package: "wrk",
            }),
            Some(_) | None => Err(LabError::Refused {
                command: "wrk".to_owned(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }

    /// User and system time of the server's process so far.
    fn processor_seconds(&self) -> f64 {
        // Ticks are hundredths of a second on every Linux that Levee runs on (USER_HZ).
        const TICKS_A_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.site.process.id()));
        let stat = stat.unwrap_or_default();
        // The name before the last bracket may hold anything; utime and stime are 12 fields on.
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = fields.split(' ').skip(11).take(2);
        ticks
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum::<f64>()
            / TICKS_A_SECOND
    }
}

impl Measured {
    fn rate(&self) -> f64 {
        self.redirects / self.seconds.max(1e-9)
    }

    fn per_processor_second(&self) -> f64 {
        self.redirects / self.processor_seconds.max(1e-9)
    }
}

impl OneCore {
    /// The rows of it.
    pub fn rows(&self) -> [Row; 2] {
        [
            Row::told("redirects on one core", "requests/s", self.kept.rate())
                .published(PUBLISHED_REDIRECTS)
                .judged_by(Goal::AtLeast(GOAL)),
            Row::told(
                "redirects on one core, a new connection for each",
                "requests/s",
                self.fresh.rate(),
            ),
        ]
    }

    /// Redirects for each second of the server's processor time, over kept connections.
    pub fn per_processor_second(&self) -> f64 {
        self.kept.per_processor_second()
    }

    /// What was measured, in a sentence.
    pub fn in_words(&self) -> String {
        format!(
            "Without a limit on the link and with one core, wrk's {CONNECTIONS} connections got \
             {:.0} redirects a second, {:.0} for each second of the server's processor time; with a \
             new connection for each redirect {:.0} and {:.0}.",
            self.kept.rate(),
            self.kept.per_processor_second(),
            self.fresh.rate(),
            self.fresh.per_processor_second()
        )
    }
}
