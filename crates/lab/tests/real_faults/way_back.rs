//! Visitors whom a rescue server sends back to the origin, and links that they share.

use crate::crowd::{assert_nobody_is_led_astray, in_a_rescue};
use crate::stage::{body_of, page, until};

/// A word as a rescue server of last week signed it.
const OLD_WORD: &str = "levee-back=BQECCQkJCQkJCQkJ";

#[test]
fn a_link_with_an_old_word_is_redirected_once_and_one_without_a_proof_never() {
    let (_town, news, alice, crowd, alias) = in_a_rescue();
    let authority = news.address.to_string();
    // In a crowd some are answered directly and some have to wait.
    let old = format!("{}?{OLD_WORD}", page(2));
    let on = until("a redirect of an old link", || {
        news.get(&authority, &old).location
    });
    assert_eq!(on, format!("http://{alias}{old}"));
    let answer = alice.get(&alias, &old);
    assert_eq!(answer.body, body_of("news", &page(2)).into_bytes());
    let unsigned = format!("{}?levee-back=", page(2));
    for _ in 0..20 {
        let answer = news.get(&authority, &unsigned);
        assert!([200, 503].contains(&answer.status), "{answer:?}");
    }
    news.wait("all of them in the figures", |status| {
        let comebacks = &status["lifetime"]["comebacks"];
        comebacks["unsigned"] == 20 && comebacks["doubtful"].as_u64() > Some(0)
    });
    assert_nobody_is_led_astray(&crowd.leave());
    news.is_normal_again();
    alice.is_normal_again();
}
