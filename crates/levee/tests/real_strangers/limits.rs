//! What an operator gives at most, with a real server: whom it helps, and how much in a day.

use crate::own;
use crate::stage::{Helper, Player};

/// A page of 100 kB that nobody keeps.
fn origin(_target: &str) -> (&'static str, String) {
    ("Cache-Control: no-store\r\n", "x".repeat(100_000))
}

#[test]
fn who_is_not_to_be_helped_is_refused_and_the_status_says_why() {
    let (site, origin) = (Player::start(own), Player::start(origin));
    let settings = "[help]\nmembers = [\"a.test\"]\nnever = [\"bad.a.test\"]\n";
    let mut helper = Helper::start(&site, settings);
    let rescue = helper.rescue("www.a.test", &origin).unwrap();
    for host in ["www.bad.a.test", "www.b.test"] {
        let refusal = helper.rescue(host, &origin).err();
        assert_eq!(refusal.as_deref(), Some("1 403 Reject"), "{host}");
    }
    let status = helper.status(|status| status["help"]["refused"][1]["site"] != "");
    let status = match status["help"]["refused"].as_array().unwrap().len() {
        2 => status,
        _ => helper.status(|status| status["help"]["refused"].as_array().unwrap().len() == 2),
    };
    let refused = &status["help"]["refused"];
    assert_eq!(refused[0]["site"], "www.b.test");
    assert!(refused[0]["why"].as_str().unwrap().contains("help.members"));
    assert!(refused[1]["why"].as_str().unwrap().contains("help.never"));
    // A reload takes effect at once: whoever is helped and is not to be is let go.
    helper.reload("never = [\"bad.a.test\"]", "never = [\"a.test\"]");
    helper.status(|status| {
        let origins = status["origins"].as_array().unwrap();
        origins.iter().all(|origin| origin["phase"] != "live")
    });
    // Its last visitors are served for a moment; then its alias is kept, and nobody is helped.
    let status = helper.status(|status| status["origins"].as_array().unwrap().is_empty());
    let kept = &status["kept_aliases"][0];
    assert!(kept["site"].to_string().contains("www.a.test"), "{status}");
    let alias = kept["alias"].as_str().unwrap();
    assert!(rescue.alias.starts_with(alias), "{status}");
    assert!(helper.rescue("www.a.test", &origin).is_err());
    drop(rescue);
    assert!(helper.is_whole());
}

#[test]
fn what_a_day_may_cost_holds_over_a_kill() {
    let (site, origin) = (Player::start(own), Player::start(origin));
    let settings = "[help]\nbytes_per_day = \"2 MB\"\nmember_bytes_per_day = \"1500 kB\"\n";
    let mut helper = Helper::start(&site, settings);
    let rescue = helper.rescue("www.a.test", &origin).unwrap();
    let mut answers = vec![];
    for number in 0..40 {
        let page = helper.get(&rescue.alias, &format!("/{number}"), "");
        answers.push(page.status);
    }
    // What is over the limit goes back to the origin, and costs it one visit each.
    let served = answers.iter().filter(|&&status| status == 200).count();
    assert!((1..=15).contains(&served), "{answers:?}");
    assert!(
        answers[20..].iter().all(|&status| status == 302),
        "{answers:?}"
    );
    let given = |status: &serde_json::Value| status["help"]["given"].as_u64().unwrap();
    let status = helper.status(|status| given(status) >= served as u64 * 100_000);
    let before = given(&status);
    assert!(before < 1_500_000, "{before}");
    assert_eq!(status["help"]["sites"][0][0], "www.a.test");
    // Nothing is asked of it to write this down.
    let file = helper.path("state/given");
    helper.status(|_| std::fs::read_to_string(&file).is_ok_and(|text| text.contains("www.a.test")));
    helper.restart();
    let after = given(&helper.status(|status| given(status) > 0));
    assert!(after > 0 && after <= before, "{after} of {before}");
}
