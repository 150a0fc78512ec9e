//! Plants a breach of each rule about Rust files and sees that it is found, and nothing else.

use super::super::expect;
use super::*;

#[test]
fn a_file_without_a_header_is_found() {
    let files = [("a.rs", "//! Why.\n"), ("b.rs", "use x;\n"), ("c.rs", "")];
    expect(
        begin_with_a_header,
        &files,
        &["b.rs: does not open", "c.rs: does not open"],
    );
}

#[test]
fn a_long_file_is_found_and_its_tests_do_not_count() {
    let long = "//! x\n".repeat(LINES_MAX + 1);
    let tested = format!(
        "//! x\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        "x\n".repeat(LINES_MAX)
    );
    let files = [
        ("a.rs", long.as_str()),
        ("b.rs", tested.as_str()),
        ("crates/x/tests/c.rs", long.as_str()),
    ];
    expect(stay_short, &files, &["a.rs: 601 lines"]);
}

#[test]
fn a_long_line_is_found_unless_it_is_one_word() {
    let long = format!("// {}", "ab ".repeat(40));
    let word = format!("// {}", "a".repeat(120));
    let string = format!("f(\"{}\")", "ab ".repeat(40));
    let files = [
        ("a.rs", long.as_str()),
        ("b.rs", word.as_str()),
        ("c.rs", string.as_str()),
    ];
    expect(fit_the_line, &files, &["a.rs:1: 122 columns"]);
}

#[test]
fn unsafe_outside_net_is_found_but_not_in_prose() {
    let files = [
        (
            "crates/net/src/a.rs",
            "#![allow(unsafe_code)]\nunsafe { x() }",
        ),
        (
            "crates/proxy/src/a.rs",
            "// unsafe\n\"unsafe\";\nunsafe { x() }",
        ),
        ("crates/proxy/src/b.rs", "#![allow(unsafe_code)]"),
    ];
    let expected = ["crates/proxy/src/a.rs:3:", "crates/proxy/src/b.rs:1:"];
    expect(keep_unsafe_in_net, &files, &expected);
}

#[test]
fn an_unsafe_block_without_a_reason_is_found() {
    let good = "// SAFETY: the pointer\n// is ours.\nlet x = unsafe { f() };";
    let files = [("a.rs", good), ("b.rs", "let x = unsafe { f() };")];
    expect(explain_unsafe, &files, &["b.rs:1: unsafe without"]);
}

#[test]
fn unfinished_code_is_found_but_not_in_strings() {
    let files = [
        ("a.rs", "fn f() { todo!() }\n#[ignore = \"slow\"]"),
        ("b.rs", "let x = \"todo!\"; // dbg!"),
    ];
    expect(
        avoid_banned_code,
        &files,
        &["a.rs:1: `todo!`", "a.rs:2: `#[ignore`"],
    );
}

#[test]
fn comments_that_promise_a_later_day_are_found() {
    let files = [
        (
            "a.rs",
            "// TODO later\n// TODO(#12): more\n// TODO(#x): more",
        ),
        (
            "b.rs",
            "x; // good enough for now\n/// A stub.\n// stubborn, as it asks for now",
        ),
        ("c.rs", "let x = \"TODO\";"),
    ];
    let expected = ["a.rs:1:", "a.rs:3:", "b.rs:1:", "b.rs:2:"];
    expect(avoid_banned_words, &files, &expected);
}

#[test]
fn a_file_named_mod_is_found() {
    expect(
        use_named_files,
        &[("a/mod.rs", ""), ("a/model.rs", "")],
        &["a/mod.rs:"],
    );
}
