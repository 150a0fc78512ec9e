//! The running servers of a bench: templates filled in, processes started, answers checked.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::certificate::Certificate;
use super::process::{Program, Running, User};
use super::processor::{self, Used};
use super::scratch::{Scratch, open_to_all};
use super::servers::{Door, Maker, Server, Setup};
use super::workloads::{Answer, Bookkeeping, FILES, Load, REDIRECT_HOST, Workload};
use crate::command::Failure;
use crate::workspace::{Workspace, failed};

/// Which cores do what.
#[derive(Clone, Debug)]
pub struct Cores {
    /// Those of the server under load.
    pub server: String,
    /// Those of the load generator, and of the application behind a cache.
    pub load: String,
}

/// What all servers have in common.
#[derive(Debug)]
pub struct Ground {
    /// Configurations, logs and state of all servers.
    pub folder: PathBuf,
    _scratch: Scratch,
    /// The cores.
    pub cores: Cores,
    /// Port of the application behind the caches.
    pub origin_port: u16,
    /// What servers prove themselves with.
    pub certificate: Certificate,
    /// Where the templates are.
    pub templates: PathBuf,
    /// The levee that is measured.
    levee: PathBuf,
    /// Where other programs of ours are.
    pub programs: PathBuf,
}

/// One process of a server, up and answering.
#[derive(Debug)]
pub struct Instance {
    running: Running,
    loggers: Vec<Running>,
    /// Who made it.
    pub maker: Maker,
    /// The server's name.
    pub name: &'static str,
    /// What it can be asked.
    pub doors: &'static [Door],
    /// Its ports, without TLS and with it.
    ports: (u16, u16),
    redirect_host: &'static str,
}

/// Longest time from start to the first connection; a busy machine is slow.
const UP_WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// Heavier than a build in another session, lighter than the load generator: the server is to be
/// the bottleneck.
const SERVER_WEIGHT: i32 = -5;

impl Ground {
    /// Makes the folder of files, and starts the application behind the caches.
    pub fn prepare(
        workspace: &Workspace,
        cores: Cores,
        levee: PathBuf,
    ) -> Result<(Self, Running), Failure> {
        let scratch = Scratch::new(workspace)?;
        let folder = scratch.folder.clone();
        for part in ["www", "logs"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(failed("make", &part))?;
        }
        for (name, bytes) in FILES {
            let path = folder.join("www").join(name);
            fs::write(&path, text_of(*bytes)).map_err(failed("write", &path))?;
        }
        open_to_all(&folder.join("logs"))?;
        let ground = Self {
            folder,
            certificate: Certificate::make(&scratch.folder)?,
            _scratch: scratch,
            cores,
            origin_port: free_port()?,
            templates: workspace.root.join("bench/peers"),
            levee,
            programs: workspace.target.join("release"),
        };
        let origin = Program {
            program: ground.program("levee-lab"),
            arguments: [
                "bare",
                "--folder",
                &ground.folder.join("www").to_string_lossy(),
                "--listen",
                &format!("127.0.0.1:{}", ground.origin_port),
            ]
            .map(str::to_owned)
            .to_vec(),
            cores: ground.cores.load.clone(),
            ..Program::default()
        };
        let log = ground.folder.join("logs/origin.out");
        let mut origin = origin.start(&ground.folder, &log)?;
        wait_until_up(&mut origin, ground.origin_port, &log)?;
        Ok((ground, origin))
    }

    /// Starts one process of a server and waits until it takes connections.
    pub fn start(
        &self,
        server: &'static Server,
        setup: &'static Setup,
        bookkeeping: Bookkeeping,
    ) -> Result<Instance, Failure> {
        let first = setup.doors.first().copied().unwrap_or(Door::Files);
        let own = self
            .folder
            .join(format!("{}-{first:?}-{bookkeeping:?}", server.name));
        for folder in setup.folders.iter().chain(&[""]) {
            let folder = own.join(folder);
            fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        }
        let ports = (free_port()?, free_port()?);
        let words = self.words(server.name, setup, &own, ports)?;
        self.write_files(setup, &own, &words, bookkeeping)?;
        let user = match server.maker {
            Maker::Ours | Maker::Bare => User::Ourselves,
            Maker::Debian(_) => User::Nobody,
        };
        open_to_all(&own)?;
        let call = |program: String, arguments: &[&str]| Program {
            program,
            arguments: arguments
                .iter()
                .map(|argument| fill_in(argument, &words, bookkeeping))
                .collect(),
            cores: self.cores.server.clone(),
            weight: SERVER_WEIGHT,
            user,
        };
        let program = match server.maker {
            Maker::Ours => self.levee.to_string_lossy().into_owned(),
            Maker::Bare => self.program(setup.program),
            Maker::Debian(_) => setup.program.to_owned(),
        };
        let log = match bookkeeping {
            Bookkeeping::Off => own.join("said.log"),
            Bookkeeping::On => self.folder.join(format!("logs/{}.said.log", server.name)),
        };
        let mut running = call(program, setup.arguments).start(&own, &log)?;
        wait_until_up(&mut running, ports.0, &log)?;
        let mut loggers = Vec::new();
        if bookkeeping == Bookkeeping::On {
            for (program, arguments) in setup.loggers.iter().filter_map(|call| call.split_first()) {
                let logger = call((*program).to_owned(), arguments);
                loggers.push(logger.start(&own, &own.join("logger.log"))?);
            }
        }
        Ok(Instance {
            running,
            loggers,
            maker: server.maker,
            name: server.name,
            doors: setup.doors,
            ports,
            redirect_host: setup.redirect_host,
        })
    }

