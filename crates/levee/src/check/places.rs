//! Folders and files that the settings name: whether they are there, and can be used.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{Access, access};

use levee_net::ListenAddress;
use levee_observe::LogTarget;

use super::Findings;
use super::probe::{make_file, open_to_append};
use crate::acme::CertificateStore;
use crate::dns;
use crate::integrity::{ExpelledList, PardonList};
use crate::settings::{Content, Settings};
use crate::state::{StateFolder, has_no_room};
use crate::trust::identity_at;

const ACCESS_LOG: &str = "log.access";
const STATE: &str = "state.folder";
const IDENTITY: &str = "community.identity";

/// Looks at all of them.
pub(super) fn look(settings: &Settings, findings: &mut Findings<'_>) {
    if let Content::Folder(folder) = &settings.site.content
        && !folder.is_dir()
    {
        let text = format!(
            "site.folder: there is no folder {}; make it, or name another",
            folder.display()
        );
        findings.complain("site.folder", text);
    }
    let https = settings.tls.iter().flat_map(|tls| &tls.listen);
    let https = https.map(|address| ("tls.listen", address));
    let http = settings.site.listen.iter();
    for (setting, address) in http.map(|address| ("site.listen", address)).chain(https) {
        if let ListenAddress::Unix(path) = address {
            socket((setting, path), findings);
        }
    }
    if let LogTarget::File(path) = &settings.log.access {
        access_log(path, findings);
    }
    let state = settings.state_folder.as_deref();
    if let Some(folder) = state {
        state_folder((settings, folder), findings);
    }
    if let (Some(path), Some(_)) = (&settings.trust.identity, &settings.community) {
        identity(path, findings);
    }
}

/// A socket of the file system at which we are to listen. Whether somebody does so now is not
/// looked at: most often it is the server whose settings these are.
fn socket((setting, path): (&str, &Path), findings: &mut Findings<'_>) {
    let folder = folder_of(path);
    let (shown, around) = (path.display(), folder.display());
    // That of a server that has ended is replaced.
    let is_taken = fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket());
    if is_taken {
        let text = format!("{setting}: {shown} is no socket; move it away, or name another place");
        findings.complain(setting, text);
    } else if may_come_with_the_service(folder) {
        let text = format!(
            "{setting}: there is no folder {around}; make it, unless the service manager does, as \
             systemd by RuntimeDirectory="
        );
        findings.warn(setting, text);
    } else if !folder.exists() {
        let text =
            format!("{setting}: {shown} cannot be made: there is no folder {around}; make it");
        findings.complain(setting, text);
    } else if let Err(error) = make_file(folder)
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        // systemd opens it as root, and hands it over.
        let text = format!(
            "{setting}: {shown} cannot be made, unless the service manager opens it: {around} \
             cannot be written: {error}; {WAY_OUT}"
        );
        findings.warn(setting, text);
    } else if let Some(why) = takes_no_files(folder) {
        findings.complain(setting, format!("{setting}: {shown} cannot be made: {why}"));
    }
}

/// Whether `folder` is missing, and would be the only one of those that lead there.
fn may_come_with_the_service(folder: &Path) -> bool {
    !folder.exists() && folder_of(folder).is_dir()
}

fn access_log(path: &Path, findings: &mut Findings<'_>) {
    let folder = folder_of(path);
    if may_come_with_the_service(folder) {
        let text = format!(
            "{ACCESS_LOG}: there is no folder {}; make it, unless the service manager does, as \
             systemd by LogsDirectory=",
            folder.display()
        );
        findings.warn(ACCESS_LOG, text);
    } else if let Some(why) = cannot_be_logged_to(path) {
        let text = format!("{ACCESS_LOG}: {} {why}", path.display());
        findings.complain(ACCESS_LOG, text);
    }
}

/// Why no lines can be added at the end of the file `path`, which is made where it is not there.
fn cannot_be_logged_to(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Some("is a folder; name a file in it".to_owned()),
        Ok(_) => {
            let error = open_to_append(path).err()?;
            Some(format!("cannot be written: {error}; {WAY_OUT}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            let why = match folder.exists() {
                true => takes_no_files(folder)?,
                // A log in a folder that is made by itself would hide a mistake in its name.
                false => format!("there is no folder {}; make it", folder.display()),
            };
            Some(format!("cannot be made: {why}"))
        }
        Err(error) => Some(format!("cannot be used: {error}; {WAY_OUT}")),
    }
}

