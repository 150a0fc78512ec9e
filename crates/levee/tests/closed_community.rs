//! A closed community over real sockets: who is let in, and what is believed (M1, M2).
#![allow(clippy::unwrap_used)]

#[path = "closed_community/accusations.rs"]
mod accusations;
#[path = "closed_community/calls.rs"]
mod calls;
#[path = "closed_community/desk.rs"]
mod desk;
#[path = "closed_community/floods.rs"]
mod floods;
#[path = "closed_community/hostile_registry.rs"]
mod hostile_registry;
#[path = "closed_community/lists.rs"]
mod lists;
#[path = "closed_community/registrations.rs"]
mod registrations;
#[path = "closed_community/stage.rs"]
mod stage;