    /// Fills in the templates of a setup and puts them into its folder.
    fn write_files(
        &self,
        setup: &Setup,
        own: &Path,
        words: &[(String, String)],
        bookkeeping: Bookkeeping,
    ) -> Result<(), Failure> {
        for (template, destination) in setup.files {
            let template = self.templates.join(template);
            let text = fs::read_to_string(&template).map_err(failed("read", &template))?;
            let path = own.join(destination);
            let parent = path.parent().unwrap_or(own);
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
            fs::write(&path, fill_in(&text, words, bookkeeping)).map_err(failed("write", &path))?;
        }
        Ok(())
    }

    /// Makes room: a log of one measurement is of no use to the next one.
    pub fn empty_logs(&self) {
        let entries = fs::read_dir(self.folder.join("logs"));
        for entry in entries.into_iter().flatten().flatten() {
            // All of them append, so they go on at the new end; one that is gone needs no room.
            let file = fs::OpenOptions::new().write(true).open(entry.path());
            let _ = file.and_then(|file| file.set_len(0));
        }
    }

    /// Path of a program of ours.
    pub fn program(&self, name: &str) -> String {
        self.programs.join(name).to_string_lossy().into_owned()
    }

    fn words(
        &self,
        name: &str,
        setup: &Setup,
        own: &Path,
        (port, tls_port): (u16, u16),
    ) -> Result<Vec<(String, String)>, Failure> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let main = setup
            .files
            .first()
            .map_or("", |(_, destination)| destination);
        let mut words = vec![
            ("@NAME@".to_owned(), name.to_owned()),
            ("@PORT@".to_owned(), port.to_string()),
            ("@TLS_PORT@".to_owned(), tls_port.to_string()),
            (
                "@CERTIFICATE@".to_owned(),
                text(&self.certificate.certificate),
            ),
            ("@KEY@".to_owned(), text(&self.certificate.key)),
            (
                "@CERTIFICATE_AND_KEY@".to_owned(),
                text(&self.certificate.both),
            ),
            ("@ADMIN_PORT@".to_owned(), free_port()?.to_string()),
            ("@FOLDER@".to_owned(), text(&self.folder.join("www"))),
            ("@LOGS@".to_owned(), text(&self.folder.join("logs"))),
            ("@DIR@".to_owned(), text(own)),
            ("@CONF@".to_owned(), text(&own.join(main))),
            (
                "@ORIGIN@".to_owned(),
                format!("127.0.0.1:{}", self.origin_port),
            ),
            ("@ORIGIN_PORT@".to_owned(), self.origin_port.to_string()),
        ];
        for (word, value) in setup.words {
            words.push((format!("@{word}@"), (*value).to_owned()));
        }
        Ok(words)
    }
}

impl Instance {
    /// The port on which `workload` asks.
    pub const fn port(&self, workload: &Workload) -> u16 {
        match workload.door {
            Door::Files | Door::Cached | Door::Paced => self.ports.0,
            Door::Tls => self.ports.1,
        }
    }

    /// The Host by which it is asked under `workload`.
    pub fn host(&self, workload: &Workload) -> String {
        match (workload.answer, self.redirect_host) {
            (Answer::Redirect, host) if !host.is_empty() => host.to_owned(),
            (Answer::Redirect | Answer::File(_), _) => "www.example.org".to_owned(),
        }
    }

