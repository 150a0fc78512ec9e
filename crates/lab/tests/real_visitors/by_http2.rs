//! Visitors of the lab who speak HTTP/2, in the middle of a crowd.

use std::time::Instant;

use ::http::Method;
use futures_util::future::join_all;
use levee_lab::crowd::client::{Habit, Protocol, Trail, Visitor};
use levee_lab::crowd::meter::Traffic;
use levee_lab::crowd::url::Url;
use tokio::runtime;

use crate::stage::{Community, ORIGIN, until};

#[test]
fn a_visitor_by_http2_is_redirected_and_asks_for_all_images_over_one_connection() {
    let community = Community::start(&ORIGIN);
    let _crowd = community.in_lasting_crowd();
    let site = &community.origin.site;
    let post = site.post();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    until("a redirected visitor", || {
        runtime.block_on(async {
            let traffic = Traffic::since(Instant::now());
            let visitor = Visitor::new(traffic.clone(), "by-http2".to_owned(), Habit::KeepAlive)
                .speaking(Protocol::Http2);
            let start: Url = format!("http://{}{}", community.origin.address, post.path)
                .parse()
                .unwrap();
            let mut trail = Trail::default();
            // A visitor may be refused in a crowd, or served by the origin: the next one is not.
            let page = visitor.fetch(&Method::GET, &start, &mut trail).await.ok()?;
            assert!(page.body == *site.body(&post.path));
            trail.redirected?;
            community.member_of(&page.url.authority());
            let images = post.images.iter().map(async |path| {
                let url = page.url.join(path).unwrap();
                let mut trail = Trail::default();
                let image = visitor.fetch(&Method::GET, &url, &mut trail).await.ok()?;
                assert!(image.body == *site.body(path), "{path}");
                Some(())
            });
            for image in join_all(images).await {
                image?;
            }
            let bins = traffic.by_port().remove(&page.url.port).unwrap();
            assert_eq!(bins.iter().map(|bin| bin.connections).sum::<u64>(), 1);
            Some(())
        })
    });
}
