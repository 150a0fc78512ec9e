//! How a browser is started that shows a page and reaches for nothing else. The browser tests of
//! `levee` and of the lab include this file, so all of them look with the same browser.

/// Debian's Chromium, headless. A profile and a URL are still to be added.
pub const WORDS: [&str; 10] = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];
