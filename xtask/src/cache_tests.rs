//! `cache-tests`: what the npm package `http-cache-tests` says of us as a cache.
//!
//! ```text
//!  its client ──▶ levee, a reverse proxy ──▶ its server
//!      └─ results.json ─▶ report.mjs ─▶ counts, the page, and what is not as the table says
//! ```
//!
//! The package is installed below the target folder, pinned by its version. Whatever does not pass
//! needs a reason in `cache_tests/reasons.txt`; the page docs/reference/cache-tests.md is made from
//! the results and these reasons. So a test that stops passing fails the step, and so does one that
//! passes but still stands in the table.
//!
//! The suite waits for lifetimes of one and two seconds to be over and not to be over, so a machine
//! in a hiccup can fail a test that is well: what is not as expected is run a second time, with
//! everything else, and counts as passed if it passes then.

mod page;
mod reasons;
mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, capture, is_installed, run as run_command};
use crate::forward;
use crate::server::Server;
use crate::workspace::{Workspace, failed};
use reasons::Reasons;
use results::Results;

const PACKAGE: &str = "http-cache-tests";
const VERSION: &str = "0.4.5";
/// Our own script, which tells the package's results line by line.
const REPORT: &str = include_str!("cache_tests/report.mjs");

/// Runs the suite; fails where a result is not the one that the table of reasons expects.
/// `--levee FILE` tests another build than the release build.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let levee = match arguments {
        [] => {
            forward::build(workspace)?;
            workspace.program("levee")
        }
        [option, file] if option == "--levee" => PathBuf::from(file),
        _ => {
            return Err(Failure::Unexpected {
                story: "cache-tests takes nothing, or `--levee FILE`".to_owned(),
            });
        }
    };
    test(workspace, &levee)
}

/// As [`run`], with a levee that is there already.
pub fn test(workspace: &Workspace, levee: &Path) -> Result<(), Failure> {
    let suite = Suite::install(workspace)?;
    let reasons = Reasons::own()?;
    let mut results = suite.play(workspace, levee)?;
    if !reasons.unexpected(&results).is_empty() {
        println!("not all is as expected; once more, in case the machine had a hiccup");
        results.forgive(&suite.play(workspace, levee)?);
    }
    println!("{}", results.table());
    for test in results.not_passed() {
        println!("{}", test.line());
    }
    let unexpected = reasons.unexpected(&results);
    if !unexpected.is_empty() {
        return Err(Failure::Unexpected {
            story: format!(
                "not as {} says:\n  {}",
                reasons::FILE,
                unexpected.join("\n  ")
            ),
        });
    }
    page::keep(workspace, &page::write(&results, &reasons))
}

/// The installed package.
struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// The package of the pinned version; fetched from npm's registry where it is not there yet.
    fn install(workspace: &Workspace) -> Result<Self, Failure> {
        for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
            if !is_installed(program) {
                return Err(Failure::Missing {
                    what: program.to_owned(),
                    way_out: format!("it comes with Debian's package {package}"),
                });
            }
        }
        let home = workspace.target.join("xtask").join(PACKAGE);
        fs::create_dir_all(&home).map_err(failed("make", &home))?;
        let folder = home.join("node_modules").join(PACKAGE);
        let wanted = format!("\"version\": \"{VERSION}\"");
        let there = fs::read_to_string(folder.join("package.json"));
        if !there.is_ok_and(|text| text.contains(&wanted)) {
            let mut npm = Command::new("npm");
            npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--silent", "--prefix"])
                .arg(&home)
                .arg(format!("{PACKAGE}@{VERSION}"));
            run_command(&mut npm)?;
        }
        Ok(Self { folder })
    }

    /// One run of everything.
    fn play(&self, workspace: &Workspace, levee: &Path) -> Result<Results, Failure> {
        let folder = workspace.fresh_folder("cache-tests")?;
        let mut origin = Command::new("node");
        origin
            .arg("server/server.mjs")
            .current_dir(&self.folder)
            .env("npm_config_protocol", "http")
            .env("npm_config_port", "0")
            .env("npm_config_pidfile", folder.join("origin.pid"));
        let origin = Server::start_program(origin, &folder.join("origin.log"), listening_port)?;
        let settings = folder.join("levee.toml");
        fs::write(&settings, levee_settings(origin.port)).map_err(failed("write", &settings))?;
        let levee = Server::start_levee(levee, &folder, "levee.toml")?;
        let mut client = Command::new("node");
        client
            .args(["--no-warnings", "cli.mjs"])
            .current_dir(&self.folder)
            .env(
                "npm_config_base",
                format!("http://127.0.0.1:{}", levee.port),
            )
            // Not one test: all.
            .env("npm_config_id", "")
            .env("npm_package_config_id", "");
        let json = folder.join("results.json");
        fs::write(&json, capture(&mut client)?).map_err(failed("write", &json))?;
        let script = folder.join("report.mjs");
        fs::write(&script, REPORT).map_err(failed("write", &script))?;
        let mut report = Command::new("node");
        report.arg(script).arg(json).current_dir(&self.folder);
        Results::read(&capture(&mut report)?)
    }
}

/// Everything by default, on ports that the kernel picks.
fn levee_settings(origin: u16) -> String {
    format!(
        "[site]\nname = \"site.localhost\"\nlisten = [\"127.0.0.1:0\"]\n\
         upstream = \"http://127.0.0.1:{origin}\"\n\n[admin]\nlisten = \"127.0.0.1:0\"\n"
    )
}

/// The port in `Listening on http://[::]:8000/`.
fn listening_port(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("Listening on ")?;
    rest.trim_end_matches('/').rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_suites_server_tells_its_port() {
        let port = listening_port("Listening on http://[::]:40123/");
        assert_eq!(port, Some(40123));
        assert_eq!(listening_port("PID file write error"), None);
    }
}
