//! A program of somebody else's on an emulated host, such as BIND.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::LabError;
use super::network::Host;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The program.
    pub program: &'static str,
    /// Debian's package with it.
    pub package: &'static str,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// Variables of its environment.
    pub environment: &'a [(&'a str, &'a str)],
}

/// A running program. Dropped, it is ended.
#[derive(Debug)]
pub struct Program(Child);

impl Program {
    /// Starts it on `host`, at work in `folder`, where its messages go to a file `log`.
    pub fn start(host: &Host, folder: &Path, call: Call<'_>) -> Result<Self, LabError> {
        let is_there = Command::new(call.program)
            .arg("-v")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if is_there.is_err() {
            return Err(LabError::MissingTool {
                program: call.program,
                package: call.package,
            });
        }
        fs::create_dir_all(folder).map_err(LabError::machine("make a program's folder"))?;
        let log = File::create(folder.join("log")).map_err(LabError::machine("make a log"))?;
        let also = log.try_clone().map_err(LabError::machine("make a log"))?;
        let runner = host.runner();
        Command::new(&runner[0])
            .args(&runner[1..])
            .arg(call.program)
            .args(call.arguments)
            .envs(call.environment.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(also)
            .stderr(log)
            .spawn()
            .map(Self)
            .map_err(LabError::machine("run a program"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