fn state_folder((settings, folder): (&Settings, &Path), findings: &mut Findings<'_>) {
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            let text = format!("{STATE}: {shown} is no folder; move it away, or name another");
            return findings.complain(STATE, text);
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(why) = cannot_be_made(folder) {
                findings.complain(STATE, format!("{STATE}: {shown} cannot be made: {why}"));
            }
            return;
        }
        Err(error) => {
            let text = format!("{STATE}: {shown} cannot be used: {error}; {WAY_OUT}");
            return findings.complain(STATE, text);
        }
    }
    if let Err(error) = access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        let text = format!("{STATE}: {shown} cannot be written: {error}; {WAY_OUT}");
        return findings.complain(STATE, text);
    }
    if has_no_room(folder) {
        let text = format!(
            "{STATE}: there is hardly any room on the disk of {shown}: where nothing can be \
             written, nobody can be helped"
        );
        findings.warn(STATE, text);
    } else if let Some(why) = takes_no_files(folder) {
        return findings.complain(STATE, format!("{STATE}: {why}"));
    }
    for trouble in troubles(settings, folder) {
        findings.complain(STATE, format!("{STATE}: {trouble}"));
    }
    orders((settings, folder), findings);
    for text in dns::leftovers(settings, folder) {
        findings.note(STATE, format!("{STATE}: {text}"));
    }
}

/// What of the orders for certificates a start does not look at.
fn orders((settings, folder): (&Settings, &Path), findings: &mut Findings<'_>) {
    let store = CertificateStore::at(folder);
    let acme = settings.acme.as_ref();
    // Each order would fail.
    let account = acme.and_then(|acme| store.check_account(&acme.directory).err());
    if let Some(error) = account {
        findings.warn(
            STATE,
            format!("{STATE}: no certificate is ordered: {error}"),
        );
    }
    let names = acme.map_or(&[][..], |acme| &acme.names);
    for name in names {
        if let Err(error) = store.check_order(name) {
            let text = format!("{STATE}: the order for {name} is begun anew: {error}");
            findings.warn(STATE, text);
        }
    }
    for path in store.stray_orders(names) {
        let shown = path.display();
        let text = format!(
            "{STATE}: {shown} is left over from an order for a name that [acme] does not order \
             any more; it does no harm, and can be deleted"
        );
        findings.note(STATE, text);
    }
}

/// What of our files in a state folder cannot be used.
fn troubles(settings: &Settings, folder: &Path) -> Vec<String> {
    let state = match StateFolder::open(folder) {
        Ok(state) => state,
        Err(error) => return vec![error.to_string()],
    };
    let has_certificates = settings.tls.is_some();
    let shown = has_certificates.then(|| CertificateStore::at(folder).records());
    let lists = [
        state.aliases().err(),
        state.given(SystemTime::now()).err(),
        ExpelledList::of(Some(folder)).err(),
        PardonList::of(Some(folder)).err(),
    ];
    let lists = lists.into_iter().flatten().map(|error| error.to_string());
    let shown = shown.and_then(Result::err).map(|error| error.to_string());
    let of_dns = dns::check_kept(settings, &state);
    lists.chain(shown).chain(of_dns).collect()
}

fn identity(path: &Path, findings: &mut Findings<'_>) {
    let setting = match findings.file.given(IDENTITY) {
        Some(_) => IDENTITY,
        None => STATE,
    };
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) => {
            if let Err(why) = identity_at(path) {
                findings.complain(setting, format!("{IDENTITY}: {why}"));
            } else if let Some(folder) = path.parent()
                && let Ok(around) = fs::metadata(folder)
                && around.uid() != found.uid()
            {
                let (own, other) = (found.uid(), around.uid());
                let text = format!(
                    "{IDENTITY}: {shown} belongs to user {own}, and its folder to user {other}: a \
                     levee that runs as user {other} cannot read it; chown {other} {shown}"
                );
                findings.warn(setting, text);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(why) = cannot_be_made(path) {
                findings.complain(
                    setting,
                    format!("{IDENTITY}: {shown} cannot be made: {why}"),
                );
            }
        }
        Err(error) => {
            let text = format!("{IDENTITY}: {shown} cannot be read: {error}; {WAY_OUT}");
            findings.complain(setting, text);
        }
    }
}

/// Why nothing can be made at `path`, with all folders that lead there.
fn cannot_be_made(path: &Path) -> Option<String> {
    let mut folder = folder_of(path);
    while !folder.exists() && folder != Path::new(".") {
        folder = folder_of(folder);
    }
    takes_no_files(folder)
}

/// Why nothing can be made in `folder`.
fn takes_no_files(folder: &Path) -> Option<String> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Some(format!(
            "{shown} is no folder; move it away, or name another place"
        ));
    }
    let error = make_file(folder).err()?;
    let way_out = if error.kind() == io::ErrorKind::PermissionDenied {
        WAY_OUT
    } else if error.kind() == io::ErrorKind::StorageFull {
        "make room on its disk"
    } else {
        // Neither a right nor room is missing: it takes no files from anybody.
        "name another place"
    };
    Some(format!("{shown} cannot be written: {error}; {way_out}"))
}

/// The folder in which `path` is.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

const WAY_OUT: &str = "give it to the user that runs levee, and check as that user";
