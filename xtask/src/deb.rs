//! `deb`: a Debian package of the release build.
//!
//! Everything that is put into it lies in `deploy/` or is printed by the binary itself (manual
//! pages, shell completions), so a package cannot tell of another version than its own. Debian's
//! `dpkg-deb` packs it and `dpkg-shlibdeps` says which libraries it needs. No package is installed
//! to test one: it is unpacked into a folder, and what lies there is run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Failure, capture, run};
use crate::forward;
use crate::workspace::{Workspace, failed};

/// Files of the repository, where they go, and with which permissions.
const FILES: &[(&str, &str, u32)] = &[
    ("deploy/deb/levee.toml", "etc/levee/levee.toml", 0o644),
    ("deploy/deb/levee.logrotate", "etc/logrotate.d/levee", 0o644),
    (
        "deploy/systemd/levee.service",
        "lib/systemd/system/levee.service",
        0o644,
    ),
    (
        "deploy/systemd/levee.socket",
        "lib/systemd/system/levee.socket",
        0o644,
    ),
    (
        "deploy/systemd/levee.sysusers",
        "usr/lib/sysusers.d/levee.conf",
        0o644,
    ),
    (
        "deploy/grafana-dashboard.json",
        "usr/share/doc/levee/grafana-dashboard.json",
        0o644,
    ),
    ("README.md", "usr/share/doc/levee/README.md", 0o644),
    ("CHANGELOG.md", "usr/share/doc/levee/CHANGELOG.md", 0o644),
    ("LICENSE-MIT", "usr/share/doc/levee/copyright", 0o644),
    ("deploy/deb/postinst", "DEBIAN/postinst", 0o755),
    ("deploy/deb/prerm", "DEBIAN/prerm", 0o755),
    ("deploy/deb/postrm", "DEBIAN/postrm", 0o755),
];

/// Where each shell looks for completions.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/levee"),
    ("zsh", "usr/share/zsh/vendor-completions/_levee"),
    ("fish", "usr/share/fish/vendor_completions.d/levee.fish"),
];

/// Builds the package and tells where it lies.
pub fn run_packing(workspace: &Workspace, _arguments: &[String]) -> Result<(), Failure> {
    forward::build(workspace)?;
    let package = pack(workspace)?;
    println!("{}", package.display());
    Ok(())
}

/// Packs what is built, unpacks it elsewhere, and runs what came out.
pub fn check(workspace: &Workspace) -> Result<(), Failure> {
    let package = pack(workspace)?;
    let unpacked = workspace.fresh_folder("deb-unpacked")?;
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .arg(&package)
        .arg(&unpacked))?;
    let levee = unpacked.join("usr/bin/levee");
    // The folder that the shipped settings serve is there on a machine with any web server.
    let site = workspace.fresh_folder("deb-site")?;
    let shipped = unpacked.join("etc/levee/levee.toml");
    let text = fs::read_to_string(&shipped).map_err(failed("read", &shipped))?;
    let text = text.replace("/var/www/html", &site.display().to_string());
    let settings = site.join("levee.toml");
    fs::write(&settings, text).map_err(failed("write", &settings))?;
    run(Command::new(&levee).arg("check").arg(&settings))?;
    for (_, path) in COMPLETIONS {
        expect(&unpacked.join(path), "levee")?;
    }
    let manual = unpacked.join("usr/share/man/man5/levee.toml.5.gz");
    let manual = capture(
        Command::new("gzip")
            .args(["--decompress", "--stdout"])
            .arg(manual),
    )?;
    match manual.contains("[rescue]") {
        true => Ok(()),
        false => Err(Failure::Unexpected {
            story: "the manual of the settings has no [rescue]".to_owned(),
        }),
    }
}

fn expect(file: &Path, word: &str) -> Result<(), Failure> {
    let text = fs::read_to_string(file).map_err(failed("read", file))?;
    match text.contains(word) {
        true => Ok(()),
        false => Err(Failure::Unexpected {
            story: format!("{} does not speak of {word}", file.display()),
        }),
    }
}

