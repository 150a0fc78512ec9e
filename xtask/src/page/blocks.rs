//! What a page may contain that is run.
//!
//! | fence | what happens |
//! |---|---|
//! | `console` | a line that begins with `$ ` is a command, what follows it the expected output |
//! | `console (serve)` | its one command goes on behind the page, once its output has come |
//! | `toml` | is given to `levee check` |
//! | `toml (name.toml)` | the same, and stays in the page's folder under this name |
//!
//! A command may go on in the next line after a backslash. Any other fence is for reading only.

use std::fmt;

/// One block that is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Commands that end by themselves.
    Console(Vec<Example>),
    /// A command that goes on in the background.
    Serve(Example),
    /// A settings file.
    Settings {
        /// Line of its fence, counted from 1.
        line: usize,
        /// Its name, if it is to stay.
        name: Option<String>,
        /// What is in it.
        text: String,
    },
}

/// A command and what it prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// Its line, counted from 1.
    pub line: usize,
    /// As typed into a shell.
    pub command: String,
    /// Expected output; where there is none, any will do.
    pub expected: Vec<String>,
}

/// What is wrong with a page, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Counted from 1.
    pub line: usize,
    /// A sentence.
    pub what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.what)
    }
}

/// All blocks of a page that are run, in order.
pub fn parse(page: &str) -> Result<Vec<Block>, Complaint> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else {
            continue;
        };
        let body: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
        blocks.extend(block(fence.trim(), index + 1, &body)?);
    }
    Ok(blocks)
}

fn block(fence: &str, line: usize, body: &[&str]) -> Result<Option<Block>, Complaint> {
    let (language, note) = match fence.split_once(' ') {
        Some((language, note)) => (language, note.trim()),
        None => (fence, ""),
    };
    let note = note
        .strip_prefix('(')
        .and_then(|note| note.strip_suffix(')'));
    match (language, note) {
        ("console", Some("serve")) => match &examples(line, body)?[..] {
            [example] => Ok(Some(Block::Serve(example.clone()))),
            _ => Err(Complaint {
                line,
                what: "a block that serves has exactly one command".to_owned(),
            }),
        },
        ("console", None) => Ok(Some(Block::Console(examples(line, body)?))),
        ("console", Some(note)) => Err(Complaint {
            line,
            what: format!("a console block may be marked (serve), not ({note})"),
        }),
        ("toml", name) => Ok(Some(Block::Settings {
            line,
            name: name.map(str::to_owned),
            text: body.join("\n") + "\n",
        })),
        _ => Ok(None),
    }
}

/// The commands of a block; `line` is that of its fence.
fn examples(line: usize, body: &[&str]) -> Result<Vec<Example>, Complaint> {
    let mut examples: Vec<Example> = Vec::new();
    let mut goes_on = false;
    for (index, text) in body.iter().enumerate() {
        let line = line + 1 + index;
        if let Some(command) = text.strip_prefix("$ ") {
            examples.push(Example {
                line,
                command: command.to_owned(),
                expected: Vec::new(),
            });
            goes_on = command.ends_with('\\');
            continue;
        }
        let Some(example) = examples.last_mut() else {
            return Err(Complaint {
                line,
                what: "a console block begins with a command: `$ …`".to_owned(),
            });
        };
        if goes_on {
            example.command.push('\n');
            example.command.push_str(text);
            goes_on = text.ends_with('\\');
        } else {
            example.expected.push((*text).to_owned());
        }
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_output_are_told_apart() {
        let page = "# A\n```console\n$ a \\\n  b\nout\n$ c\n```\n```text\n$ no\n```\n";
        let expected = Block::Console(vec![
            Example {
                line: 3,
                command: "a \\\n  b".to_owned(),
                expected: vec!["out".to_owned()],
            },
            Example {
                line: 6,
                command: "c".to_owned(),
                expected: Vec::new(),
            },
        ]);
        assert_eq!(parse(page), Ok(vec![expected]));
    }

    #[test]
    fn servers_and_settings_are_known_by_their_fences() {
        let page =
            "```toml (levee.toml)\n[site]\n```\n```console (serve)\n$ levee serve\nready\n```";
        let blocks = parse(page).unwrap();
        assert!(matches!(
            &blocks[0],
            Block::Settings { name: Some(name), text, .. } if name == "levee.toml" && text == "[site]\n"
        ));
        assert!(matches!(&blocks[1], Block::Serve(one) if one.command == "levee serve"));
    }

    #[test]
    fn a_block_that_makes_no_sense_is_refused_with_its_line() {
        assert_eq!(parse("\n```console\nout\n```").unwrap_err().line, 3);
        assert_eq!(parse("```console (later)\n$ a\n```").unwrap_err().line, 1);
        assert_eq!(parse("```console (serve)\n```").unwrap_err().line, 1);
    }
}
