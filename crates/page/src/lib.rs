//! Which objects a browser loads with a page, found while the page streams through, and links of a
//! page made relative.
//!
//! [`Finder`] and [`Rewriter`] are the ways in. Pure: no clock, no socket, no memory that grows
//! with what is read.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod charset;
mod context;
mod css;
mod finder;
mod fonts;
mod foreign;
mod found;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod html;
mod limits;
mod links;
mod place;
mod references;
mod rewriter;
mod srcset;
mod syntax;
mod tokenizer;

pub use finder::Finder;
pub use found::{Extent, Found, Object, Use};
pub use limits::{OBJECTS_MAX, URL_BYTES_MAX};
pub use place::{Place, PlaceError};
pub use rewriter::{Hyperlinks, Rewriter};
