//! The reference page of all settings is printed from their table, so it cannot fall behind.
//! `UPDATE_GOLDEN=1` writes it anew.

use std::path::Path;

#[test]
fn the_settings_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    let expected = levee::settings::reference_page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).expect("the docs folder is writable");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        page, expected,
        "run again with UPDATE_GOLDEN=1 and read the difference"
    );
}
