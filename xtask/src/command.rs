//! Running other programs, and what can go wrong with it.

use std::fmt;
use std::io;
use std::process::{Command, ExitStatus};

use crate::workspace::Workspace;

/// Why a command or a step failed.
#[derive(Debug)]
pub enum Failure {
    /// No such command at the front door.
    UnknownCommand {
        /// What was typed.
        name: String,
    },
    /// Not started inside the repository.
    NoWorkspace,
    /// The operating system refused.
    Io {
        /// What was tried, on what.
        what: String,
        /// Why it was refused.
        cause: io::Error,
    },
    /// A program ran and said no.
    Status {
        /// The call, as one would type it.
        call: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A program or file that is needed is not there.
    Missing {
        /// What.
        what: String,
        /// How to get it.
        way_out: String,
    },
    /// The house rules were broken; the lines were printed already.
    Untidy {
        /// How many times.
        violations: usize,
    },
    /// An example, script or server did not behave as promised.
    Unexpected {
        /// What was promised and what came, for people.
        story: String,
    },
    /// Some steps failed; they were printed already.
    Steps {
        /// How many.
        failed: usize,
    },
}

impl Failure {
    /// The exit status to pass on: that of the program that failed, where there is one.
    pub fn status(&self) -> u8 {
        match self {
            Self::Status { status, .. } => status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .filter(|&code| code != 0)
                .unwrap_or(1),
            Self::UnknownCommand { .. } => 2,
            Self::NoWorkspace
            | Self::Io { .. }
            | Self::Missing { .. }
            | Self::Untidy { .. }
            | Self::Unexpected { .. }
            | Self::Steps { .. } => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownCommand { name } => {
                write!(f, "no command `{name}`: `cargo xtask` lists all of them")
            }
            Self::NoWorkspace => {
                f.write_str("not inside the repository: no folder above has xtask/")
            }
            Self::Io { what, cause } => write!(f, "cannot {what}: {cause}"),
            Self::Status { call, status } => write!(f, "`{call}` failed ({status})"),
            Self::Missing { what, way_out } => write!(f, "{what} is missing: {way_out}"),
            Self::Untidy { violations } => write!(f, "{violations} rules of the house are broken"),
            Self::Unexpected { story } => f.write_str(story),
            Self::Steps { failed } => write!(f, "{failed} steps failed"),
        }
    }
}

/// A cargo call at the root of the workspace, by the cargo that started us.
pub fn cargo(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&workspace.root).args(arguments);
    if !workspace.is_for_work {
        command
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "none");
    }
    command
}

/// Runs it to its end with our own terminal.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let call = spell(command);
    let status = command.status().map_err(|cause| Failure::Io {
        what: format!("run `{call}`"),
        cause,
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Status { call, status }),
    }
}

/// Runs it to its end and returns what it wrote to its standard output.
pub fn capture(command: &mut Command) -> Result<String, Failure> {
    let call = spell(command);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|cause| Failure::Io {
            what: format!("run `{call}`"),
            cause,
        })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Failure::Status {
            call,
            status: output.status,
        }),
    }
}

/// Whether a program of this name lies on the search path.
pub fn is_installed(program: &str) -> bool {
    // Debian keeps some tools where only root looks.
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file())
}

/// The call as one would type it, with the program's file name only.
fn spell(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let mut call = name.to_string_lossy().into_owned();
    for argument in command.get_args() {
        call.push(' ');
        call.push_str(&argument.to_string_lossy());
    }
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_passes_on_its_exit_status_and_its_call() {
        let failure = run(Command::new("/bin/sh").args(["-c", "exit 7"])).unwrap_err();
        assert_eq!(failure.status(), 7);
        assert!(failure.to_string().starts_with("`sh -c exit 7` failed"));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_fails() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no-such-program-of-levee"));
        let failure = run(&mut Command::new("no-such-program-of-levee")).unwrap_err();
        assert!(matches!(failure, Failure::Io { .. }));
    }
}
