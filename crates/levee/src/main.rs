//! The command line: reads what is wanted, runs it, and says in a sentence what went wrong.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use levee::command::{CertificateAction, Command, CommandLine, Drill, DrillAction, Server};
use levee::drill::Wanted;
use levee::{admin_client, explain, manual, settings};
use levee_vocab::{Purge, PurgeError, PurgeKind};

/// See `levee_net::Allocator` for why it is not the one of the C library.
#[global_allocator]
static ALLOCATOR: levee_net::Allocator = levee_net::Allocator;

fn main() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Serve(serve) => levee::serve::run(&serve),
        Command::Registry(registry) => levee::serve::run_registry(&registry),
        Command::Community(wanted) => {
            levee::community_desk::run(&wanted).and_then(|report| say(format!("{report}\n")))
        }
        Command::Dns(order) => levee::serve::run_name_server(&order),
        Command::Check { file } => {
            levee::check::run(&file).and_then(|report| say(format!("{report}\n")))
        }
        Command::Explain {
            reference: true, ..
        } => say(settings::reference_page()),
        Command::Explain { file, .. } => explain::explain(file.as_deref()).and_then(say),
        Command::Reload { server } => reload(&server),
        Command::Purge {
            server,
            url,
            key,
            soft,
            json,
        } => purge(&server, purge_of(url, &key, soft), json),
        Command::Status { server, json } => show_status(&server, json),
        Command::Replay(replay) => levee::replay::run(&replay).and_then(say),
        Command::Drill(order) => drill(&order),
        Command::Certificate {
            action: CertificateAction::Local { names, folder },
        } => levee::local_authority::run(&names, &folder).and_then(say),
        Command::Top { server } => watch(&server),
        Command::Lab { arguments } => levee::lab::run(&arguments),
        Command::Completion { shell } => {
            let mut line = CommandLine::command();
            clap_complete::generate(shell, &mut line, "levee", &mut std::io::stdout());
            Ok(())
        }
        Command::Manual { folder } => manual::write(&folder),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("levee: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn reload(server: &Server) -> Result<(), String> {
    let admin = server.address()?;
    let sentence = levee::serve::small_runtime()?.block_on(admin_client::reload(admin))?;
    say(sentence)
}

/// Writes to the standard output. That nobody reads on (`levee status | head -3`) is no fault.
///
/// # Errors
/// Where it cannot be written for another reason, such as a disk that is full.
fn say(text: impl Display) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write the answer: {error}"))
        }
        _ => Ok(()),
    }
}

fn purge_of(url: Option<String>, keys: &[String], soft: bool) -> Result<Purge, PurgeError> {
    let kind = match soft {
        true => PurgeKind::Soft,
        false => PurgeKind::Hard,
    };
    match url {
        Some(url) => Purge::url(&url, kind),
        None => Purge::tags(&keys.join(" "), kind),
    }
}

/// Whoever waits for it in a script learns by the exit status whether it is done everywhere.
fn purge(server: &Server, purge: Result<Purge, PurgeError>, json: bool) -> Result<(), String> {
    let purge = purge.map_err(|error| error.to_string())?;
    let admin = server.address()?;
    let report = levee::serve::small_runtime()?.block_on(admin_client::purge(admin, &purge))?;
    match json {
        true => say(format!("{}\n", report.json()))?,
        false => say(&report)?,
    }
    report.confirmed_by_all()
}

/// Whoever drills in a script learns by the exit status whether there is something to mend.
fn drill(order: &Drill) -> Result<(), String> {
    let runtime = levee::serve::small_runtime()?;
    if let Some(DrillAction::Stop { server }) = &order.action {
        let sentence = runtime.block_on(levee::drill::stop(server.address()?))?;
        return say(format!("{sentence}\n"));
    }
    let admin = order.server.address()?;
    let wanted = Wanted {
        rate: order.rate,
        length: order.time,
        paths: order.path.clone(),
        authorities: order.ca.clone(),
    };
    let report = runtime.block_on(levee::drill::drill(
        admin,
        &wanted,
        levee::serve::told_to_stop(),
    ))?;
    match order.json {
        true => say(format!("{}\n", report.json()))?,
        false => say(&report)?,
    }
    report.is_well()
}

fn show_status(server: &Server, json: bool) -> Result<(), String> {
    let admin = server.address()?;
    let runtime = levee::serve::small_runtime()?;
    if json {
        let text = runtime.block_on(admin_client::status_text(admin))?;
        return say(format!("{text}\n"));
    }
    let status = runtime.block_on(admin_client::status(admin))?;
    say(levee_observe::render_status_text(&status))
}

/// Redraws once a second until the server is gone or the person has seen enough: by Ctrl-C, or by
/// reading no further.
fn watch(server: &Server) -> Result<(), String> {
    let admin = server.address()?;
    levee::serve::small_runtime()?.block_on(async {
        let mut ticks = tokio::time::interval(std::time::Duration::from_secs(1));
        loop {
            ticks.tick().await;
            let status = admin_client::status(admin).await?;
            let width = std::env::var("COLUMNS")
                .ok()
                .and_then(|text| text.parse().ok());
            // Clear the screen and go to its corner (ECMA-48), then draw.
            let screen = levee_observe::render_top(&status, width.unwrap_or(80));
            let mut out = io::stdout().lock();
            match write!(out, "\x1b[2J\x1b[H{screen}").and_then(|()| out.flush()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    })
}