/// Lays the package out and packs it.
fn pack(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let tree = workspace.fresh_folder("deb")?;
    let levee = tree.join("usr/bin/levee");
    put(&workspace.program("levee"), &levee, 0o755)?;
    run(Command::new("strip").arg("--strip-debug").arg(&levee))?;
    for (from, to, mode) in FILES {
        put(&workspace.root.join(from), &tree.join(to), *mode)?;
    }
    write_manual(&levee, &tree)?;
    for (shell, path) in COMPLETIONS {
        let text = capture(Command::new(&levee).args(["completion", shell]))?;
        write(&tree.join(path), &text)?;
    }
    write(
        &tree.join("DEBIAN/conffiles"),
        "/etc/levee/levee.toml\n/etc/logrotate.d/levee\n",
    )?;
    let (version, architecture) = (version(&levee)?, architecture()?);
    let control = control(&version, &architecture, &libraries(workspace, &levee)?);
    write(&tree.join("DEBIAN/control"), &control)?;
    let package = workspace
        .target
        .join(format!("levee_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "--build"])
        .arg(&tree)
        .arg(&package);
    run(&mut dpkg)?;
    Ok(package)
}

/// `man` pages as Debian keeps them: by section, packed, without a time stamp.
fn write_manual(levee: &Path, tree: &Path) -> Result<(), Failure> {
    let all = tree.join("usr/share/man/all");
    fs::create_dir_all(&all).map_err(failed("make", &all))?;
    run(Command::new(levee).arg("manual").arg(&all))?;
    for entry in fs::read_dir(&all).map_err(failed("list", &all))? {
        let page = entry.map_err(failed("list", &all))?.path();
        let section = page
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = page.file_name().unwrap_or_default();
        let place = tree.join(format!("usr/share/man/man{section}")).join(name);
        put(&page, &place, 0o644)?;
        run(Command::new("gzip").args(["-9", "--no-name"]).arg(&place))?;
    }
    fs::remove_dir_all(&all).map_err(failed("remove", &all))
}

fn put(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    make_parent(to)?;
    fs::copy(from, to).map_err(failed("copy", from))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed("change", to))
}

fn write(to: &Path, text: &str) -> Result<(), Failure> {
    make_parent(to)?;
    fs::write(to, text).map_err(failed("write", to))
}

fn make_parent(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed("make", folder))
}

/// `levee 0.1.0` without its name.
fn version(levee: &Path) -> Result<String, Failure> {
    let text = capture(Command::new(levee).arg("--version"))?;
    let number = text.split_whitespace().nth(1);
    Ok(number.unwrap_or_default().to_owned())
}

fn architecture() -> Result<String, Failure> {
    let text = capture(Command::new("dpkg").arg("--print-architecture"))?;
    Ok(text.trim().to_owned())
}

/// The packages of the libraries that the binary is linked with.
fn libraries(workspace: &Workspace, levee: &Path) -> Result<String, Failure> {
    // dpkg-shlibdeps looks for the control file of a source package where it is run.
    let folder = workspace.fresh_folder("deb-libraries")?;
    write(
        &folder.join("debian/control"),
        "Source: levee\n\nPackage: levee\nArchitecture: any\n",
    )?;
    let mut dpkg = Command::new("dpkg-shlibdeps");
    let text = capture(dpkg.current_dir(&folder).arg("-O").arg(levee))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(line.unwrap_or_default().to_owned())
}

fn control(version: &str, architecture: &str, libraries: &str) -> String {
    format!(
        "Package: levee\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: The Levee developers <levee@example.org>\nSection: httpd\nPriority: optional\n\
         Depends: {libraries}\nRecommends: logrotate\nProvides: httpd\n\
         Description: web server whose neighbours carry its visitors when a crowd comes\n \
         Serves a folder or stands in front of an application. When a flash crowd fills\n \
         its line it asks other members of its community for help, redirects visitors to\n \
         them, and lets them go when the crowd has left.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_package_is_in_the_repository() {
        let workspace = Workspace::find().unwrap();
        for (from, _, _) in FILES {
            assert!(workspace.has(from), "{from}");
        }
    }

    #[test]
    fn the_control_file_is_one_paragraph_that_ends_with_a_line_feed() {
        let text = control("1.2.3", "amd64", "libc6 (>= 2.34)");
        assert!(text.contains("\nDepends: libc6 (>= 2.34)\n"));
        assert!(text.ends_with(".\n") && !text.contains("\n\n"));
        let continued = text
            .lines()
            .skip_while(|line| !line.starts_with("Description"));
        assert!(continued.skip(1).all(|line| line.starts_with(' ')));
    }
}
