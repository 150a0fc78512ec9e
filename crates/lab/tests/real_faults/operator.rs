//! What the operator does in mid-crowd: SIGTERM, SIGHUP with good and bad settings.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::crowd::{Crowd, assert_all_are_right, assert_the_name_answers, in_a_rescue};
use crate::http;
use crate::stage::{
    ALICE, INTERVAL, NEWS, Place, RUSH, Town, assert_leads_back, body_of, page, until,
};

#[test]
fn a_rescue_server_that_is_stopped_in_mid_crowd_loses_no_visitor() {
    let (_town, news, mut alice, bob) = Town::cast();
    // Some of them have their redirect in hand when alice is stopped.
    let crowd = Crowd::send_slowly(&news, RUSH, INTERVAL / 2);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    alice.ask_to_stop();
    assert!(alice.wait_for_end().success(), "{}", alice.log());
    let other = news.rescued_by("bob");
    crowd.is_redirected_to(&other);
    let visits = crowd.leave();
    assert_all_are_right(&visits);
    let decisions = news.status()["decisions"].to_string();
    assert!(decisions.contains("it shut the rescue down"), "{decisions}");
    news.is_normal_again();
    bob.is_normal_again();
}

#[test]
fn an_origin_that_is_stopped_in_mid_crowd_answers_all_it_took_and_lets_its_helper_go() {
    let (_town, mut news, alice, crowd, _alias) = in_a_rescue();
    let download = Download::begin(&news);
    news.ask_to_stop();
    download.arrives_whole();
    assert!(news.wait_for_end().success(), "{}", news.log());
    alice.is_normal_again();
    let decisions = alice.status()["decisions"].to_string();
    assert!(decisions.contains("it needs no more help"), "{decisions}");
    // Whoever was taken in by the origin before it closed its door got the page.
    for visit in crowd.leave() {
        match &visit.hops[0].answer {
            Ok(answer) => assert!([200, 302].contains(&answer.status), "{visit:?}"),
            Err(why) => assert!(why.starts_with("connect"), "{visit:?}"),
        }
    }
}

#[test]
fn a_reload_in_mid_crowd_drops_no_connection() {
    let town = Town::new();
    let alice = town.start(&ALICE);
    let mut news = town.start(&NEWS);
    news.knows(&["alice"]);
    let mut kept = Kept::open(&news);
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let download = Download::begin(&news);
    let good = fs::read_to_string(news.settings()).unwrap();
    // A changed file is in force, for the rescue that runs as well.
    let changed = good.replace("[rescue]", "[rescue]\nthreshold_high = \"70 %\"");
    fs::write(news.settings(), &changed).unwrap();
    news.reload();
    news.wait("the new threshold", |status| status["thresholds"][2] == 0.7);
    assert_eq!(news.rescued_by("alice"), alias);
    // A broken one changes nothing, and its mistake is told.
    fs::write(news.settings(), good.replace("54 kB/s", "54 parsecs")).unwrap();
    news.reload();
    until("the complaint", || {
        news.log().contains("link.rate").then_some(())
    });
    assert!(news.log().contains("the old settings stay in force"));
    assert_eq!(news.status()["thresholds"][2], 0.7);
    kept.answers();
    download.arrives_whole();
    crowd.is_redirected_to(&alias);
    assert_all_are_right(&crowd.leave());
    assert!(news.is_running());
    news.is_normal_again();
    alice.is_normal_again();
}

#[test]
fn an_alias_leads_back_when_the_crowd_has_left_and_nobody_goes_in_circles() {
    let (_town, news, alice, crowd, alias) = in_a_rescue();
    let visits = crowd.leave();
    assert_the_name_answers(&visits);
    assert_all_are_right(&visits);
    news.is_normal_again();
    alice.is_normal_again();
    until("the alias to lead back", || {
        let answer = alice.get(&alias, &page(5));
        match answer.status {
            // Until the origin has certainly stopped, the alias still serves.
            200 => None,
            302 => {
                assert_leads_back(&answer, &news, &page(5));
                Some(())
            }
            other => panic!("{other}"),
        }
    });
    // And the origin serves the page itself.
    let answer = news.get(&news.address.to_string(), &page(5));
    assert_eq!((answer.status, answer.location), (200, None));
    // In the next crowd the old alias leads back to the origin, and that to another one: no circle.
    let crowd = Crowd::send(&news, RUSH);
    let new = news.rescued_anew("alice", &alias);
    crowd.is_redirected_to(&new);
    assert_leads_back(&alice.get(&alias, &page(5)), &news, &page(5));
    assert_all_are_right(&crowd.leave());
    news.is_normal_again();
}

/// A visitor in the middle of something that takes the link more than a second.
struct Download {
    stream: TcpStream,
    received: Vec<u8>,
}

const DOWNLOAD_BYTES: usize = 80_000;

impl Download {
    /// From now on some of it has come, and most has not.
    fn begin(place: &Place) -> Self {
        let file = place.home.join("public/long.bin");
        fs::write(file, vec![b'x'; DOWNLOAD_BYTES]).unwrap();
        let mut stream = TcpStream::connect(place.socket()).unwrap();
        let words = http::request(&place.address.to_string(), "/long.bin");
        // With credentials, so that nobody else may answer it.
        let words = words.replace("Connection", "Authorization: Basic eDp5\r\nConnection");
        stream.write_all(words.as_bytes()).unwrap();
        let mut received = vec![0; 1];
        stream.read_exact(&mut received).unwrap();
        Self { stream, received }
    }

    fn arrives_whole(mut self) {
        self.stream.read_to_end(&mut self.received).unwrap();
        let answer = http::read(&self.received).expect("a download that is whole");
        assert_eq!(answer.body, vec![b'x'; DOWNLOAD_BYTES]);
    }
}

/// A visitor who keeps the connection for the next request, and whose requests are never
/// redirected.
struct Kept {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Kept {
    fn open(place: &Place) -> Self {
        let mut kept = Self {
            stream: BufReader::new(TcpStream::connect(place.socket()).unwrap()),
            head: format!(
                "GET {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Basic eDp5\r\n\r\n",
                page(0),
                place.address
            ),
        };
        kept.answers();
        kept
    }

    /// One more request over the same connection.
    fn answers(&mut self) {
        self.stream
            .get_mut()
            .write_all(self.head.as_bytes())
            .unwrap();
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).unwrap() > 0, "closed");
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        assert_eq!(body, body_of("news", &page(0)).as_bytes());
    }
}
