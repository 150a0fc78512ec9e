//! Runs the examples of guide pages, so that no page promises what does not work.
//!
//! Each page plays in a fresh folder (with `public/index.html` in it), from top to bottom, with the
//! built `levee` and `levee-lab` on the path, and where the kernel allows it in a network of its
//! own, so that the ports that a page names are always free. What a page may contain stands in
//! `page/blocks.rs`, how output is compared in `page/pattern.rs`.

mod blocks;
mod pattern;
mod play;

use std::fs;
use std::process::{Command, Stdio};

use crate::command::{Failure, run as run_command};
use crate::workspace::{Workspace, failed};
use crate::{forward, tidy};

/// First argument of the call that plays a page inside its network.
const INSIDE: &str = "--inside";

/// Plays the pages named in the arguments.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => Err(Failure::Missing {
            what: "the page".to_owned(),
            way_out: "cargo xtask page docs/guide/NAME.md".to_owned(),
        }),
        [inside, pages @ ..] if inside == INSIDE => {
            // Without this even 127.0.0.1 cannot be reached in a fresh network.
            run_command(Command::new("ip").args(["link", "set", "lo", "up"]))?;
            pages.iter().try_for_each(|page| play_page(workspace, page))
        }
        pages => {
            forward::build(workspace)?;
            play_each(workspace, pages)
        }
    }
}

/// Plays the README and every page of the guide. The programs are built already.
pub fn run_all(workspace: &Workspace) -> Result<(), Failure> {
    let mut pages = tidy::tracked_files(workspace)?;
    let is_guide = |file: &str| file.starts_with("docs/guide/") && file.ends_with(".md");
    pages.retain(|file| file == "README.md" || is_guide(file));
    play_each(workspace, &pages)
}

fn play_each(workspace: &Workspace, pages: &[String]) -> Result<(), Failure> {
    let mut broken = 0;
    for page in pages {
        let result = match can_seal() {
            true => play_sealed(workspace, page),
            false => play_page(workspace, page),
        };
        match result {
            Ok(()) => println!("ok      {page}"),
            Err(failure) => {
                println!("FAILED  {page}: {failure}");
                broken += 1;
            }
        }
    }
    match broken {
        0 => Ok(()),
        _ => Err(Failure::Unexpected {
            story: format!("{broken} of {} pages failed", pages.len()),
        }),
    }
}

/// Whether this machine lets us make a network of our own.
fn can_seal() -> bool {
    let probe = Command::new("unshare")
        .args([
            "--map-root-user",
            "--net",
            "--",
            "ip",
            "link",
            "set",
            "lo",
            "up",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

fn play_sealed(workspace: &Workspace, page: &str) -> Result<(), Failure> {
    let ourselves = std::env::current_exe().map_err(|cause| Failure::Io {
        what: "find our own program".to_owned(),
        cause,
    })?;
    let mut command = Command::new("unshare");
    command
        .current_dir(&workspace.root)
        .args(["--map-root-user", "--net", "--"])
        .arg(ourselves)
        .args(["page", INSIDE, page]);
    run_command(&mut command)
}

fn play_page(workspace: &Workspace, page: &str) -> Result<(), Failure> {
    let path = workspace.root.join(page);
    let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
    let blocks = blocks::parse(&text).map_err(|complaint| Failure::Unexpected {
        story: format!("{page}:{complaint}"),
    })?;
    let name: String = page
        .chars()
        .map(|one| if one.is_alphanumeric() { one } else { '-' })
        .collect();
    let folder = workspace.fresh_folder(&format!("pages/{name}"))?;
    let public = folder.join("public");
    fs::create_dir_all(&public).map_err(failed("make", &public))?;
    let index = public.join("index.html");
    fs::write(&index, "<!doctype html><p>hello</p>\n").map_err(failed("write", &index))?;
    let mut stage = play::Stage::new(workspace, &folder);
    for block in &blocks {
        stage.play(block).map_err(|complaint| Failure::Unexpected {
            story: format!("{page}:{complaint}"),
        })?;
    }
    Ok(())
}
