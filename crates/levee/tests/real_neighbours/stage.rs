//! Programs of a test, each ended with it, in a folder of its own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::Program;

/// Longest wait for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A folder, and what runs with files in it.
pub struct Stage {
    folder: tempfile::TempDir,
}

/// A program, ended by force when it is dropped.
pub struct Running(pub Child);

/// A levee that is ready.
pub struct Levee(Program);

impl Stage {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `unix:` and the path of a file here.
    pub fn unix(&self, name: &str) -> String {
        format!("unix:{}", self.path(name).display())
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// What starts a levee with these settings of its site and whatever follows them.
    pub fn levee_command(&self, settings: &str) -> Command {
        let text = format!(
            "[site]\nname = \"site.example\"\n{settings}\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_levee"));
        command
            .arg("serve")
            .arg("-c")
            .arg(self.write("levee.toml", &text))
            .env("LEVEE_LOG", "error");
        command
    }

    pub fn levee(&self, settings: &str) -> Levee {
        Levee::start(&mut self.levee_command(settings))
    }

    /// An nginx whose server is `server`; it listens at the socket `nginx.sock`, in the way that
    /// `listens` adds.
    pub fn nginx(&self, listens: &str, server: &str) -> Running {
        let root = self.folder.path().display();
        let text = format!(
            "daemon off; master_process off; pid {root}/nginx.pid;\n\
             error_log {root}/nginx.log crit;\nevents {{}}\n\
             http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/p;\n\
             fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;\n\
             server {{ listen unix:{root}/nginx.sock {listens};\n{server}\n}} }}\n"
        );
        let file = self.write("nginx.conf", &text);
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(self.folder.path())
            .arg("-c")
            .arg(file);
        let running = Running::start(&mut command);
        self.wait_for("nginx.sock");
        running
    }

    /// An nginx that says who it was told the visitor is.
    pub fn nginx_that_tells(&self) -> Running {
        let told = "$http_x_forwarded_for by $http_x_forwarded_proto";
        let server =
            format!("add_header Cache-Control no-store; location / {{ return 200 \"{told}\"; }}");
        self.nginx("", &server)
    }

    /// A HAProxy with these sections; descriptor 3 is `listener`, where it is given.
    pub fn haproxy(&self, sections: &str, listener: Option<TcpListener>) -> Running {
        let text = format!(
            "defaults\n  timeout client 20s\n  timeout server 20s\n  timeout connect 5s\n\
             {sections}\n"
        );
        let file = self.write("haproxy.conf", &text);
        let mut command = match listener {
            Some(listener) => handing_over(OwnedFd::from(listener)),
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", "exec \"$@\"", "sh"]);
                command
            }
        };
        command.args(["haproxy", "-q", "-db", "-f"]).arg(file);
        Running::start(&mut command)
    }

    /// Waits until somebody listens at a socket here.
    pub fn wait_for(&self, name: &str) {
        let (path, started) = (self.path(name), Instant::now());
        while UnixStream::connect(&path).is_err() {
            assert!(started.elapsed() < PATIENCE, "{name} never came");
            std::thread::yield_now();
        }
    }
}

/// What runs the program that is added with `descriptor` as its descriptor 3, and tells it so as a
/// service manager does.
pub fn handing_over(descriptor: OwnedFd) -> Command {
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\" 3<&0 </dev/null";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .stdin(Stdio::from(descriptor));
    command
}

/// A listener at a free port.
pub fn free_port() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// What curl says, given these arguments.
pub fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(arguments)
        .output();
    text_of(output.unwrap())
}

pub fn text_of(output: Output) -> String {
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

impl Running {
    fn start(command: &mut Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the program is installed"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Levee {
    pub fn start(command: &mut Command) -> Self {
        Self(Program::start(command))
    }

    pub fn signal(&self, name: &str) {
        let process = self.0.process.id().to_string();
        let sent = Command::new("kill").args([name, &process]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended; how.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.process.wait().unwrap()
    }

    pub fn http_port(&self) -> u16 {
        self.0.port("site http://site.example:")
    }

    pub fn https_port(&self) -> u16 {
        self.0.port("https://site.example:")
    }
}

/// Makes `site.pem` and `site.key` in `folder`.
pub fn certify(folder: &Path) {
    let made = Command::new("openssl")
        .current_dir(folder)
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-subj", "/CN=it"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-days", "9"])
        .args(["-addext", "subjectAltName=DNS:site.example"])
        .args(["-keyout", "site.key", "-out", "site.pem"])
        .output();
    assert!(made.unwrap().status.success());
}
