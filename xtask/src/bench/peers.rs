//! `bench peers`: every server under every workload, in turns.
//!
//! In each round each server is measured once under the workload, one after the other, and each
//! round begins with another server. So whatever the machine does beside us meets all of them
//! alike.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use super::fleet::{Cores, Ground, Instance};
use super::goals;
use super::held;
use super::json;
use super::load::{self, Target};
use super::options::{Extent, HELP, Options, Readme};
use super::profile;
use super::readme;
use super::samples::{Sample, Samples};
use super::servers::{Maker, SERVERS, Server, Setup};
use super::statistics::rotated;
use super::table;
use super::workloads::{Bookkeeping, Measure, WORKLOADS, Workload};
use crate::command::{Failure, is_installed};
use crate::workspace::{Workspace, failed};
use crate::{forward, install};

/// Runs what the arguments ask for.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--help") {
        print!("{HELP}");
        return Ok(());
    }
    let options = Options::read(arguments)?;
    let workloads = chosen(WORKLOADS, &options.only, |workload| workload.id)?;
    let servers = chosen(SERVERS, &options.servers, |server| server.name)?;
    install_for(&servers)?;
    forward::build_yardsticks(workspace)?;
    let levee = options.levee.clone();
    let levee = levee.unwrap_or_else(|| workspace.program("levee"));
    let (ground, _origin) = Ground::prepare(workspace, cores()?, levee)?;
    let mut run = Run {
        ground,
        options,
        samples: Samples::default(),
        readme: workspace.root.join("README.md"),
    };
    for bookkeeping in [Bookkeeping::Off, Bookkeeping::On] {
        let part: Vec<&Workload> = workloads
            .iter()
            .copied()
            .filter(|workload| workload.bookkeeping == bookkeeping)
            .filter(|workload| !workload.wants_a_fresh_server())
            .collect();
        run.part(bookkeeping, &servers, &part)?;
    }
    for workload in &workloads {
        if workload.wants_a_fresh_server() {
            run.fresh(workload, &servers)?;
        }
    }
    run.close(&servers, &workloads)
}

/// Servers that a quick run starts anew for workloads of held connections.
const QUICK_SERVERS: usize = 2;

/// One run of the bench.
struct Run {
    ground: Ground,
    options: Options,
    samples: Samples,
    readme: PathBuf,
}

