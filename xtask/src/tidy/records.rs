//! Rules about decision records and the changelog.

use super::documents::headings;
use super::{Tree, Violation};

/// What a decision record answers, in this order.
const DECISION_HEADINGS: &[&str] = &[
    "Context",
    "Decision",
    "What we gave up",
    "What would change our mind",
    "How to check",
];

/// Groups of the changelog, in this order; each may be left out.
const CHANGE_GROUPS: &[&str] = &["Changed behaviour", "Added", "Fixed", "Performance"];

/// Records are numbered without gaps and answer the same five questions.
pub fn decisions_have_their_headings(tree: &Tree) -> Vec<Violation> {
    let mut broken = Vec::new();
    let records = tree
        .with_ending(".md")
        .filter(|(path, _)| path.starts_with("docs/decisions/"));
    for (index, (path, text)) in records.enumerate() {
        let number = format!("{:04}", index + 1);
        let name = path.trim_start_matches("docs/decisions/");
        if !name.starts_with(&format!("{number}-")) {
            broken.push(Violation::new(
                path,
                format!("its number should be {number}"),
            ));
        }
        if !text.starts_with(&format!("# {number}. ")) {
            broken.push(Violation::at(
                path,
                0,
                format!("title should begin `# {number}. `"),
            ));
        }
        if headings(text) != DECISION_HEADINGS {
            let wanted = DECISION_HEADINGS.join(", ");
            broken.push(Violation::new(
                path,
                format!("headings are not {wanted}, in this order"),
            ));
        }
    }
    broken
}

/// The changelog has a place for the next change, and knows only its four groups.
pub fn changelog_begins_with_unreleased(tree: &Tree) -> Vec<Violation> {
    let path = "CHANGELOG.md";
    let text = tree.text(path);
    let mut broken = Vec::new();
    if headings(text).first() != Some(&"Unreleased") {
        broken.push(Violation::new(
            path,
            "its first heading is not `## Unreleased`",
        ));
    }
    for (index, line) in text.lines().enumerate() {
        let group = line.strip_prefix("### ");
        if group.is_some_and(|group| !CHANGE_GROUPS.contains(&group)) {
            let wanted = CHANGE_GROUPS.join(", ");
            broken.push(Violation::at(path, index, format!("groups are {wanted}")));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn a_record_without_its_headings_or_number_is_found() {
        let sections: Vec<String> = DECISION_HEADINGS
            .iter()
            .map(|heading| format!("## {heading}\n"))
            .collect();
        let good = format!("# 0001. Rings\n{}", sections.concat());
        let files = [
            ("docs/decisions/0001-rings.md", good.as_str()),
            ("docs/decisions/0003-gap.md", "# Gap\n## Context\n"),
        ];
        let expected = [
            "number should be 0002",
            "title should begin",
            "headings are not",
        ];
        expect(decisions_have_their_headings, &files, &expected);
    }

    #[test]
    fn a_changelog_without_a_place_for_the_next_change_is_found() {
        let good = "# Changelog\n\n## Unreleased\n\n### Added\n";
        expect(
            changelog_begins_with_unreleased,
            &[("CHANGELOG.md", good)],
            &[],
        );
        let bad = "# Changelog\n\n## 0.1.0\n\n### Misc\n";
        let expected = ["first heading", "CHANGELOG.md:5: groups are"];
        expect(
            changelog_begins_with_unreleased,
            &[("CHANGELOG.md", bad)],
            &expected,
        );
        expect(changelog_begins_with_unreleased, &[], &["first heading"]);
    }
}
