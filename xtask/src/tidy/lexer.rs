//! Tells code, comments and literals of a Rust file apart, so that a rule about code is not fooled
//! by a sentence, nor a rule about comments by a string.
//!
//! It knows just enough of the language: comments (nested too), strings, raw strings, characters.

/// What a character belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// One file, twice: only its code, and only its comments. Everything else is blank, line breaks
/// stay, so both have the lines of the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Code with comments and the insides of literals blanked.
    pub code: String,
    /// Comments with everything else blanked.
    pub comments: String,
}

impl Split {
    /// Takes a file apart. Any text will do; nonsense gives nonsense, never a panic.
    pub fn of(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut kinds = Vec::with_capacity(characters.len());
        let mut at = 0;
        while at < characters.len() {
            let (kind, length) = next(&characters, at);
            kinds.extend(std::iter::repeat_n(kind, length));
            at += length;
        }
        let keep = |wanted: Kind| {
            let pairs = characters.iter().zip(&kinds);
            pairs
                .map(|(&one, &kind)| match kind == wanted || one == '\n' {
                    true => one,
                    false => ' ',
                })
                .collect()
        };
        Self {
            code: keep(Kind::Code),
            comments: keep(Kind::Comment),
        }
    }
}

/// Kind and length of what begins at `at`; the length is at least 1.
fn next(text: &[char], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    let after_word = at > 0 && is_word(text[at - 1]);
    match rest {
        ['/', '/', ..] => (Kind::Comment, until(rest, '\n')),
        ['/', '*', ..] => (Kind::Comment, block_comment(rest)),
        ['"', ..] => (Kind::Literal, quoted(rest, '"')),
        ['\'', '\\', ..] => (Kind::Literal, quoted(rest, '\'')),
        ['\'', _, '\'', ..] => (Kind::Literal, 3),
        ['r', '"' | '#', ..] if !after_word => raw_string(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] if !after_word => raw_string(rest, 2),
        _ => (Kind::Code, 1),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn until(rest: &[char], end: char) -> usize {
    rest.iter()
        .position(|&one| one == end)
        .unwrap_or(rest.len())
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], end: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            one if one == end => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r##"…"##`, and the same after `b` or `c`; `r#name` is code.
fn raw_string(rest: &[char], prefix: usize) -> (Kind, usize) {
    let hashes = rest[prefix..].iter().take_while(|&&one| one == '#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&'"') {
        return (Kind::Code, 1);
    }
    let mut at = open + 1;
    while at < rest.len() {
        let closes = rest[at] == '"'
            && rest.len() > at + hashes
            && rest[at + 1..=at + hashes].iter().all(|&one| one == '#');
        if closes {
            return (Kind::Literal, at + 1 + hashes);
        }
        at += 1;
    }
    (Kind::Literal, rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str, comments: &str) {
        let split = Split::of(text);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&split.code), code, "code of {text}");
        assert_eq!(words(&split.comments), comments, "comments of {text}");
        assert_eq!(split.code.lines().count(), text.lines().count());
    }

    #[test]
    fn comments_and_literals_are_told_from_code() {
        check("a // b\nc", "a c", "// b");
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check(r#"a("b // \" c") d"#, "a( ) d", "");
        check(r##"a(r#"b "c" // d"#) e"##, "a( ) e", "");
        check(r#"let x = br"\"; y"#, "let x = ; y", "");
        check("f('\"', '\\'', b'x') // '", "f( , , b )", "// '");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}", "");
        check("r#type + for\"x\"", "r#type + for", "");
    }

    #[test]
    fn an_unfinished_file_does_not_panic() {
        for text in ["\"a", "/* a", "r#\"a", "'\\", "'", "r#"] {
            Split::of(text);
        }
    }
}