impl Run {
    /// Starts every server that has work in `workloads`, and measures them.
    fn part(
        &mut self,
        bookkeeping: Bookkeeping,
        servers: &[&'static Server],
        workloads: &[&'static Workload],
    ) -> Result<(), Failure> {
        let mut fleet = Vec::new();
        for server in servers {
            for setup in server.setups {
                let is_asked = |workload: &Workload| setup.doors.contains(&workload.door);
                if workloads.iter().any(|workload| is_asked(workload)) {
                    fleet.extend(self.start(server, setup, bookkeeping)?);
                }
            }
        }
        for (index, workload) in workloads.iter().enumerate() {
            let asked: Vec<&Instance> = fleet
                .iter()
                .filter(|instance| instance.doors.contains(&workload.door))
                .collect();
            for instance in &asked {
                // The first answer may be a miss, the second comes from where all others will.
                instance.check(workload)?;
                instance.check(workload)?;
            }
            if self.options.extent == Extent::Profile {
                for instance in asked {
                    let target = self.target(workload, instance);
                    profile::run(workload, instance, &self.ground, &target)?;
                }
                continue;
            }
            let asked = match self.options.extent {
                Extent::Whole | Extent::Profile => asked,
                Extent::Quick => a_few(&asked, index),
            };
            self.measure(workload, &asked)?;
            print!("{}", table::of_workload(&self.samples, workload, servers));
        }
        Ok(())
    }

    /// None where a yardstick cannot run: io_uring is forbidden in many containers.
    fn start(
        &self,
        server: &'static Server,
        setup: &'static Setup,
        bookkeeping: Bookkeeping,
    ) -> Result<Option<Instance>, Failure> {
        match (self.ground.start(server, setup, bookkeeping), server.maker) {
            (Ok(instance), _) => Ok(Some(instance)),
            (Err(failure), Maker::Bare) => {
                eprintln!("{} is left out: {failure}", server.name);
                Ok(None)
            }
            (Err(failure), Maker::Ours | Maker::Debian(_)) => Err(failure),
        }
    }

    fn measure(&mut self, workload: &'static Workload, asked: &[&Instance]) -> Result<(), Failure> {
        for round in 0..self.options.rounds {
            eprint!(
                "{} round {} of {}:",
                workload.id,
                round + 1,
                self.options.rounds
            );
            for index in rotated(asked.len(), round) {
                if let Some(instance) = asked.get(index) {
                    let sample = self.sample(workload, instance, round)?;
                    if sample.seen.requests == 0 {
                        eprint!(" {} NO ANSWER", instance.name);
                        continue;
                    }
                    eprint!(" {} {:.1}", instance.name, sample.cost());
                    self.samples.push(sample);
                }
            }
            eprintln!();
        }
        Ok(())
    }

    /// Each server is started for this workload alone, once.
    fn fresh(
        &mut self,
        workload: &'static Workload,
        servers: &[&'static Server],
    ) -> Result<(), Failure> {
        eprint!("{}:", workload.id);
        let few = servers
            .iter()
            .filter(|server| server.maker != Maker::Bare)
            .take(QUICK_SERVERS);
        let few: Vec<&'static Server> = few.copied().collect();
        let asked = match self.options.extent {
            Extent::Whole | Extent::Profile => servers,
            Extent::Quick => &few,
        };
        for server in asked {
            let mut setups = server.setups.iter();
            let Some(setup) = setups.find(|setup| setup.doors.contains(&workload.door)) else {
                continue;
            };
            let Some(instance) = self.start(server, setup, workload.bookkeeping)? else {
                continue;
            };
            instance.check(workload)?;
            let sample = held::sample(workload, &instance, &self.target(workload, &instance))?;
            if sample.seen.requests == 0 && workload.measure() == Measure::Processor {
                eprint!(" {} NO ANSWER", instance.name);
                continue;
            }
            eprint!(
                " {} {:.0}",
                instance.name,
                sample.memory.unwrap_or_default()
            );
            self.samples.push(sample);
        }
        eprintln!();
        print!("{}", table::of_workload(&self.samples, workload, servers));
        Ok(())
    }

    fn sample(
        &self,
        workload: &'static Workload,
        instance: &Instance,
        round: usize,
    ) -> Result<Sample, Failure> {
        let target = self.target(workload, instance);
        let before = instance.used();
        let seen = load::run(workload, &target)?;
        let spent = instance.used().since(before);
        self.ground.empty_logs();
        Ok(Sample {
            workload: workload.id,
            server: instance.name,
            round,
            spent,
            seen,
            memory: None,
        })
    }

    fn target(&self, workload: &Workload, instance: &Instance) -> Target {
        Target {
            port: instance.port(workload),
            host: instance.host(workload),
            seconds: self.options.seconds,
            cores: self.ground.cores.load.clone(),
            openssl_conf: self.ground.certificate.openssl_conf.clone(),
            lab: self.ground.program("levee-lab"),
        }
    }

    /// Writes down what came out.
    fn close(self, servers: &[&Server], workloads: &[&Workload]) -> Result<(), Failure> {
        print!("{}", goals::lines(&goals::of(&self.samples, servers)));
        if self.options.readme == Readme::Rewrite {
            let table = readme::table(&self.samples, workloads, servers);
            readme::rewrite(&self.readme, &table)?;
        }
        if let Some(path) = &self.options.json {
            let text = json::of(&self.samples, servers, workloads);
            fs::write(path, text).map_err(failed("write", path))?;
        }
        Ok(())
    }
}

/// Ours, the yardsticks, and one of the others in turn.
fn a_few<'a>(asked: &[&'a Instance], turn: usize) -> Vec<&'a Instance> {
    let is_peer = |instance: &&&Instance| matches!(instance.maker, Maker::Debian(_));
    let peers = asked.iter().filter(is_peer).count().max(1);
    let peer = asked.iter().filter(is_peer).nth(turn % peers);
    let others = asked.iter().filter(|instance| !is_peer(instance));
    others.chain(peer).copied().collect()
}

/// Gets the programs that are missing: load generators and the peers that are to be measured.
fn install_for(servers: &[&Server]) -> Result<(), Failure> {
    let tools = [
        ("curl", "curl"),
        ("h2load", "nghttp2-client"),
        ("openssl", "openssl"),
        ("wrk", "wrk"),
    ];
    let mut missing: Vec<&str> = tools
        .into_iter()
        .filter_map(|(program, package)| (!is_installed(program)).then_some(package))
        .collect();
    for server in servers {
        if let Maker::Debian(package) = server.maker {
            for setup in server.setups {
                missing.extend((!is_installed(setup.program)).then_some(package));
                let parts = setup
                    .parts
                    .iter()
                    .filter(|(file, _)| !Path::new(file).exists());
                missing.extend(parts.map(|(_, package)| *package));
            }
        }
    }
    missing.sort_unstable();
    missing.dedup();
    install::install(&missing)
}

/// The rows of a table that are named; all where none is.
fn chosen<T>(
    all: &'static [T],
    names: &[String],
    name_of: fn(&T) -> &'static str,
) -> Result<Vec<&'static T>, Failure> {
    if names.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        let found = all.iter().find(|row| name_of(row) == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(name_of).collect();
            Failure::Unexpected {
                story: format!("no `{name}`: there are {}", known.join(", ")),
            }
        })
    };
    names.iter().map(find).collect()
}

/// The last core is the server's, the one before it the load's; a machine with one core shares it.
fn cores() -> Result<Cores, Failure> {
    let count = thread::available_parallelism().map_err(|cause| Failure::Io {
        what: "count the cores".to_owned(),
        cause,
    })?;
    let last = count.get() - 1;
    Ok(Cores {
        server: last.to_string(),
        load: last.saturating_sub(1).to_string(),
    })
}
