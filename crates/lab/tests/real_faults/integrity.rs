//! Members that alter what they deliver, and origins that die.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::crowd::{Crowd, in_a_rescue};
use crate::http;
use crate::stage::{ALICE, BOB, Draft, NEWS, Place, RUSH, Town, body_of, page, until};

/// What one look at a rescue server costs is nothing on loopback; tests have no time.
const LOOKS: &str = "[integrity]\nsampling = \"50 ms\"\n";
/// One page of eight is altered: 1 - (7/8)^n finds it with probability 0.99 by 35 looks.
const ALTERED: u32 = 3;

/// What a liar does with the page that it alters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// It leaves the origin's signature as it is.
    Signed,
    /// It takes the signature away.
    Stripped,
    /// None: it is as honest as the others.
    None,
}

/// A rescue server that speaks the protocol as it should and lies about one page.
struct Liar {
    web: SocketAddr,
    /// What the rescue links said, for failures.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Liar {
    /// Registers as `mallory`, the best of all candidates.
    fn start(town: &Town, lie: Lie) -> Self {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (links, visitors) = (bind(), bind());
        let web = visitors.local_addr().unwrap();
        let rescue = links.local_addr().unwrap().port();
        let source = Arc::<Source>::default();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (told, known) = (Arc::clone(&heard), Arc::clone(&source));
        thread::spawn(move || {
            for link in links.incoming().flatten() {
                let (told, known) = (Arc::clone(&told), Arc::clone(&known));
                thread::spawn(move || help(link, web.port(), &told, &known));
            }
        });
        thread::spawn(move || {
            for visitor in visitors.incoming().flatten() {
                let source = Arc::clone(&source);
                thread::spawn(move || serve(visitor, &source, lie));
            }
        });
        let at = town.registry_at;
        let entry = format!("mallory.localhost {} 127.0.0.1 {rescue} 9000", web.port());
        let mut registry = TcpStream::connect(at).unwrap();
        writeln!(registry, "1 REGISTER {entry} 600").unwrap();
        let mut answer = String::new();
        let mut lines = BufReader::new(registry.try_clone().unwrap());
        lines.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("1 200 OK"), "{answer}");
        Self { web, heard }
    }
}

/// Where to fetch from, and what was fetched.
type Source = Mutex<Shelf>;

#[derive(Default)]
struct Shelf {
    /// The origin's name and port, and the key to fetch with.
    origin: Option<(String, SocketAddr, String)>,
    /// Responses by target and coding.
    kept: BTreeMap<(String, String), Vec<u8>>,
}

