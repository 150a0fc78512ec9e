//! Updates against BIND 9, the name server that most zones live in.
#![allow(clippy::unwrap_used)]

mod named;
mod updates;