    /// Processor time of all that belongs to it, up to now.
    pub fn used(&self) -> Used {
        self.loggers
            .iter()
            .map(Running::id)
            .fold(processor::used_by(self.running.id()), |sum, root| {
                sum + processor::used_by(root)
            })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Memory of its processes.
    pub fn memory(&self) -> u64 {
        processor::memory_of(self.running.id())
    }

    /// Asks once and compares every byte; asked twice, a cache is warm.
    pub fn check(&self, workload: &Workload) -> Result<(), Failure> {
        let (version, start) = match matches!(workload.load, Load::Http2(_)) {
            true => ("--http2", "200 2"),
            false => ("--http1.1", "200 1.1"),
        };
        let scheme = match workload.door {
            Door::Tls => "https",
            Door::Files | Door::Cached | Door::Paced => "http",
        };
        let (host, port) = (self.host(workload), self.port(workload));
        let url = format!("{scheme}://{host}:{port}{}", workload.path);
        let answer = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "10"])
            .args(["--insecure", version, "--header", &format!("Host: {host}")])
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
            .args([
                "--write-out",
                "\n%{http_code} %{http_version} %{redirect_url}",
                &url,
            ])
            .output()
            .map_err(|cause| Failure::Io {
                what: "run curl".to_owned(),
                cause,
            })?;
        let said = String::from_utf8_lossy(&answer.stdout);
        let (body, last) = said.rsplit_once('\n').unwrap_or(("", &said));
        let is_right = match workload.answer {
            Answer::File(bytes) => last.starts_with(start) && body == text_of(bytes),
            Answer::Redirect => {
                let to = format!("http://{REDIRECT_HOST}{}", workload.path);
                let led = last
                    .rsplit(' ')
                    .next()
                    .and_then(|url| url.strip_prefix(&to));
                // Ours leads back from an alias, with the word that says so (H5).
                let is_there =
                    led.is_some_and(|rest| rest.is_empty() || rest.starts_with("?levee-back="));
                last.starts_with("30") && is_there
            }
        };
        match is_right {
            true => Ok(()),
            false => Err(Failure::Unexpected {
                story: format!(
                    "{} answers {} wrongly: {} bytes, `{last}` {}",
                    self.name,
                    workload.id,
                    body.len(),
                    String::from_utf8_lossy(&answer.stderr),
                ),
            }),
        }
    }
}

/// Text that no two places of a file share by chance, so that a mixed-up answer shows.
fn text_of(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut line = 0_u32;
    while text.len() < bytes {
        line += 1;
        text.push_str(&format!("line {line:08x}\n"));
    }
    text.truncate(bytes);
    text
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, Failure> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    port.map(|address| address.port())
        .map_err(|cause| Failure::Io {
            what: "find a free port".to_owned(),
            cause,
        })
}

/// Puts words in place of their names. A line that begins with `@LOGGED@` or `@QUIET@` stays only
/// with or without bookkeeping.
fn fill_in(template: &str, words: &[(String, String)], bookkeeping: Bookkeeping) -> String {
    let marks = [
        ("@QUIET@", bookkeeping == Bookkeeping::Off),
        ("@LOGGED@", bookkeeping == Bookkeeping::On),
    ];
    let mut text = String::with_capacity(template.len());
    for line in template.split_inclusive('\n') {
        match marks.iter().find(|(mark, _)| line.starts_with(mark)) {
            None => text.push_str(line),
            Some((mark, true)) => text.push_str(line.strip_prefix(mark).unwrap_or(line)),
            Some((_, false)) => {}
        }
    }
    for (word, value) in words {
        text = text.replace(word, value);
    }
    text
}

fn wait_until_up(running: &mut Running, port: u16, log: &Path) -> Result<(), Failure> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + UP_WITHIN;
    while TcpStream::connect_timeout(&address, LOOK).is_err() {
        if running.has_ended() || Instant::now() > deadline {
            let said = fs::read_to_string(log).unwrap_or_default();
            return Err(Failure::Unexpected {
                story: format!("a server did not come up; it said:\n{said}"),
            });
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_keep_the_lines_of_their_bookkeeping() {
        let template = "port @PORT@;\n@LOGGED@log @DIR@/log;\n@QUIET@log off;\n";
        let words = [
            ("@PORT@".to_owned(), "80".to_owned()),
            ("@DIR@".to_owned(), "/d".to_owned()),
        ];
        let off = fill_in(template, &words, Bookkeeping::Off);
        assert_eq!(off, "port 80;\nlog off;\n");
        let on = fill_in(template, &words, Bookkeeping::On);
        assert_eq!(on, "port 80;\nlog /d/log;\n");
    }

    #[test]
    fn every_file_has_its_exact_size() {
        for (_, bytes) in FILES {
            assert_eq!(text_of(*bytes).len(), *bytes);
        }
    }
}
