//! Fields by which an application speaks to the servers in front of it and not to browsers:
//! CDN-Cache-Control (RFC 9213) and, before it, Surrogate-Control (the W3C's Edge Architecture
//! Specification of 2001, which many applications and frameworks still send).
//!
//! Where one of them is there and can be read, Cache-Control, Expires and Pragma are for others.
//! Both are passed on, as RFC 9213 section 2.2 has it: the next cache on the way is as much a
//! server in front of the application as we are, a rescue server above all.

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::control::{Place, ResponseControl};
use super::syntax::{split_at, split_outside_quotes};

const CDN: HeaderName = HeaderName::from_static("cdn-cache-control");
const SURROGATE: HeaderName = HeaderName::from_static("surrogate-control");

/// Our name in Surrogate-Capability, by which an application can mean us and nobody else.
pub const DEVICE: &str = "levee";

/// What a response says to servers like us; none where it says nothing that can be read.
pub(super) fn targeted(headers: &HeaderMap) -> Option<ResponseControl> {
    cdn(headers).or_else(|| surrogate(headers))
}

fn cdn(headers: &HeaderMap) -> Option<ResponseControl> {
    let text = joined(headers, &CDN)?;
    //= RFC 9213 section 2.1: a field that is empty or no dictionary "MUST be ignored".
    let dictionary: Dictionary = Parser::new(&text).parse().ok()?;
    if dictionary.is_empty() {
        return None;
    }
    let mut control = ResponseControl {
        place: Place::Targeted,
        ..ResponseControl::default()
    };
    for (name, entry) in &dictionary {
        let name = name.as_str().as_bytes();
        match entry {
            ListEntry::Item(item) => match &item.bare_item {
                BareItem::Boolean(true) => control.add(name, None),
                BareItem::Boolean(false) => {}
                BareItem::Integer(number) => {
                    control.add(name, Some(number.to_string().as_bytes()));
                }
                BareItem::String(text) => control.add(name, Some(text.as_str().as_bytes())),
                BareItem::Decimal(_)
                | BareItem::Token(_)
                | BareItem::ByteSequence(_)
                | BareItem::Date(_)
                | BareItem::DisplayString(_) => control.add(name, UNREADABLE),
            },
            ListEntry::InnerList(_) => control.add(name, UNREADABLE),
        }
    }
    Some(control)
}

/// A value that is none of those that a directive takes.
const UNREADABLE: Option<&[u8]> = Some(b"?");

fn surrogate(headers: &HeaderMap) -> Option<ResponseControl> {
    let text = joined(headers, &SURROGATE)?;
    let (mut for_us, mut for_all) = (None, None);
    for member in split_outside_quotes(&text) {
        let parts = split_at(member, b';');
        let Some((directive, targets)) = parts.split_first() else {
            continue;
        };
        let control = match targets {
            [] => &mut for_all,
            _ if targets.contains(&DEVICE.as_bytes()) => &mut for_us,
            _ => continue,
        };
        add_surrogate(directive, control);
    }
    for_us.or(for_all)
}

/// Adds one of the directives that are about caching.
fn add_surrogate(directive: &[u8], to: &mut Option<ResponseControl>) {
    let mut words = directive.splitn(2, |&byte| byte == b'=');
    let name = words.next().unwrap_or_default();
    let value = words.next();
    let is = |known: &str| name.trim_ascii().eq_ignore_ascii_case(known.as_bytes());
    if !is("max-age") && !is("no-store") {
        return;
    }
    let control = to.get_or_insert_with(|| ResponseControl {
        place: Place::Targeted,
        ..ResponseControl::default()
    });
    // `600+30`: fresh for 600 seconds, and to be shown for 30 more.
    let plus = value.and_then(|value| value.iter().position(|&byte| byte == b'+'));
    match (value, plus) {
        (Some(value), Some(plus)) => {
            control.add(name, Some(&value[..plus]));
            for extension in [&b"stale-while-revalidate"[..], b"stale-if-error"] {
                control.add(extension, Some(&value[plus + 1..]));
            }
        }
        (value, _) => control.add(name, value),
    }
}

/// All lines of a field as one list.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = headers
        .get_all(name)
        .iter()
        .map(|value| value.as_bytes())
        .collect();
    (!lines.is_empty()).then(|| lines.join(&b", "[..]))
}
