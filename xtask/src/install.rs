//! The programs of others that the tests need, and how they come onto the machine.
//!
//! `cargo xtask test` on a fresh machine must need no hand: as root it asks Debian's package
//! manager, once, for what is missing. Without root it says what to install, and the steps that
//! need it fail.

use std::path::Path;
use std::process::Command;

use crate::command::{Failure, is_installed, run};
use crate::workspace::failed;

/// A program of somebody else's.
struct Tool {
    program: &'static str,
    package: &'static str,
    for_what: &'static str,
}

/// Everything that `test` needs beside a Rust toolchain.
const TOOLS: &[Tool] = &[
    Tool {
        program: "chromium",
        package: "chromium",
        for_what: "the dashboard, a rescued page, and what pages load, in a real browser",
    },
    Tool {
        program: "curl",
        package: "curl",
        for_what: "examples of the guide, and redirects as a person follows them",
    },
    Tool {
        program: "dig",
        package: "bind9-dnsutils",
        for_what: "questions to name servers, BIND's and ours",
    },
    Tool {
        program: "dpkg-shlibdeps",
        package: "dpkg-dev",
        for_what: "the libraries that the Debian package names",
    },
    Tool {
        program: "faketime",
        package: "faketime",
        for_what: "dates that are set in the middle of a crowd",
    },
    Tool {
        program: "git",
        package: "git",
        for_what: "the list of files that tidy looks at",
    },
    Tool {
        program: "go",
        package: "golang-go",
        for_what: "how the conformance suite for HTTP/2 is built",
    },
    Tool {
        program: "haproxy",
        package: "haproxy",
        for_what: "what another server makes of odd requests, and of the PROXY protocol",
    },
    Tool {
        program: "ip",
        package: "iproute2",
        for_what: "a network of its own for each page of the guide",
    },
    Tool {
        program: "make",
        package: "make",
        for_what: "the build of jemalloc",
    },
    Tool {
        program: "named",
        package: "bind9",
        for_what: "the name server that takes our updates, and copies of our zones",
    },
    Tool {
        program: "nc",
        package: "netcat-openbsd",
        for_what: "the rescue protocol, spoken by a person",
    },
    Tool {
        program: "nghttp",
        package: "nghttp2-client",
        for_what: "trailers and early hints as a client of HTTP/2 shows them",
    },
    Tool {
        program: "nginx",
        package: "nginx",
        for_what: "what another server makes of odd requests, and of the PROXY protocol",
    },
    Tool {
        program: "node",
        package: "nodejs",
        for_what: "the suite of tests for caches",
    },
    Tool {
        program: "npm",
        package: "npm",
        for_what: "how that suite comes onto the machine",
    },
    Tool {
        program: "openssl",
        package: "openssl",
        for_what: "certificates, and another client for HTTPS",
    },
    Tool {
        program: "pebble",
        package: "pebble",
        for_what: "certificates from a real authority",
    },
    Tool {
        program: "slowhttptest",
        package: "slowhttptest",
        for_what: "visitors who are slow on purpose",
    },
    Tool {
        program: "tc",
        package: "iproute2",
        for_what: "a link that is narrow",
    },
    Tool {
        program: "valgrind",
        package: "valgrind",
        for_what: "instructions of a redirect, counted",
    },
    Tool {
        program: "varnishtest",
        package: "varnish",
        for_what: "HTTP scripts: the bytes on the wire",
    },
    Tool {
        program: "wrk",
        package: "wrk",
        for_what: "load on a redirecting server",
    },
];

/// How often an installation is tried: a mirror that hiccups once must not turn a build red.
const ATTEMPTS: usize = 2;

/// Installs what is missing, without asking anything.
pub fn run_installation() -> Result<(), Failure> {
    components()?;
    let missing: Vec<&Tool> = TOOLS
        .iter()
        .filter(|tool| !is_installed(tool.program))
        .collect();
    for tool in &missing {
        println!("missing: {} ({})", tool.package, tool.for_what);
    }
    if missing.is_empty() {
        println!("nothing is missing");
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    install(&packages)
}

/// Installs what a build needs beside a Rust toolchain and its C compiler: parts of some libraries
/// are written in C.
pub fn for_builds() -> Result<(), Failure> {
    let missing = BUILD_TOOLS.iter().filter(|tool| !is_installed(tool));
    install(&missing.copied().collect::<Vec<_>>())
}

/// Programs that have the name of their package.
const BUILD_TOOLS: &[&str] = &["make"];

/// Installs packages of Debian as root; without root, or elsewhere, says what is missing.
pub fn install(packages: &[&str]) -> Result<(), Failure> {
    if packages.is_empty() {
        return Ok(());
    }
    if !is_installed("apt-get") || !is_root() {
        return Err(Failure::Missing {
            what: packages.join(" "),
            way_out: format!("as root, `apt-get install {}`", packages.join(" ")),
        });
    }
    let _quiet = NoDaemons::begin()?;
    twice(|| run(apt_get().arg("update")))?;
    twice(|| {
        let mut command = apt_get();
        run(command
            .args(["install", "--yes", "--no-install-recommends"])
            .args(packages))
    })
}

/// While it lives, Debian's packages do not start their daemons: whoever runs our tests did not ask
/// for a web server on port 80. A policy that the machine has already is left alone.
struct NoDaemons {
    ours: Option<&'static Path>,
}

impl NoDaemons {
    fn begin() -> Result<Self, Failure> {
        let path = Path::new("/usr/sbin/policy-rc.d");
        if path.exists() {
            return Ok(Self { ours: None });
        }
        // 101: "action forbidden by policy", says Debian's invoke-rc.d.
        std::fs::write(path, "#!/bin/sh\nexit 101\n").map_err(failed("write", path))?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).map_err(failed("change", path))?;
        Ok(Self { ours: Some(path) })
    }
}

impl Drop for NoDaemons {
    fn drop(&mut self) {
        if let Some(path) = self.ours {
            // Left behind, it would only keep further packages quiet.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The formatter and the linter, which some minimal toolchains lack.
fn components() -> Result<(), Failure> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        // rustup puts a proxy on the path even where the component is missing, so it is asked.
        let answer = Command::new("cargo")
            .args([subcommand, "--version"])
            .output();
        let works = answer.is_ok_and(|output| output.status.success());
        if !works && is_installed("rustup") {
            run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .arg("--quiet")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(std::process::Stdio::null());
    command
}

fn twice(mut work: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let mut result = work();
    for _ in 1..ATTEMPTS {
        if let Err(failure) = &result {
            println!("trying again: {failure}");
            result = work();
        }
    }
    result
}

/// Whether we may do everything on this machine.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own entry in /proc is the user that we run as.
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_once_is_tried_again_and_what_fails_twice_has_failed() {
        let mut calls = 0;
        let once = twice(|| {
            calls += 1;
            match calls {
                1 => Err(Failure::NoWorkspace),
                _ => Ok(()),
            }
        });
        assert!(once.is_ok());
        assert_eq!(calls, 2);
        assert!(twice(|| Err(Failure::NoWorkspace)).is_err());
    }

    #[test]
    fn the_table_of_tools_is_sorted_and_says_what_each_is_for() {
        assert!(
            TOOLS
                .windows(2)
                .all(|pair| pair[0].program < pair[1].program)
        );
        assert!(TOOLS.iter().all(|tool| !tool.for_what.is_empty()));
    }
}
