//! Stories: what happens to a community, step by step, with what must come of it.
//!
//! A story is a text of stanzas: comments that say what is being shown, commands, a line of dashes,
//! and the trace that the commands must give. Under the virtual clock the trace is exact;
//! `UPDATE_GOLDEN=1` writes it anew, and the difference is what a review reads.
//!
//! ```text
//! # The rescue server dies while the crowd is still here, so the origin asks again.
//! r1 dies
//! pass 5s
//! ----
//! 25.010s origin: lost out1: the link was closed
//! ```

mod command;
mod player;

use std::fmt::Write as _;
use std::path::Path;

use thiserror::Error;

pub use command::{Command, CommandError, Expectation, Happening, Membership, Setting};
pub use player::{Player, Unmet};

/// A story, as it stands in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    blocks: Vec<Block>,
}

/// What stands between two empty lines.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    /// Only comments.
    Prose(Vec<String>),
    /// Commands and what comes of them.
    Stanza {
        lines: Vec<String>,
        commands: Vec<(usize, Command)>,
        expected: Vec<String>,
    },
}

/// What a story gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The whole text with the trace as it was now.
    pub text: String,
    /// The first difference to what the file expects, for people.
    pub difference: Option<String>,
    /// What did not hold, if anything; the story ends there.
    pub failure: Option<StoryError>,
}

/// Why a story cannot be told to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoryError {
    /// A line is not a command.
    #[error("line {line}: {error}")]
    Command {
        /// Line number in the file.
        line: usize,
        /// What is wrong with it.
        error: CommandError,
    },
    /// A command names what is not there, or an expectation does not hold.
    #[error("line {line}: {unmet}")]
    Unmet {
        /// Line number in the file.
        line: usize,
        /// What does not hold.
        unmet: Unmet,
    },
    /// The file cannot be read.
    #[error("cannot read story {path}: {error}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        error: String,
    },
    /// An invariant was broken on the way.
    #[error("an invariant was broken: {0}")]
    Broken(String),
}

/// The line between commands and trace.
const DASHES: &str = "----";

impl Story {
    /// Reads the text of a story.
    pub fn parse(text: &str) -> Result<Self, StoryError> {
        let mut blocks = Vec::new();
        let mut block: Vec<(usize, &str)> = Vec::new();
        let numbered = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line));
        for (number, line) in numbered.chain([(0, "")]) {
            if !line.trim().is_empty() {
                block.push((number, line.trim_end()));
            } else if !block.is_empty() {
                blocks.push(Block::parse(&std::mem::take(&mut block))?);
            }
        }
        Ok(Self { blocks })
    }

    /// Reads a story file.
    pub fn read(path: &Path) -> Result<Self, StoryError> {
        let text = std::fs::read_to_string(path).map_err(|error| StoryError::Unreadable {
            path: path.display().to_string(),
            error: error.to_string(),
        })?;
        Self::parse(&text)
    }

    /// Plays the story in a new world that follows from `seed`.
    pub fn tell(&self, seed: u64) -> Told {
        let mut player = Player::new(seed);
        let mut told = Told {
            text: String::new(),
            difference: None,
            failure: None,
        };
        for block in &self.blocks {
            if !told.text.is_empty() {
                told.text.push('\n');
            }
            block.tell(&mut player, &mut told);
            if let Some(violation) = player.first_violation() {
                told.failure.get_or_insert(StoryError::Broken(violation));
            }
            if told.failure.is_some() {
                break;
            }
        }
        told
    }
}

impl Block {
    fn parse(lines: &[(usize, &str)]) -> Result<Self, StoryError> {
        let dashes = lines.iter().position(|(_, line)| *line == DASHES);
        let (before, after) = lines.split_at(dashes.unwrap_or(lines.len()));
        let owned = |lines: &[(usize, &str)]| -> Vec<String> {
            lines.iter().map(|(_, line)| (*line).to_owned()).collect()
        };
        let mut commands = Vec::new();
        for &(line, text) in before.iter().filter(|(_, text)| !text.starts_with('#')) {
            let command =
                Command::parse(text).map_err(|error| StoryError::Command { line, error })?;
            commands.push((line, command));
        }
        if commands.is_empty() {
            return Ok(Self::Prose(owned(lines)));
        }
        Ok(Self::Stanza {
            lines: owned(before),
            commands,
            expected: owned(after.get(1..).unwrap_or_default()),
        })
    }

    fn tell(&self, player: &mut Player, told: &mut Told) {
        let (lines, commands, expected) = match self {
            Self::Prose(lines) => return write_lines(&mut told.text, lines),
            Self::Stanza {
                lines,
                commands,
                expected,
            } => (lines, commands, expected),
        };
        let mut came = Vec::new();
        for (line, command) in commands {
            let line = *line;
            let failure = player.play(&mut came, command);
            if let Err(unmet) = failure {
                told.failure = Some(StoryError::Unmet { line, unmet });
                break;
            }
        }
        write_lines(&mut told.text, lines);
        write_lines(&mut told.text, &[DASHES.to_owned()]);
        write_lines(&mut told.text, &came);
        if told.difference.is_none() && came != *expected {
            told.difference = Some(describe_difference(lines, expected, &came));
        }
    }
}

fn write_lines(text: &mut String, lines: &[String]) {
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}

fn describe_difference(commands: &[String], expected: &[String], came: &[String]) -> String {
    let mut text = String::from("in the stanza\n");
    let longest = expected.len().max(came.len());
    let differs = |index: &usize| expected.get(*index) != came.get(*index);
    let first = (0..longest).find(differs).unwrap_or(0);
    for line in commands {
        let _ = writeln!(text, "  {line}");
    }
    let line_of = |lines: &[String]| lines.get(first).map_or("(nothing)", |line| line).to_owned();
    let _ = writeln!(text, "line {} of the trace", first + 1);
    let _ = writeln!(text, "  expected: {}", line_of(expected));
    let _ = writeln!(text, "  came:     {}", line_of(came));
    text
}

/// `levee-lab story PATH`: plays a story and prints it with what came of it.
pub fn story_command(path: &Path, seed: u64) -> Result<Verdict, StoryError> {
    let told = Story::read(path)?.tell(seed);
    print!("{}", told.text);
    match (told.failure, told.difference) {
        (Some(failure), _) => Err(failure),
        (None, Some(difference)) => {
            eprintln!("not as the story expects: {difference}");
            Ok(Verdict::Differs)
        }
        (None, None) => Ok(Verdict::AsExpected),
    }
}

/// How a story came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As its file says.
    AsExpected,
    /// Otherwise.
    Differs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_is_written_as_it_was_read_with_the_trace_of_now() {
        let text = "# About nothing.\n\n# Time passes.\npass 1s\n----\nnever\n";
        let story = Story::parse(text).expect("a good story");
        let told = story.tell(1);
        assert_eq!(
            told.text,
            "# About nothing.\n\n# Time passes.\npass 1s\n----\n"
        );
        let difference = told.difference.expect("nothing happens when time passes");
        assert!(difference.contains("expected: never"), "{difference}");
    }

    #[test]
    fn a_mistake_in_a_story_is_found_by_its_line() {
        let error =
            Story::parse("# One.\npass 1s\npass\n----\n").map_err(|error| error.to_string());
        assert_eq!(error.err().as_deref(), Some("line 3: not a command: pass"));
    }
}
