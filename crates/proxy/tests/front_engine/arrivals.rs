//! What each core tells of the requests that came to it (H1).

use std::collections::BTreeMap;

use levee_proxy::UnknownHost;

use crate::support::Setup;

#[test]
fn what_was_asked_for_is_told_with_its_size_and_without_its_query() {
    let setup = Setup {
        unknown: UnknownHost::Serve,
        ..Setup::default()
    };
    let running = setup.start();
    running.write("page", "x".repeat(5000));
    // By whichever name and in whichever letters: it is one site.
    let names = [
        "site.example",
        "SITE.example:80",
        "other.example",
        "192.0.2.1",
    ];
    for (number, name) in names.iter().cycle().take(7).enumerate() {
        let head = format!("GET /page?visitor={number} HTTP/1.1\r\nHost: {name}\r\n\r\n");
        assert_eq!(running.ask(&head).status, 200);
    }
    assert_eq!(running.get("/nothing").status, 404);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes = 0;
    running.sample_until(|_| {
        for arrivals in running.front.take_notes().arrivals {
            *counts.entry(arrivals.url.clone()).or_default() += arrivals.count;
            bytes = bytes.max(arrivals.bytes);
        }
        counts.values().sum::<u64>() == 8
    });
    let told: Vec<_> = counts.into_iter().collect();
    let page = ("site.example/page".to_owned(), 7);
    let nothing = ("site.example/nothing".to_owned(), 1);
    assert_eq!(told, [nothing, page]);
    assert!((5000..6000).contains(&bytes), "{bytes}");
}
