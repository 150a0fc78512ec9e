//! Writes HTML so that nothing from outside can become markup.
//!
//! Markup is `&'static str`, that is, written by us; everything else passes through [`Html::text`].

use std::fmt::{self, Write as _};

/// A page in the making.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Markup of our own.
    pub(crate) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Any text, escaped for element content and for quoted attributes.
    pub(crate) fn text(&mut self, text: impl fmt::Display) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = write!(Escaping(&mut self.0), "{text}");
        self
    }

    /// The whole page.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

struct Escaping<'a>(&'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                letter if letter.is_control() || is_direction(letter) => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        Ok(())
    }
}

/// A text for a terminal: control characters, which could move the cursor or worse, and characters
/// that turn the direction of reading become `\u{fffd}`.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            letter if letter.is_control() || is_direction(letter) => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

/// Marks that make a name read as another one.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        let mut html = Html::default();
        html.markup("<p title=\"").text("\"'<&>\u{202e}\n");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&#39;&lt;&amp;&gt;\u{fffd}\u{fffd}"
        );
        assert_eq!(plain("a\x1b[2Jb"), "a\u{fffd}[2Jb");
    }
}
