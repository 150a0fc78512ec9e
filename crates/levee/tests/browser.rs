//! Looks at a page with a real browser (Debian's Chromium, headless), for the tests beside it.
//!
//! Takes a URL and gives back what stands in the page after its scripts ran, or a picture of it.
//! Each look has a profile of its own in a fresh folder, reaches for nothing else, and ends after a
//! while.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../../lab/src/emulated/experiments/community/tools/chromium.rs"]
mod chromium;

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longest look. A cold start on a busy machine takes some ten seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// Time that passes for the page's timers, in milliseconds: enough for a few reads a second apart.
const PAGE_TIME: u32 = 4000;

/// How to look at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// After its scripts ran for a few seconds of its own time.
    Live,
    /// As soon as it is loaded: for a page that reloads itself and so is never done.
    Loaded,
}

/// Size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Small.
    Phone,
    /// Large, and as long as the page.
    Desk,
    /// What a person sees without scrolling.
    Screen,
}

/// The page's document at `url`.
pub fn dom(url: &str, look: Look) -> String {
    run(look, &["--dump-dom", url])
}

/// The document of the page at `url`, once it is loaded, by HTTPS with certificates for the key of
/// this SHA-256 in base64.
pub fn dom_trusting(url: &str, key_hash: &str) -> String {
    let trusted = format!("--ignore-certificate-errors-spki-list={key_hash}");
    run(Look::Loaded, &[&trusted, "--dump-dom", url])
}

/// The same for names that nobody knows: all of them lead to this machine.
pub fn dom_of_any_name(url: &str, key_hash: &str) -> String {
    let trusted = format!("--ignore-certificate-errors-spki-list={key_hash}");
    let names = "--host-resolver-rules=MAP * 127.0.0.1";
    run(Look::Loaded, &[&trusted, names, "--dump-dom", url])
}

/// A picture of the page at `url`, written to `file`.
pub fn screenshot(url: &str, look: Look, window: Window, file: &Path) {
    let size = match window {
        Window::Phone => "--window-size=500,2600",
        Window::Desk => "--window-size=1280,1500",
        Window::Screen => "--window-size=1400,1000",
    };
    let file = format!("--screenshot={}", file.display());
    run(look, &[&file, size, "--hide-scrollbars", url]);
}

fn run(look: Look, arguments: &[&str]) -> String {
    let how = match look {
        Look::Live => format!("--virtual-time-budget={PAGE_TIME}"),
        Look::Loaded => "--blink-settings=scriptEnabled=true".to_owned(),
    };
    let profile = tempfile::tempdir().unwrap();
    let mut browser = chromium(profile.path())
        .arg(how)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium is installed (Debian's package `chromium`)");
    let mut stdout = browser.stdout.take().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut output = String::new();
        let read = stdout.read_to_string(&mut output);
        // Nobody listens any more when the patience was over.
        let _ = sender.send(read.map(|_| output));
    });
    let output = receiver.recv_timeout(PATIENCE);
    end(&mut browser);
    output
        .expect("the browser ends before the patience does")
        .unwrap()
}

/// A browser with a profile in `folder`, which reaches for nothing else.
fn chromium(folder: &Path) -> Command {
    let [program, flags @ ..] = chromium::WORDS;
    let mut command = Command::new(program);
    command
        .args(flags)
        .arg(format!("--user-data-dir={}", folder.display()));
    command
}

/// A browser that shows a page, in real time, until this is dropped.
pub struct Open {
    process: Child,
    _profile: tempfile::TempDir,
}

/// Opens the page at `url` in a browser with these flags.
pub fn open(url: &str, flags: &[String]) -> Open {
    let profile = tempfile::tempdir().unwrap();
    let process = chromium(profile.path())
        // Without it the browser would end at once.
        .arg("--remote-debugging-port=0")
        .args(flags)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium is installed (Debian's package `chromium`)");
    Open {
        process,
        _profile: profile,
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn end(browser: &mut Child) {
    // It has usually ended by itself; then there is nothing to kill.
    let _ = browser.kill();
    let _ = browser.wait();
}
