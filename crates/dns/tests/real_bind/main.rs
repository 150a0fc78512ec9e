//! Updates against BIND 9, the name server that most zones live in; and our own name server against
//! BIND's tools, and with a BIND as its secondary.
#![allow(clippy::unwrap_used)]

mod by_hand;
mod named;
mod own_zone;
mod updates;
