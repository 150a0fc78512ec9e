//! Builds that begin before their step: `test` waits for real processes for minutes, most of which
//! the machine is idle.
//!
//! They have the lowest priority, so that a test hardly notices them, and say nothing: the step
//! that needs a build asks cargo for it again, waits for its lock, and shows what went wrong.

use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::command::{Failure, is_installed};
use crate::workspace::Workspace;
use crate::{forward, fuzz};

/// The builds under way.
pub struct Ahead(JoinHandle<()>);

impl Ahead {
    /// Begins with what `test` needs next.
    pub fn begin(workspace: &Workspace) -> Result<Self, Failure> {
        let mut builds = vec![fuzz::build_call(workspace)?];
        builds.extend(forward::build_calls(workspace));
        let builds: Vec<Command> = builds.iter().map(gently).collect();
        Ok(Self(thread::spawn(move || {
            for mut build in builds {
                // The step that needs it repeats it, and tells.
                let _ = build.status();
            }
        })))
    }

    /// Waits for the last of them: what comes then measures, and wants the machine for itself.
    pub fn finish(self) {
        // A build that panicked here is made by its step.
        let _ = self.0.join();
    }
}

/// The same call with the lowest priority, without a word.
fn gently(call: &Command) -> Command {
    let mut gentle = match is_installed("nice") {
        true => {
            let mut nice = Command::new("nice");
            nice.args(["-n", "19"]).arg(call.get_program());
            nice
        }
        false => Command::new(call.get_program()),
    };
    gentle.args(call.get_args()).stdin(Stdio::null());
    gentle.stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(folder) = call.get_current_dir() {
        gentle.current_dir(folder);
    }
    for (name, value) in call.get_envs() {
        match value {
            Some(value) => gentle.env(name, value),
            None => gentle.env_remove(name),
        };
    }
    gentle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gentle_call_is_the_same_call_with_the_lowest_priority() {
        let mut call = Command::new("sh");
        call.args([
            "-c",
            "test \"$(pwd)\" = / && test $WORD = said && test $(nice) = 19",
        ])
        .current_dir("/")
        .env("WORD", "said");
        assert!(is_installed("nice"));
        assert!(gently(&call).status().unwrap().success());
    }
}
