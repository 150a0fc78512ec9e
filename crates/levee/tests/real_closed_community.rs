//! A closed community of real processes, and those who want to harm it (M1, M2): strangers, members
//! that lie, registries that lie, recorded messages, and a member that is expelled.
#![allow(clippy::unwrap_used)]

#[path = "real_closed_community/accusations.rs"]
mod accusations;
#[path = "real_closed_community/attacks.rs"]
mod attacks;
#[path = "real_closed_community/boaster.rs"]
mod boaster;
#[path = "real_closed_community/dismissals.rs"]
mod dismissals;
#[path = "real_closed_community/members.rs"]
mod members;
#[path = "real_closed_community/omissions.rs"]
mod omissions;
#[path = "real_closed_community/players.rs"]
mod players;
#[path = "real_closed_community/stage.rs"]
mod stage;
