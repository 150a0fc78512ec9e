//! What one redirect costs its core: allocations, and instructions in user space.
//!
//! `cargo run --release -p levee-proxy --example redirect_cost`
//!
//! Allocations are counted in this process by its own allocator, while a client that allocates
//! nothing asks for redirects. Instructions are counted by valgrind's callgrind, where it is
//! installed: this program runs itself as a server under it, twice, with N and with 2N requests,
//! and divides the difference by N, so that start and end do not count. Exit status 1 if a redirect
//! allocates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use levee_control::{RedirectPlan, RoutePlan, Target};
use levee_net::{CountingAllocator, Inherited};
use levee_proxy::{
    Content, Folder, Front, FrontParts, FrontSettings, Link, Site, SiteTable, UnknownHost,
};
use levee_vocab::{ByteRate, LinkId, WebAddress};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

type Failure = Box<dyn std::error::Error>;

/// Redirects measured; more for the allocations, which cost nothing to count.
const REDIRECTS: u32 = 20_000;
/// A connection that comes while the one before is just being closed takes a new place in the table
/// of connections, which grows now and then: a handful in 20,000 is that and not a redirect's cost.
const ALLOCATIONS_MAX: f64 = 0.001;
const REDIRECTS_IN_VALGRIND: u32 = 2_000;
const REQUEST: &[u8] =
    b"GET /page HTTP/1.1\r\nHost: site.example\r\nUser-Agent: Mozilla/5.0 (X11; \
    Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nAccept: text/html,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\n\r\n";

/// How the client uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    Kept,
    OneEach,
}

fn main() -> Result<ExitCode, Failure> {
    if std::env::args().nth(1).as_deref() == Some("--serve") {
        let (front, _folder) = start(None)?;
        println!("{}", front.local_addresses()[0]);
        // Until whoever started this server closes its end.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut worst = 0.0_f64;
    for connections in [Connections::Kept, Connections::OneEach] {
        for link in [None, Some(ByteRate::from_kilobytes(10_000_000))] {
            let allocations = allocations(connections, link)?;
            let paced = link.map_or("no link limit", |_| "with the link's pacer");
            println!("allocations per redirect, {connections:?}, {paced}: {allocations:.4}");
            worst = worst.max(allocations);
        }
    }
    match instructions() {
        Ok(each) => println!("instructions per redirect in user space: {each}"),
        Err(error) => println!("instructions per redirect: not measured ({error})"),
    }
    Ok(match worst > ALLOCATIONS_MAX {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn start(link: Option<ByteRate>) -> Result<(Front, std::path::PathBuf), Failure> {
    let folder = std::env::temp_dir().join(format!("levee-redirect-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("page"), vec![b'x'; 10_000])?;
    let settings = FrontSettings::listening_on(vec![([127, 0, 0, 1], 0).into()]);
    let site = Site {
        name: web("site.example")?,
        other_names: Vec::new(),
        content: Content::Folder(Arc::new(Folder::open(Path::new(&folder))?)),
    };
    let front = Front::bind(settings, &Inherited::default())?.start(FrontParts {
        plan: Arc::new(plan()?),
        sites: Arc::new(SiteTable::new(vec![site], UnknownHost::Refuse)),
        fetcher: None,
        tls: None,
        link: link.map(|rate| Arc::new(Link::new(rate))),
        log: None,
        handed_over: None,
        purge: None,
    })?;
    Ok((front, folder))
}

fn plan() -> Result<RoutePlan, Failure> {
    let rate = ByteRate::from_kilobytes(100_000_000);
    Ok(RoutePlan {
        interval: 1,
        interval_length: Duration::from_secs(3600),
        redirect: Some(RedirectPlan {
            direct: ByteRate::ZERO,
            direct_ceiling: ByteRate::ZERO,
            usable: rate,
            usable_share: 0.8,
            connection_overhead: 358,
            large_file: 1_000_000,
            targets: vec![Target {
                link: LinkId::Outbound(1),
                slot: 1,
                alias: web("site-vh1.rescue.example")?,
                rate,
            }],
        }),
        ..RoutePlan::default()
    })
}

fn web(host: &str) -> Result<WebAddress, Failure> {
    Ok(WebAddress {
        host: host.parse()?,
        port: 80,
    })
}

fn allocations(connections: Connections, link: Option<ByteRate>) -> Result<f64, Failure> {
    let (front, folder) = start(link)?;
    let address = front.local_addresses()[0];
    // Buffers, tables and the file itself come with the first requests.
    ask(address, connections, REDIRECTS / 4)?;
    let before = ALLOCATOR.allocations();
    ask(address, connections, REDIRECTS)?;
    let after = ALLOCATOR.allocations();
    drop(front);
    std::fs::remove_dir_all(folder)?;
    Ok((after - before) as f64 / f64::from(REDIRECTS))
}

/// Asks `count` times, without an allocation of its own.
fn ask(address: SocketAddr, connections: Connections, count: u32) -> Result<(), Failure> {
    let mut answer = [0; 1024];
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    for number in 0..count {
        if number > 0 && connections == Connections::OneEach {
            stream = TcpStream::connect(address)?;
        }
        stream.write_all(REQUEST)?;
        let length = stream.read(&mut answer)?;
        if !answer[..length].starts_with(b"HTTP/1.1 302 ") {
            return Err("the answer is not a redirect".into());
        }
    }
    Ok(())
}

/// User-space instructions of one redirect on a kept connection.
fn instructions() -> Result<u64, Failure> {
    let once = collected(REDIRECTS_IN_VALGRIND)?;
    let twice = collected(2 * REDIRECTS_IN_VALGRIND)?;
    Ok(twice.saturating_sub(once) / u64::from(REDIRECTS_IN_VALGRIND))
}

/// Instructions of a whole server that answers `count` requests.
fn collected(count: u32) -> Result<u64, Failure> {
    let mut server = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = server.stdout.take().ok_or("the server has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let asked = line.trim().parse().map_err(Failure::from);
    let asked = asked.and_then(|address| ask(address, Connections::Kept, count));
    // Also ends the server where something went wrong.
    drop(server.stdin.take());
    let output = server.wait_with_output()?;
    asked?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once("Collected :"));
    let (_, number) = lines.next().ok_or("callgrind gave no figure")?;
    Ok(number.trim().parse()?)
}