/// Says yes to everything.
fn help(link: TcpStream, port: u16, told: &Mutex<Vec<String>>, source: &Source) {
    let mut writer = link.try_clone().unwrap();
    for line in BufReader::new(link).lines() {
        let Ok(line) = line else { return };
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words.as_slice() {
            [number, "SOS", name, address, web, ..] => {
                let key = words.iter().find_map(|word| word.strip_prefix("key="));
                let at: SocketAddr = format!("{address}:{web}").parse().unwrap();
                let host = format!("{name}:{web}");
                source.lock().unwrap().origin = Some((host, at, key.unwrap().to_owned()));
                format!("{number} 200 OK news-vh1.localhost 127.0.0.1 {port} 9000\n")
            }
            [_, "200", ..] | [] => continue,
            [number, ..] => format!("{number} 200 OK\n"),
        };
        told.lock().unwrap().push(line);
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Fetches what a visitor wants, and gives it to him, or something else.
fn serve(mut visitor: TcpStream, source: &Source, lie: Lie) {
    let mut lines = BufReader::new(visitor.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    let mut coding = String::new();
    for line in lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
    {
        if line.to_ascii_lowercase().starts_with("accept-encoding:") {
            coding = format!("{line}\r\n");
        }
    }
    let target = first.split(' ').nth(1).unwrap_or("/").to_owned();
    // Uncompressed, so that a word of the page can be changed.
    if target == page(ALTERED) {
        coding = "accept-encoding: identity\r\n".into();
    }
    let Some(mut response) = fetch(&target, &coding, source) else {
        return;
    };
    if target == page(ALTERED) && lie != Lie::None {
        response = altered(&response, lie);
    }
    // Whoever is gone does not see it.
    let _ = visitor.write_all(&response);
}

/// What the origin says, asked once.
fn fetch(target: &str, coding: &str, source: &Source) -> Option<Vec<u8>> {
    let mut shelf = source.lock().unwrap();
    let name = (target.to_owned(), coding.to_owned());
    if let Some(kept) = shelf.kept.get(&name) {
        return Some(kept.clone());
    }
    let (host, at, key) = shelf.origin.clone()?;
    let request = format!(
        "GET {target} HTTP/1.1\r\nhost: {host}\r\nlevee-fetch: {key}\r\n{coding}\
         connection: close\r\n\r\n"
    );
    let mut response = Vec::new();
    let mut origin = TcpStream::connect(at).ok()?;
    origin.write_all(request.as_bytes()).ok()?;
    origin.read_to_end(&mut response).ok()?;
    if response.starts_with(b"HTTP/1.1 200") {
        shelf.kept.insert(name, response.clone());
    }
    Some(response)
}

/// The same page with one word changed, of the same length.
fn altered(response: &[u8], lie: Lie) -> Vec<u8> {
    let text = String::from_utf8_lossy(response).into_owned();
    let text = text.replace("nobody else", "anybody can");
    if lie == Lie::Signed {
        return text.into_bytes();
    }
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let kept = head.split("\r\n").filter(|line| {
        let name = line.to_ascii_lowercase();
        !name.starts_with("signature") && !name.starts_with("repr-digest")
    });
    let kept: Vec<&str> = kept.collect();
    format!("{}\r\n\r\n{body}", kept.join("\r\n")).into_bytes()
}

fn expelled(place: &Place) -> Vec<Value> {
    let status = place.status();
    let list = status["integrity"]["expelled"].as_array();
    list.cloned().unwrap_or_default()
}

fn looks(place: &Place, kind: &str) -> u64 {
    let status = place.status();
    status["integrity"]["looks"][kind]
        .as_u64()
        .unwrap_or_default()
}

/// A liar is found, cut off, and stays so; whoever is honest is asked in its place.
fn a_liar_is_found(lie: Lie) {
    let town = Town::new();
    let bob = town.start(&BOB);
    let liar = Liar::start(&town, lie);
    let mut news = town.start(&Draft {
        rescue: LOOKS,
        ..NEWS
    });
    news.knows(&["mallory", "bob"]);
    let crowd = Crowd::send(&news, RUSH);
    let found = until("the liar to be expelled", || expelled(&news).pop());
    assert_eq!(found["member"], "mallory.localhost", "{:?}", liar.heard);
    assert_eq!(found["target"], page(ALTERED));
    assert_ne!(found["expected"], found["seen"]);
    let alias = news.rescued_by("bob");
    crowd.is_redirected_to(&alias);
    let status = news.status();
    let helpers = status["rescue_servers"].as_array().unwrap().clone();
    assert!(
        helpers
            .iter()
            .all(|one| one["alias"].as_str()
                != Some(&format!("news-vh1.localhost:{}", liar.web.port()))),
        "{helpers:?}"
    );
    drop(crowd);
    // The list survives the server.
    let list = fs::read_to_string(news.home.join("state/expelled")).unwrap();
    assert!(list.contains("mallory.localhost"), "{list}");
    news.kill();
    news.restart();
    until("the list of before", || expelled(&news).pop());
    drop(bob);
}

#[test]
fn who_alters_a_page_and_leaves_its_signature_is_expelled() {
    a_liar_is_found(Lie::Signed);
}

#[test]
fn who_alters_a_page_and_takes_its_signature_away_is_expelled() {
    a_liar_is_found(Lie::Stripped);
}

#[test]
fn who_is_honest_is_looked_at_and_stays() {
    let town = Town::new();
    let alice = town.start(&ALICE);
    let _honest = Liar::start(&town, Lie::None);
    let news = town.start(&Draft {
        rescue: LOOKS,
        ..NEWS
    });
    news.knows(&["mallory", "alice"]);
    let crowd = Crowd::send(&news, RUSH);
    news.rescued_by("mallory");
    until("fifty looks", || {
        (looks(&news, "authentic") >= 50).then_some(())
    });
    assert_eq!((looks(&news, "forged"), looks(&news, "foreign")), (0, 0));
    assert!(expelled(&news).is_empty());
    drop((crowd, alice));
}

#[test]
fn what_visitors_get_under_an_alias_carries_the_origins_signature() {
    let (_town, news, alice, crowd, alias) = in_a_rescue();
    let key = news.status()["integrity"]["key"]
        .as_str()
        .unwrap()
        .to_owned();
    until("a signed page", || {
        let request = http::request(&alias, &page(0));
        let mut stream = TcpStream::connect(alice.socket()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let text = String::from_utf8_lossy(&response).into_owned();
        let is_signed = text.contains(&format!("keyid=\"{key}\"")) && text.contains("epr-digest:");
        is_signed.then_some(())
    });
    let told = alice.status()["lifetime"]["signatures"].clone();
    assert_eq!(told["forged"], 0, "{told}");
    drop(crowd);
}

#[test]
fn visitors_of_a_dead_origin_are_served_until_it_is_back() {
    let (_town, mut news, alice, crowd, alias) = in_a_rescue();
    until("all pages in alice's cache", || {
        let all = (0..4).all(|number| {
            let answer = http::try_get(alice.socket(), &alias, &page(number));
            answer.is_ok_and(|answer| answer.status == 200)
        });
        all.then_some(())
    });
    news.kill();
    alice.wait("the death of news", |status| {
        status["decisions"]
            .to_string()
            .contains("news.localhost has died")
    });
    drop(crowd);
    let name = news.address.to_string();
    for number in 0..4 {
        // Under the alias, and under its own name as DNS would bring them.
        for host in [&alias, &name] {
            let answer = alice.get(host, &page(number));
            let expected = body_of("news", &page(number)).into_bytes();
            assert_eq!((answer.status, answer.body), (200, expected));
        }
    }
    let missing = alice.get(&alias, "/never-asked-for.html");
    assert_eq!(missing.status, 503);
    assert_eq!(missing.retry_after.as_deref(), Some("60"));
    let said = String::from_utf8(missing.body).unwrap();
    assert!(said.starts_with("This site cannot be reached"), "{said}");
    news.restart();
    alice.is_normal_again();
    until("the alias to lead back", || {
        let answer = alice.get(&alias, &page(1));
        (answer.status == 302).then_some(())
    });
}

/// They have nowhere else to go, and alice is short of nothing: she gives what she has for others.
#[test]
fn more_visitors_of_a_dead_origin_than_there_is_room_for_do_not_end_its_rescue() {
    let town = Town::new();
    let alice = town.start(&Draft {
        link: "200 kB/s",
        ..ALICE
    });
    let mut news = town.start(&NEWS);
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let asks = || http::try_get(alice.socket(), &alias, &page(0));
    until("a page in alice's cache", || {
        asks()
            .is_ok_and(|answer| answer.status == 200)
            .then_some(())
    });
    news.kill();
    alice.wait("the death of news", |status| {
        status["origins"][0]["phase"] == "orphaned"
    });
    drop(crowd);
    let (mut served, mut turned_away) = (0, 0);
    until("many who are turned away", || {
        // Several at once, so that they want more than the link carries.
        let answers: Vec<_> = thread::scope(|scope| {
            let asking: Vec<_> = (0..8).map(|_| scope.spawn(asks)).collect();
            asking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for answer in answers {
            match answer.map(|answer| answer.status) {
                Ok(200) => served += 1,
                // Beyond a share of the link there is not even room for a refusal.
                Ok(503) | Err(_) => turned_away += 1,
                Ok(other) => panic!("{other}"),
            }
        }
        (turned_away >= 100).then_some(())
    });
    assert!(served > 0, "what there is is given");
    let status = alice.wait("a count of who was turned away", |status| {
        status["lifetime"]["withheld"].as_u64() >= Some(turned_away)
    });
    assert_eq!(status["state"], "rescue", "{}", status["decisions"]);
    assert_eq!(status["origins"][0]["phase"], "orphaned");
}

#[test]
fn the_permit_of_a_dead_origin_ends() {
    let town = Town::new();
    let alice = town.start(&ALICE);
    let mut news = town.start(&Draft {
        rescue: "[integrity]\npermit = \"8 s\"\n",
        ..NEWS
    });
    news.knows(&["alice"]);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    news.kill();
    alice.is_normal_again();
    drop(crowd);
    let decisions = alice.status()["decisions"].to_string();
    assert!(decisions.contains("its permit is over"), "{decisions}");
}
