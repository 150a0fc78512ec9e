//! The desk of a closed community's authority: `levee community`.
//!
//! The authority is a key file and a list in a folder of somebody's machine; no server of its own.
//! Each change signs the whole list again with the next serial. What makes it known is a registry
//! that reads the file; members fetch it from there. Deliberately without a database and without a
//! network: the key of a community should be on a machine that serves nobody.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use levee_trust::{Identity, Member, MemberList, PublicKey, SignedList, UnixMillis};
use levee_vocab::HostName;

use crate::admin_client;
use crate::command::{Community, Desk, Server, Validity};
use crate::serve::small_runtime;
use crate::settings;
use crate::state::{Readers, replace};
use crate::trust::{self, unix_now};

/// Does what is wanted; gives what is to be printed.
///
/// # Errors
/// A sentence for the operator.
pub fn run(wanted: &Community) -> Result<String, String> {
    match wanted {
        Community::Init {
            name,
            desk,
            validity,
        } => init(name, desk, validity),
        Community::Identity { file, config } => identity(file, config.as_deref()),
        Community::Add {
            name,
            key,
            role,
            desk,
        } => {
            let member = Member {
                role: *role,
                key: *key,
            };
            add(name, member, desk)
        }
        Community::Remove { name, desk } => change(desk, |list| {
            let gone = list.remove(name);
            gone.map(|_| format!("{name} is no member any more"))
                .ok_or_else(|| no_member(name))
        }),
        Community::Expel { name, reason, desk } => change(desk, |list| {
            let gone = list.expel(name, reason);
            gone.map(|_| format!("{name} is expelled: {reason}"))
                .ok_or_else(|| no_member(name))
        }),
        Community::Expelled { server } => expelled(server),
        Community::Forgive { name, server } => {
            let forgiving = admin_client::forgive(server.address()?, name);
            small_runtime()?.block_on(forgiving)
        }
        Community::Renew { desk, validity } => renew(desk, validity),
        Community::List { desk } => Ok(shown(&OpenDesk::read(desk)?.list, unix_now())),
        Community::Verify { file, authority } => verify(file, authority),
    }
}

/// Whom a running server has expelled, a line each.
fn expelled(server: &Server) -> Result<String, String> {
    let asking = admin_client::status_text(server.address()?);
    let text = small_runtime()?.block_on(asking)?;
    let status: levee_observe::Status =
        serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let list = status.integrity.unwrap_or_default().expelled;
    if list.is_empty() {
        return Ok("nobody is expelled".to_owned());
    }
    let line = |one: levee_observe::ExpelledStatus| {
        let (member, target) = (one.member, one.target);
        let since = UnixMillis(one.since * 1000);
        let (expected, seen) = (one.expected, one.seen);
        format!("{member} since {since}: {target} should be {expected} and was {seen}")
    };
    let lines: Vec<String> = list.into_iter().map(line).collect();
    Ok(lines.join("\n"))
}

fn init(name: &HostName, desk: &Desk, validity: &Validity) -> Result<String, String> {
    let path = desk.folder.join(AUTHORITY_FILE);
    if path.exists() || desk.folder.join(LIST_FILE).exists() {
        let folder = desk.folder.display();
        return Err(format!(
            "{folder} holds a community already; give another --folder"
        ));
    }
    fs::create_dir_all(&desk.folder)
        .map_err(|error| format!("cannot make {}: {error}", desk.folder.display()))?;
    let authority = trust::fresh_identity()?;
    write(&path, &authority.to_file_text(), Readers::Owner)?;
    let list = MemberList::new(name.clone()).renewed(unix_now(), validity.life());
    let mut open = OpenDesk {
        folder: desk.folder.clone(),
        authority,
        list,
    };
    open.save()?;
    Ok(format!(
        "community {name} is founded; keep {} secret and safe\n\
         settings of its members: community.authority = \"{}\"",
        path.display(),
        open.authority.key()
    ))
}

fn identity(file: &Path, config: Option<&Path>) -> Result<String, String> {
    let path = match config {
        None => file.to_owned(),
        Some(config) => {
            let settings = settings::load(config)
                .map_err(|complaints| crate::explain::told(config, &complaints))?;
            let told = "give community.identity or state.folder a place for the key";
            settings.trust.identity.ok_or(told)?
        }
    };
    let identity = trust::identity_at(&path)?;
    Ok(identity.key().to_string())
}

