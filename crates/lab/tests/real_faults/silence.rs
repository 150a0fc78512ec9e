//! Rescue servers that stop speaking without closing anything.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::crowd::{
    Crowd, Page, assert_redirects_stop, assert_the_name_answers, count, in_a_rescue_of,
};
use crate::stage::{BOB, INTERVAL, NEWS, RUSH, Town, UNPERMITTING};

#[test]
fn redirects_to_a_hanging_rescue_server_stop_within_three_intervals() {
    let (_town, news, alice, bob) = Town::cast();
    let crowd = Crowd::send(&news, RUSH);
    let alias = news.rescued_by("alice");
    crowd.is_redirected_to(&alias);
    let hung = crowd.now();
    alice.freeze();
    let other = news.rescued_by("bob");
    crowd.is_redirected_to(&other);
    // It goes on as if nothing had been, and finds that it is no longer needed.
    alice.thaw();
    alice.is_normal_again();
    let status = news.status();
    let visits = crowd.leave();
    assert_redirects_stop(&visits, &alias, hung, 3);
    assert_the_name_answers(&visits);
    let lost = count(&visits, Page::Lost) as u64;
    let at_risk = status["lifetime"]["redirects_at_risk"].as_u64().unwrap();
    assert!(at_risk > 0 && at_risk >= lost, "{at_risk} of {lost}");
    news.is_normal_again();
    bob.is_normal_again();
}

#[test]
fn a_rescue_server_that_hangs_right_after_it_accepted_is_left() {
    let (_town, news, alice, _bob) = Town::cast();
    let crowd = Crowd::send(&news, RUSH);
    alice.wait("an origin", |status| status["state"] == "rescue");
    let hung = crowd.now();
    alice.freeze();
    let other = news.rescued_by("bob");
    crowd.is_redirected_to(&other);
    alice.thaw();
    let visits = crowd.leave();
    let to_alice = |visit: &&crate::crowd::Visit| {
        let first = visit.hops[0].leads_to();
        first.is_some_and(|alias| alias.starts_with("alice"))
    };
    let bound = hung + INTERVAL * 3 + crate::stage::TOLERANCE;
    for visit in visits.iter().filter(to_alice) {
        assert!(visit.hops[0].ended <= bound, "hung at {hung:?}: {visit:?}");
    }
    assert_the_name_answers(&visits);
    alice.is_normal_again();
    news.is_normal_again();
}

#[test]
fn a_peer_that_says_ok_and_nothing_else_is_left_within_three_intervals() {
    let town = Town::new();
    let bob = town.start(&BOB);
    let mute = Mute::register(town.registry_at);
    let news = town.start(&NEWS);
    news.knows(&["mute", "bob"]);
    let crowd = Crowd::send(&news, RUSH);
    let accepted = mute.accepts();
    let since = crowd.now();
    let other = news.rescued_by("bob");
    crowd.is_redirected_to(&other);
    let status = news.status();
    let visits = crowd.leave();
    assert_redirects_stop(&visits, &accepted, since, 3);
    assert_the_name_answers(&visits);
    let lost = count(&visits, Page::Lost) as u64;
    let at_risk = status["lifetime"]["redirects_at_risk"].as_u64().unwrap();
    assert!(lost > 0 && at_risk >= lost, "{at_risk} of {lost}");
    news.is_normal_again();
    bob.is_normal_again();
}

#[test]
fn a_silent_origin_is_given_up_by_its_rescue_server() {
    let (_town, news, alice, crowd, alias) = in_a_rescue_of(&UNPERMITTING);
    news.freeze();
    alice.is_normal_again();
    // Frozen for longer than anybody waits: whoever still waits by then is answered, and the crowd
    // that goes on is rescued anew.
    news.thaw();
    let alias = news.rescued_anew("alice", &alias);
    crowd.is_redirected_to(&alias);
    drop(crowd);
    news.is_normal_again();
    alice.is_normal_again();
}

/// A peer that keeps its entry at the registry, says that it will help, and does nothing.
struct Mute {
    rescue: TcpListener,
    web: TcpListener,
    _registration: TcpStream,
}

impl Mute {
    /// Offers more than anybody else.
    fn register(registry: SocketAddr) -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (rescue, web) = (listen(), listen());
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let mut registration = TcpStream::connect(registry).unwrap();
        let (web_port, rescue_port) = (port(&web), port(&rescue));
        let entry = format!("mute.localhost {web_port} 127.0.0.1 {rescue_port} 9000 60");
        writeln!(registration, "1 REGISTER {entry}").unwrap();
        let mut answer = String::new();
        BufReader::new(&registration)
            .read_line(&mut answer)
            .unwrap();
        assert!(answer.starts_with("1 200 "), "{answer}");
        Self {
            rescue,
            web,
            _registration: registration,
        }
    }

    /// Takes one call, and says nothing after that; its visitors find an open door and no answer.
    /// Gives the alias.
    fn accepts(&self) -> String {
        let (mut link, _) = self.rescue.accept().unwrap();
        let mut call = String::new();
        BufReader::new(&link).read_line(&mut call).unwrap();
        assert!(call.contains(" SOS news.localhost "), "{call}");
        let number = call.split(' ').next().unwrap();
        let port = self.web.local_addr().unwrap().port();
        write!(
            link,
            "{number} 200 OK mute-vh1.localhost 127.0.0.1 {port} 5000 beat=1\r\n"
        )
        .unwrap();
        // The link stays open for as long as the test runs.
        thread::spawn(move || {
            let _ = link.set_read_timeout(Some(Duration::from_secs(60)));
            for line in BufReader::new(&link).lines() {
                if line.is_err() {
                    break;
                }
            }
        });
        format!("mute-vh1.localhost:{port}")
    }
}
