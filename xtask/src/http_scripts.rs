//! `scenarios/http/*.vtc`: the bytes on the wire, against a real server of a small folder.
//!
//! The scripts are those of Varnish's own test program, used as a client only: `${port}` is where
//! the server answers, and this file makes the folder that they ask about.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::command::{Failure, is_installed};
use crate::server::Server;
use crate::tidy;
use crate::workspace::{Workspace, failed};

/// Seconds after which a script has failed; each takes far less than one.
const SCRIPT_SECONDS: &str = "20";

/// Every port is picked by the kernel, and every name but the site's own is refused.
const SETTINGS: &str = r#"[site]
name = "site.localhost"
listen = ["127.0.0.1:0"]
folder = "./public"
unknown_host = "refuse"
cores = 1

[admin]
listen = "127.0.0.1:0"

[log]
access = "off"

[state]
folder = "./state"
"#;

/// When the files were last changed, so that scripts can name it: 1 January 2020.
const CHANGED: Duration = Duration::from_secs(1_577_836_800);

/// The folder that the scripts ask about.
const FILES: &[(&str, &str)] = &[
    (
        "index.html",
        "<!doctype html><title>levee</title><p>hello</p>\n",
    ),
    ("digits.txt", "0123456789"),
    ("below/index.html", "<!doctype html><title>below</title>\n"),
];

/// Runs every script and tells of each that failed.
pub fn run(workspace: &Workspace) -> Result<(), Failure> {
    if !is_installed("varnishtest") {
        return Err(Failure::Missing {
            what: "varnishtest".to_owned(),
            way_out: "it comes with Debian's package varnish".to_owned(),
        });
    }
    let scripts = scripts(workspace)?;
    let folder = workspace.fresh_folder("http-scripts")?;
    furnish(&folder)?;
    let server = Server::start(workspace, &folder, "levee.toml")?;
    let mut broken = Vec::new();
    for script in &scripts {
        match play(workspace, script, server.port)? {
            None => println!("ok      {script}"),
            Some(log) => {
                println!("FAILED  {script}\n{log}");
                broken.push(script.as_str());
            }
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected {
            story: format!("{} of {} scripts failed", broken.len(), scripts.len()),
        }),
    }
}

fn scripts(workspace: &Workspace) -> Result<Vec<String>, Failure> {
    let mut files = tidy::tracked_files(workspace)?;
    files.retain(|file| file.starts_with("scenarios/http/") && file.ends_with(".vtc"));
    match files.is_empty() {
        false => Ok(files),
        true => Err(Failure::Missing {
            what: "any script in scenarios/http/".to_owned(),
            way_out: "write one; its name is a sentence".to_owned(),
        }),
    }
}

fn furnish(folder: &Path) -> Result<(), Failure> {
    let settings = folder.join("levee.toml");
    fs::write(&settings, SETTINGS).map_err(failed("write", &settings))?;
    for (name, text) in FILES {
        let file = folder.join("public").join(name);
        let parent = file.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(failed("make", parent))?;
        fs::write(&file, text).map_err(failed("write", &file))?;
        fs::File::options()
            .write(true)
            .open(&file)
            .and_then(|open| open.set_modified(SystemTime::UNIX_EPOCH + CHANGED))
            .map_err(failed("date", &file))?;
    }
    Ok(())
}

/// Plays one script; its log when it failed.
fn play(workspace: &Workspace, script: &str, port: u16) -> Result<Option<String>, Failure> {
    let output = Command::new("varnishtest")
        .current_dir(&workspace.root)
        .args(["-q", "-t", SCRIPT_SECONDS])
        .arg(format!("-Dport={port}"))
        .arg(script)
        .output()
        .map_err(|cause| Failure::Io {
            what: "run varnishtest".to_owned(),
            cause,
        })?;
    Ok(match output.status.success() {
        true => None,
        false => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
    })
}
