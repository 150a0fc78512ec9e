//! The page docs/reference/cache-tests.md: the counts, and why each test that does not pass does
//! not.

use std::fs;

use super::reasons::Reasons;
use super::results::{Kind, Results, Test, spelt};
use super::{PACKAGE, VERSION};
use crate::command::Failure;
use crate::workspace::{Workspace, failed};

const FILE: &str = "docs/reference/cache-tests.md";
/// The package carries results of browsers too.
const BROWSERS: [&str; 3] = ["chrome", "firefox", "safari"];

/// The page's text.
pub fn write(results: &Results, reasons: &Reasons) -> String {
    let mut page = format!(
        "# Cache tests\n\n\
         Printed by `cargo xtask cache-tests`, which keeps it true.\n\
         The npm package `{PACKAGE}` {VERSION} asks a server through a cache and looks at what \
         comes: here through `levee serve` as a reverse proxy with default settings.\n\
         A required test is right or wrong by the RFCs as the package's author reads them; an \
         optimal one tells whether the cache uses what it may use; a check only asks how it \
         behaves, and \"no\" is no fault.\n\n"
    );
    page.push_str(&counts(results));
    page.push_str(&peers(results));
    for (kind, heading) in [
        (Kind::Required, "Required tests that do not pass"),
        (Kind::Optimal, "Optimal tests that do not pass"),
        (Kind::Check, "Checks that are answered with no"),
    ] {
        page.push_str(&explained(results, reasons, (kind, heading)));
    }
    page
}

fn counts(results: &Results) -> String {
    let mut text = String::from("| suite | required | optimal | checks |\n|---|---|---|---|\n");
    let suites = results
        .suites()
        .into_iter()
        .map(|suite| (suite, Some(suite)));
    for (name, suite) in suites.chain([("**all**", None)]) {
        let cells = Kind::ALL.map(|kind| spelt(results.count(kind, suite)));
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    text
}

fn peers(results: &Results) -> String {
    let mut text = String::from(
        "\n## Others\n\n\
         The package carries results of other proxies, counted here in the same way. They are as \
         old as the package, and a test that is younger than a result counts as not passed.\n\n\
         | proxy | required | optimal |\n|---|---|---|\n",
    );
    for (name, passed) in &results.peers {
        if !BROWSERS.contains(&&**name) {
            let of = |kind| passed.get(&kind).copied().unwrap_or_default();
            let (required, optimal) = (of(Kind::Required), of(Kind::Optimal));
            text.push_str(&format!("| {name} | {required} | {optimal} |\n"));
        }
    }
    let of = |kind| results.count(kind, None).0;
    let (required, optimal) = (of(Kind::Required), of(Kind::Optimal));
    text.push_str(&format!("| **levee** | {required} | {optimal} |\n"));
    text
}

fn explained(results: &Results, reasons: &Reasons, (kind, heading): (Kind, &str)) -> String {
    let mut text = format!("\n## {heading}\n");
    let mut any = false;
    for reason in &reasons.entries {
        let is_meant = |test: &&Test| test.kind == kind && reason.ids.contains(&test.id);
        let tests: Vec<&Test> = results.not_passed().filter(is_meant).collect();
        if tests.is_empty() {
            continue;
        }
        any = true;
        text.push_str(&format!("\n{}\n\n", reason.text));
        for test in tests {
            text.push_str(&format!("- `{}`: {}\n", test.id, test.name));
        }
    }
    if !any {
        text.push_str("\nNone.\n");
    }
    text
}

/// Compares the page with the one in the repository; `UPDATE_GOLDEN=1` writes it anew.
pub fn keep(workspace: &Workspace, page: &str) -> Result<(), Failure> {
    let file = workspace.root.join(FILE);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return fs::write(&file, page).map_err(failed("write", &file));
    }
    match fs::read_to_string(&file) {
        Ok(text) if text == page => Ok(()),
        Ok(_) | Err(_) => Err(Failure::Unexpected {
            story: format!("{FILE} is not what came out: UPDATE_GOLDEN=1 writes it anew"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_gives_each_failing_test_its_reason() {
        let report = "test\ta\tA\trequired\ta-1\tpass\tOne\t\n\
                      test\ta\tA\toptimal\ta-2\tfail\tTwo\tAssertion: no\n\
                      peer\tsquid\trequired\t120\npeer\tchrome\trequired\t99\n";
        let results = Results::read(report).unwrap();
        let reasons = Reasons::read("a-2\n  It would hurt.\n").unwrap();
        let page = write(&results, &reasons);
        assert!(page.contains("| A | 1 of 1 | 0 of 1 | - |"));
        assert!(page.contains("It would hurt.\n\n- `a-2`: Two\n"));
        assert!(page.contains("| squid | 120 | 0 |") && !page.contains("chrome"));
        assert!(page.contains("Required tests that do not pass\n\nNone.\n"));
    }
}
