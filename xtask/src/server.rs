//! A real server for the length of a test, on ports that the kernel picks: `levee serve`, or a
//! program of somebody else's that stands behind it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::command::Failure;
use crate::workspace::{Workspace, failed};

/// Longest time from the start of the process to its ready line, on a busy machine.
const READY_MAX: Duration = Duration::from_secs(20);

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Port on which requests are answered.
    pub port: u16,
}

impl Server {
    /// Starts the built `levee` in `folder` with the settings file of this name there, and waits
    /// until it is ready. What it logs goes to `levee.log` in the same folder.
    pub fn start(workspace: &Workspace, folder: &Path, settings: &str) -> Result<Self, Failure> {
        Self::start_levee(&workspace.program("levee"), folder, settings)
    }

    /// As [`Server::start`], for a `levee` that lies elsewhere.
    pub fn start_levee(program: &Path, folder: &Path, settings: &str) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(["serve", "-c", settings]).current_dir(folder);
        Self::start_program(command, &folder.join("levee.log"), site_port)
    }

    /// Starts any server and waits for the line of its output in which `port_of` finds the port.
    /// What it writes to its standard error goes to the file `log`.
    pub fn start_program(
        mut command: Command,
        log: &Path,
        port_of: fn(&str) -> Option<u16>,
    ) -> Result<Self, Failure> {
        let program = command.get_program().to_owned();
        let errors = std::fs::File::create(log).map_err(failed("create", log))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(failed("start", Path::new(&program)))?;
        let lines = child.stdout.take().map(BufReader::new);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // The pipe is read to its end, so that the server never waits for us.
            for line in lines
                .into_iter()
                .flat_map(BufRead::lines)
                .map_while(Result::ok)
            {
                if let Some(port) = port_of(&line) {
                    let _ = sender.send(port);
                }
            }
        });
        match receiver.recv_timeout(READY_MAX) {
            Ok(port) => Ok(Self { child, port }),
            Err(_) => {
                end(&mut child);
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let program = program.to_string_lossy();
                Err(Failure::Unexpected {
                    story: format!("{program} printed no ready line; its log:\n{log}"),
                })
            }
        }
    }
}

impl Server {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended by itself; then there is nothing to end.
    let _ = child.kill();
    let _ = child.wait();
}

/// The port in `levee: ready, site http://news.localhost:8080, admin http://127.0.0.1:9100`.
pub fn site_port(line: &str) -> Option<u16> {
    let rest = line.strip_prefix("levee: ready, site http://")?;
    let authority = rest.split([',', '/']).next()?;
    match authority.rsplit_once(':') {
        Some((_, port)) => port.trim().parse().ok(),
        None => Some(80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_tells_the_port() {
        let line = "levee: ready, site http://news.localhost:8080, admin http://127.0.0.1:9100";
        assert_eq!(site_port(line), Some(8080));
        assert_eq!(site_port("levee: ready, site http://example.org"), Some(80));
        assert_eq!(site_port("levee registry: ready on 127.0.0.1:7070"), None);
    }
}
