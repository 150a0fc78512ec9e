//! What signing costs, so that everybody can see that visitors do not pay for it.
//!
//! `cargo xtask bench signing`
//!
//! Each line is the time of one piece of work on one core: median, and least, of several runs.
//! Nothing of it is on the way of a visitor's request: objects are digested once and signed when a
//! rescue server fetches them; messages between members are a few in ten seconds.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use levee::integrity::origin_key;
use levee_proxy::{Delivered, Facts, Publisher, digest_of};
use levee_trust::{Identity, Member, MemberList, Purpose, Role, SignedList, UnixMillis};
use levee_vocab::WebAddress;

type Failure = Box<dyn std::error::Error>;

const RUNS: usize = 15;
/// A run takes so long, so that the clock and the scheduler hardly count.
const RUN: Duration = Duration::from_millis(20);
/// As long as a registration is on the wire.
const MESSAGE: [u8; 240] = [b'x'; 240];
const TARGET: &str = "/news?page=2";

fn main() -> Result<(), Failure> {
    println!("{:<52} {:>10} {:>10}", "one core", "median us", "least us");
    let identity = Identity::from_seed(&[7; 32]);
    let key = identity.key();
    let purpose = Purpose::Registration;
    let signature = identity.sign(purpose, &MESSAGE);
    row("sign a message of 240 bytes", || {
        black_box(identity.sign(purpose, black_box(&MESSAGE)));
    });
    row("check one", || {
        let checked = key.verify(purpose, black_box(&MESSAGE), &signature);
        assert!(black_box(checked).is_ok(), "we signed it");
    });
    for (name, length) in [
        ("10 KiB", 10 << 10),
        ("64 KiB", 64 << 10),
        ("1 MiB", 1 << 20),
    ] {
        let body = vec![b'x'; length];
        row(&format!("digest of an object of {name}, once"), || {
            black_box(digest_of(black_box(&body)));
        });
    }
    responses(&identity)?;
    list(&identity)
}

/// What the origin adds to each fetch, and what a rescue server does with it.
fn responses(identity: &Identity) -> Result<(), Failure> {
    let site = WebAddress {
        host: "www.example.org".parse()?,
        port: 80,
    };
    let signer = identity.clone();
    let sign = move |bytes: &[u8]| *signer.sign(Purpose::Publication, bytes).as_bytes();
    let text = identity.key().to_string();
    let publisher = Publisher::start(site.to_string(), text, Arc::new(sign))?;
    let digest = digest_of(b"a page");
    let facts = Facts {
        status: 200,
        content_type: Some("text/html"),
        content_encoding: None,
        target: TARGET,
    };
    row("sign a response that a rescue server fetches", || {
        black_box(publisher.lines(black_box(facts), digest));
    });
    let lines = publisher.lines(facts, digest);
    let field = |name: &str| match name {
        "content-type" => Some(b"text/html".as_slice()),
        _ => lines.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().as_bytes())
        }),
    };
    let delivered = Delivered {
        status: 200,
        field: &field,
        digest,
        site: &site,
        target: TARGET,
    };
    let key = origin_key(identity.key());
    row("check it there, once for each object", || {
        let standing = key.judge(black_box(&delivered), SystemTime::now());
        assert_eq!(standing, levee_proxy::Standing::Authentic, "we signed it");
    });
    Ok(())
}

/// A list of a large community.
fn list(identity: &Identity) -> Result<(), Failure> {
    let mut list = MemberList::new("mutual-aid.example".parse()?);
    for number in 0..1000_u64 {
        let mut seed = [1; 32];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        let member = Member {
            role: Role::Site,
            key: Identity::from_seed(&seed).key(),
        };
        list.add(format!("www.site-{number}.example").parse()?, member)?;
    }
    let list = list.renewed(UnixMillis(1_795_280_000_000), Duration::from_secs(86_400));
    let text = SignedList::sign(list, identity).text().to_owned();
    let authority = identity.key();
    row("read and check a list of 1000 members", || {
        let list = SignedList::parse(black_box(&text), &authority);
        assert!(black_box(list).is_ok(), "we signed it");
    });
    Ok(())
}

/// Measures `work`, and prints it.
fn row(name: &str, mut work: impl FnMut()) {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| run(&mut work)).collect();
    runs.sort_by(f64::total_cmp);
    println!("{name:<52} {:>10.1} {:>10.1}", runs[RUNS / 2], runs[0]);
}

/// Microseconds for one piece of work.
fn run(work: &mut impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut done = 0_u32;
    while begun.elapsed() < RUN {
        work();
        done += 1;
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(done)
}
