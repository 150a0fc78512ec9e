//! Plays the blocks of one page, in its folder.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::blocks::{Block, Complaint, Example};
use super::pattern;
use crate::workspace::Workspace;

/// Longest time for a command, and for a server until it has printed what the page shows.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time between two looks at a running command.
const GLANCE: Duration = Duration::from_millis(20);

/// A page's folder, and the servers that run in it.
#[derive(Debug)]
pub struct Stage<'a> {
    workspace: &'a Workspace,
    folder: &'a Path,
    servers: Vec<Child>,
    commands: usize,
}

impl<'a> Stage<'a> {
    /// An empty stage.
    pub fn new(workspace: &'a Workspace, folder: &'a Path) -> Self {
        Self {
            workspace,
            folder,
            servers: Vec::new(),
            commands: 0,
        }
    }

    /// Plays one block to its end, or until its server is ready.
    pub fn play(&mut self, block: &Block) -> Result<(), Complaint> {
        match block {
            Block::Console(examples) => examples.iter().try_for_each(|one| self.run(one)),
            Block::Serve(example) => self.serve(example),
            Block::Settings { line, name, text } => {
                let file = name.as_deref().unwrap_or("unnamed.toml");
                let written = fs::write(self.folder.join(file), text);
                written
                    .map_err(|cause| complaint(*line, format!("cannot write {file}: {cause}")))?;
                self.run(&Example {
                    line: *line,
                    command: format!("levee check {file}"),
                    expected: Vec::new(),
                })
            }
        }
    }

    /// Runs a command to its end. Where the page shows output, that is what counts; where it shows
    /// none, the exit status does.
    fn run(&mut self, example: &Example) -> Result<(), Complaint> {
        let (mut child, printed) = self.start(example)?;
        let start = Instant::now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if start.elapsed() < PATIENCE => thread::sleep(GLANCE),
                Ok(None) | Err(_) => {
                    end(&mut child, "KILL");
                    let said = read(&printed);
                    return Err(complaint(
                        example.line,
                        format!("did not end; it said:\n{said}"),
                    ));
                }
            }
        };
        let said = read(&printed);
        let is_as_shown = match example.expected.is_empty() {
            true => status.success(),
            false => pattern::matches(&example.expected, &said),
        };
        match is_as_shown {
            true => Ok(()),
            false => Err(differs(example, &format!("{status}"), &said)),
        }
    }

    /// Starts a command that goes on, and waits until it has printed what the page shows.
    fn serve(&mut self, example: &Example) -> Result<(), Complaint> {
        let (mut child, printed) = self.start(example)?;
        let start = Instant::now();
        loop {
            if pattern::begins(&example.expected, &read(&printed)) {
                self.servers.push(child);
                return Ok(());
            }
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || start.elapsed() > PATIENCE {
                end(&mut child, "KILL");
                let state = ended.map_or("still running".to_owned(), |status| status.to_string());
                return Err(differs(example, &state, &read(&printed)));
            }
            thread::sleep(GLANCE);
        }
    }

    /// Starts a command in its own process group; what it prints goes to the returned file.
    fn start(&mut self, example: &Example) -> Result<(Child, std::path::PathBuf), Complaint> {
        self.commands += 1;
        let path = self.folder.join(format!(".printed-{}", self.commands));
        let problem = |cause: std::io::Error| {
            complaint(
                example.line,
                format!("cannot run `{}`: {cause}", example.command),
            )
        };
        let printed = File::create(&path).map_err(problem)?;
        let errors = printed.try_clone().map_err(problem)?;
        let mut search = self.workspace.target.join("release").into_os_string();
        search.push(":");
        search.push(std::env::var_os("PATH").unwrap_or_default());
        let child = Command::new("bash")
            .args(["-c", &example.command])
            .current_dir(self.folder)
            .env("PATH", search)
            .env("HOME", self.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(errors)
            .spawn()
            .map_err(problem)?;
        Ok((child, path))
    }
}

/// The servers of a page end with it.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for server in self.servers.iter_mut().rev() {
            end(server, "TERM");
        }
    }
}

/// Sends a signal to the whole process group, and makes sure after a while that it is gone.
fn end(child: &mut Child, signal: &str) {
    signal_group(child, signal);
    let start = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if start.elapsed() > Duration::from_secs(10) {
            signal_group(child, "KILL");
            let _ = child.wait();
            return;
        }
        thread::sleep(GLANCE);
    }
}

fn signal_group(child: &Child, signal: &str) {
    let group = format!("-{}", child.id());
    // A group that has ended already cannot be signalled, which is what we want of it.
    let _ = Command::new("bash")
        .args(["-c", "kill -s \"$0\" -- \"$1\" 2>/dev/null", signal, &group])
        .status();
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn differs(example: &Example, state: &str, said: &str) -> Complaint {
    let shown = match example.expected.is_empty() {
        true => "(success)".to_owned(),
        false => example.expected.join("\n"),
    };
    let command = &example.command;
    complaint(
        example.line,
        format!("$ {command}\n--- the page shows\n{shown}\n--- it said ({state})\n{said}"),
    )
}

fn complaint(line: usize, what: String) -> Complaint {
    Complaint { line, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &[&str], answer: Result<(), &str>) {
        let workspace = Workspace::find().unwrap();
        let name = format!("tests/{}", command.len() * 1000 + expected.len());
        let folder = workspace.fresh_folder(&name).unwrap();
        let mut stage = Stage::new(&workspace, &folder);
        let example = Example {
            line: 7,
            command: command.to_owned(),
            expected: expected.iter().map(|line| (*line).to_owned()).collect(),
        };
        match (stage.play(&Block::Console(vec![example])), answer) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(part)) => assert!(found.to_string().contains(part), "{found}"),
            (found, answer) => panic!("{command}: {found:?}, but expected {answer:?}"),
        }
    }

    #[test]
    fn a_command_is_judged_by_its_output_or_else_by_its_status() {
        check("echo a; echo b >&2", &["a", "b"], Ok(()));
        check("false", &[], Err("7: $ false"));
        check("echo no; false", &["no"], Ok(()));
        check(
            "echo two",
            &["one"],
            Err("--- it said (exit status: 0)\ntwo"),
        );
    }

    #[test]
    fn a_server_runs_until_the_page_ends() {
        let workspace = Workspace::find().unwrap();
        let folder = workspace.fresh_folder("tests/server").unwrap();
        let mut stage = Stage::new(&workspace, &folder);
        let example = |command: &str, expected: &str| Example {
            line: 1,
            command: command.to_owned(),
            expected: vec![expected.to_owned()],
        };
        let server = "trap 'echo bye > ended; exit' TERM; echo ready; sleep 60 & wait";
        stage.play(&Block::Serve(example(server, "ready"))).unwrap();
        assert!(!folder.join("ended").exists());
        drop(stage);
        assert_eq!(fs::read_to_string(folder.join("ended")).unwrap(), "bye\n");
        let mut stage = Stage::new(&workspace, &folder);
        let dead = stage.play(&Block::Serve(example("echo gone", "ready")));
        assert!(dead.unwrap_err().what.contains("gone"));
    }
}