fn add(name: &HostName, member: Member, desk: &Desk) -> Result<String, String> {
    change(desk, |list| {
        let holder = list.members().find(|(_, one)| one.key == member.key);
        if let Some((other, _)) = holder.filter(|(other, _)| *other != name) {
            return Err(format!(
                "this is the key of {other}: each member needs a key of its own"
            ));
        }
        list.add(name.clone(), member).map_err(told)?;
        Ok(format!("{name} is a member ({})", member.role))
    })
}

/// The list of a desk, and the key that signs it.
struct OpenDesk {
    folder: PathBuf,
    authority: Identity,
    list: MemberList,
}

impl OpenDesk {
    fn read(desk: &Desk) -> Result<Self, String> {
        let path = desk.folder.join(AUTHORITY_FILE);
        let text = fs::read_to_string(&path).map_err(|error| {
            let way_out = "found a community first (`levee community init NAME`), or give --folder";
            format!("cannot read {}: {error}; {way_out}", path.display())
        })?;
        let bad = |error| format!("{}: {error}", path.display());
        let authority = Identity::from_file_text(&text).map_err(bad)?;
        let path = desk.folder.join(LIST_FILE);
        let list = read_list(&path, &authority.key())?;
        Ok(Self {
            folder: desk.folder.clone(),
            authority,
            list: list.list().clone(),
        })
    }

    fn save(&mut self) -> Result<(), String> {
        let signed = SignedList::sign(self.list.clone(), &self.authority);
        let path = self.folder.join(LIST_FILE);
        write(&path, signed.text(), Readers::Everybody)
    }
}

/// Changes the list and signs the next one. It holds as long as the one before did when it was
/// new.
fn change(
    desk: &Desk,
    change: impl FnOnce(&mut MemberList) -> Result<String, String>,
) -> Result<String, String> {
    let mut open = OpenDesk::read(desk)?;
    let life = open.list.expires.since(open.list.issued);
    let done = change(&mut open.list)?;
    open.list = open.list.renewed(unix_now(), life);
    open.save()?;
    Ok(format!("{done}; {}", signed_until(&open.list)))
}

fn renew(desk: &Desk, validity: &Validity) -> Result<String, String> {
    let mut open = OpenDesk::read(desk)?;
    open.list = open.list.renewed(unix_now(), validity.life());
    open.save()?;
    Ok(signed_until(&open.list))
}

fn signed_until(list: &MemberList) -> String {
    format!("list {} holds until {}", list.serial, list.expires)
}

fn verify(path: &Path, authority: &PublicKey) -> Result<String, String> {
    let signed = read_list(path, authority)?;
    let (list, now) = (signed.list(), unix_now());
    if list.expires <= now {
        return Err(format!(
            "{} is the authority's, and has expired on {}: `levee community renew`",
            path.display(),
            list.expires
        ));
    }
    Ok(format!("signed by {authority}\n{}", shown(list, now)))
}

fn read_list(path: &Path, authority: &PublicKey) -> Result<SignedList, String> {
    let file = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("{file} is not there"));
        }
        Err(error) => return Err(format!("cannot read {file}: {error}")),
    };
    SignedList::parse(&text, authority).map_err(|error| format!("{file}: {error}"))
}

/// The list as a person wants to see it.
fn shown(list: &MemberList, now: UnixMillis) -> String {
    let left = list.expires.since(now).as_secs() / DAY.as_secs();
    let width = list.members().map(|(name, _)| name.as_str().len()).max();
    let mut text = format!(
        "{}, list {}, holds until {} ({left} days left)",
        list.community, list.serial, list.expires
    );
    for (name, Member { role, key }) in list.members() {
        let width = width.unwrap_or_default();
        text.push_str(&format!(
            "\n{:width$}  {:8}  {key}",
            name.as_str(),
            role.text()
        ));
    }
    for one in list.expelled() {
        text.push_str(&format!("\nexpelled: {}: {}", one.name, one.reason));
    }
    text
}

fn write(path: &Path, text: &str, readers: Readers) -> Result<(), String> {
    replace(path, text, readers)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn no_member(name: &HostName) -> String {
    format!("{name} is no member; `levee community list` prints those that are")
}

fn told(error: impl ToString) -> String {
    error.to_string()
}

impl Validity {
    fn life(&self) -> Duration {
        DAY * u32::from(self.days)
    }
}

const AUTHORITY_FILE: &str = "authority.key";
const LIST_FILE: &str = "members.list";
const DAY: Duration = Duration::from_secs(86_400);
