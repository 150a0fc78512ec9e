//! `h2spec`: what the conformance suite for HTTP/2 and HPACK says of us, in its strict mode.
//!
//! The suite is a program in Go. It is built below the target folder, pinned with all that it needs
//! to versions that Debian's own Go can build. It runs against the real server, in the clear by
//! prior knowledge and once more over TLS, for a page, for a file larger than every window and for
//! an error. Every test must pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, capture, is_installed, run as run_command};
use crate::forward;
use crate::server::{Server, site_port};
use crate::workspace::{Workspace, failed};

const SUITE: &str = "github.com/summerwind/h2spec";
const MODULES: &str = "module suite\n\ngo 1.17\n\nrequire (\n\
    \tgithub.com/fatih/color v1.15.0\n\
    \tgithub.com/spf13/cobra v1.7.0\n\
    \tgithub.com/summerwind/h2spec v2.2.1+incompatible\n\
    \tgolang.org/x/net v0.17.0\n)\n";
/// What is asked for: a small answer, one that does not fit the windows, an error.
const TARGETS: [&str; 3] = ["/", "/large.bin", "/missing"];

/// Builds the server and runs the suite. `--levee FILE` tests another build.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    match arguments {
        [] => {
            forward::build(workspace)?;
            test(workspace, &workspace.program("levee"))
        }
        [option, file] if option == "--levee" => test(workspace, Path::new(file)),
        _ => Err(Failure::Unexpected {
            story: "h2spec takes nothing, or `--levee FILE`".to_owned(),
        }),
    }
}

/// As [`run`], with a levee that is there already.
pub fn test(workspace: &Workspace, levee: &Path) -> Result<(), Failure> {
    let suite = build(workspace)?;
    let folder = workspace.fresh_folder("h2spec")?;
    furnish(&folder)?;
    for (name, tls, port_of) in [
        ("in the clear", None, site_port as fn(&str) -> Option<u16>),
        ("over TLS", Some(["-t", "-k"]), https_port),
    ] {
        let mut command = Command::new(levee);
        command
            .args(["serve", "-c", "levee.toml"])
            .current_dir(&folder);
        let server = Server::start_program(command, &folder.join("levee.log"), port_of)?;
        for target in TARGETS {
            let port = server.port.to_string();
            let mut command = Command::new(&suite);
            command
                .args(["-h", "localhost", "-p", &port, "-P", target, "-S"])
                .args(tls.iter().flatten());
            let last = last_line(&run_suite(&mut command)?);
            println!("{name}, {target}: {last}");
        }
    }
    Ok(())
}

/// Builds the suite where it is not built yet.
fn build(workspace: &Workspace) -> Result<PathBuf, Failure> {
    if !is_installed("go") {
        return Err(Failure::Missing {
            what: "go".to_owned(),
            way_out: "it comes with Debian's package golang-go".to_owned(),
        });
    }
    let home = workspace.target.join("xtask").join("h2spec-suite");
    let program = home.join("h2spec");
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&home).map_err(failed("make", &home))?;
    let modules = home.join("go.mod");
    fs::write(&modules, MODULES).map_err(failed("write", &modules))?;
    let mut go = Command::new("go");
    go.args(["build", "-mod=mod", "-o", "h2spec"])
        .arg(format!("{SUITE}/cmd/h2spec"))
        .current_dir(&home)
        .env("GOFLAGS", "");
    run_command(&mut go)?;
    Ok(program)
}

/// Settings, a certificate that nobody checks, and files.
fn furnish(folder: &Path) -> Result<(), Failure> {
    let public = folder.join("public");
    fs::create_dir_all(&public).map_err(failed("make", &public))?;
    let write =
        |path: PathBuf, content: &[u8]| fs::write(&path, content).map_err(failed("write", &path));
    write(public.join("index.html"), b"<!doctype html><p>hello</p>\n")?;
    write(public.join("large.bin"), &vec![b'x'; 1 << 20])?;
    write(
        folder.join("levee.toml"),
        b"[site]\nname = \"localhost\"\n\
          listen = [\"127.0.0.1:0\"]\nfolder = \"./public\"\n\n\
          [tls]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"site.pem\"\nkey = \"site.key\"\n\n\
          [admin]\nlisten = \"127.0.0.1:0\"\n",
    )?;
    let mut openssl = Command::new("openssl");
    openssl
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "9"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout", "site.key", "-out", "site.pem"])
        .current_dir(folder);
    capture(&mut openssl).map(drop)
}

/// Runs the suite; where a test fails, shows what it says of it.
fn run_suite(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .output()
        .map_err(failed("start", Path::new("h2spec")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && last_line(&text).contains(" 0 failed") {
        return Ok(text);
    }
    let failures = text
        .find("Failures:")
        .map_or(text.as_str(), |at| &text[at..]);
    Err(Failure::Unexpected {
        story: format!("h2spec: {failures}"),
    })
}

fn last_line(text: &str) -> String {
    text.trim_end()
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()
}

/// The port of https in the line that says that levee is ready.
fn https_port(line: &str) -> Option<u16> {
    site_port(line)?;
    let (_, rest) = line.split_once("https://")?;
    let authority = rest.split([',', '/']).next()?;
    authority.rsplit_once(':')?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_tells_the_port_of_https() {
        let line = "levee: ready, site http://a.example:8080, https://a.example:8443, admin \
                    http://127.0.0.1:9100";
        assert_eq!(https_port(line), Some(8443));
        assert_eq!(https_port("levee: ready, site http://a.example:8080"), None);
    }

    #[test]
    fn the_last_line_is_the_verdict() {
        let text = "Finished in 1 seconds\n146 tests, 146 passed, 0 skipped, 0 failed\n\n";
        assert_eq!(
            last_line(text),
            "146 tests, 146 passed, 0 skipped, 0 failed"
        );
    }
}
