//! Links in a field of the response (RFC 8288): a browser loads what they say before it has seen
//! the page.

use crate::context::Context;
use crate::found::Collector;
use crate::references::LinkWords;

/// Adds what a `Link` field names.
pub fn read(value: &str, context: Context<'_>, found: &mut Collector) {
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((reference, after)) = after.split_once('>') else {
            return;
        };
        let end = end_of_link(after);
        let object_use = words(&after[..end]).object_use();
        rest = &after[end..];
        let object = object_use.and_then(|one| context.plain(reference.as_bytes(), one));
        object.into_iter().for_each(|object| found.add(object));
    }
}

/// Where the comma stands that ends a link, which none in quotes does.
fn end_of_link(parameters: &str) -> usize {
    let mut quoted = false;
    let end = parameters.find(|char| {
        quoted ^= char == '"';
        char == ',' && !quoted
    });
    end.unwrap_or(parameters.len())
}

fn words(parameters: &str) -> LinkWords<'_> {
    let mut words = LinkWords {
        relation: "",
        destination: "",
        content_type: "",
    };
    for parameter in parameters.split(';') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        let word = match name.trim().to_ascii_lowercase().as_str() {
            "as" => &mut words.destination,
            "rel" => &mut words.relation,
            "type" => &mut words.content_type,
            _ => continue,
        };
        if word.is_empty() {
            *word = value;
        }
    }
    words
}
