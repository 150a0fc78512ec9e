//! How many links there are, and how the Brain parts from one.

use levee::rescue_link::Obeyed;
use levee_control::{Input, LinkLoss, Output};
use levee_vocab::LinkId;

use crate::stage::{Stage, accept, settings};

#[tokio::test]
async fn links_beyond_the_limit_are_closed_at_once() {
    let mut settings = settings();
    settings.inbound_max = 2;
    let mut stage = Stage::set(settings).await;
    let (_first, _) = stage.greeted().await;
    let (_second, _) = stage.greeted().await;
    let mut third = stage.netcat().await;
    third.reads_the_end().await;
    stage.has_refused("too_many_links", 1).await;
}

#[tokio::test]
async fn the_oldest_silent_link_makes_room_for_a_new_one() {
    let mut settings = settings();
    settings.inbound_max = 2;
    let mut stage = Stage::set(settings).await;
    let mut oldest = stage.netcat().await;
    let (_good, _) = stage.greeted().await;
    let (_better, _) = stage.greeted().await;
    oldest.reads_the_end().await;
    stage.has_refused("made_room", 1).await;
}

#[tokio::test]
async fn the_brain_can_drop_a_link_without_a_word() {
    let mut stage = Stage::set(settings()).await;
    let (mut netcat, link) = stage.greeted().await;
    stage.obeys(Output::DropLink { link });
    netcat.reads_the_end().await;
    assert!(stage.is_quiet());
    assert_eq!(stage.links.obey(&Output::SwapPlan), Obeyed::NotForLinks);
}

#[tokio::test]
async fn an_order_for_a_link_that_is_gone_tells_so() {
    let mut stage = Stage::set(settings()).await;
    let link = LinkId::Inbound(99);
    stage.obeys(accept(link));
    let loss = LinkLoss::Closed;
    stage.hears(Input::LinkLost { link, loss }).await;
}
