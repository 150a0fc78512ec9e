//! Text for the demo's pages: sentences about a harbour, in an order that a seed decides.

use levee_vocab::Random;

/// Titles of the pages; the first is the post that everybody wants to read.
pub const TITLES: [&str; 24] = [
    "The night the lighthouse answered",
    "Harbour log",
    "About this weblog",
    "Tide tables for the week",
    "How the old crane was saved",
    "A short history of the pier",
    "What the fog horn says",
    "Boats that came in today",
    "Rope, tar and patience",
    "The ferry that was late for good",
    "Birds of the breakwater",
    "Letters from the pilot station",
    "Mending nets in winter",
    "The storm of the year before",
    "A walk along the quay",
    "Who keeps the clock",
    "Salt in the bread",
    "The map on the wall",
    "Lamps, lenses and lamp oil",
    "Children's regatta",
    "The weather book",
    "An evening at the chandler's",
    "Names of the rocks",
    "Where the herring went",
];

const SENTENCES: [&str; 20] = [
    "The keeper climbed the stairs twice that night, and both times the lamp was already lit.",
    "Down on the quay somebody had left a lantern, a chair and half a letter.",
    "It rained sideways, as it does here from October to the end of the fishing season.",
    "Nobody at the pilot station would say who had rung the bell.",
    "We wrote down the time, the wind and the state of the tide, because one always does.",
    "The ferry came in an hour late with every passenger on the lee side.",
    "By midnight the fog stood so thick that the pier ended after the third lamp.",
    "An old captain told us that light travels better over cold water.",
    "The harbour dog, who is never wrong, went home early.",
    "There is a drawer in the weather office that holds only tide tables for other years.",
    "In the morning the nets were dry, the ropes were coiled and the log had a new page.",
    "One counts seven seconds between the flashes, and everyone here can do it asleep.",
    "The chandler sells candles by the dozen and advice by the hour.",
    "When the storm cone goes up, the small boats move to the inner basin.",
    "Somebody has painted the bollards green again, and again nobody saw it happen.",
    "The breakwater was built by neighbours, one cart of stones from each house.",
    "No house on this shore has ever put out its own fire alone.",
    "A lens this size bends the light of one small flame to the horizon.",
    "We asked at the next lighthouse, and they had answered, they said, because we called.",
    "What follows is told as we heard it, with the boring parts left in.",
];

/// Paragraphs of about `bytes_wanted` of HTML, at least one sentence.
pub fn paragraphs(random: &mut Random, bytes_wanted: usize) -> String {
    let mut text = String::with_capacity(bytes_wanted + 128);
    loop {
        text.push_str("<p>");
        for _ in 0..random.within(3..7) {
            let sentence = SENTENCES[random.within(0..SENTENCES.len() as u64) as usize];
            text.push_str(sentence);
            text.push(' ');
            if text.len() + 6 >= bytes_wanted {
                text.push_str("</p>\n");
                return text;
            }
        }
        text.push_str("</p>\n");
    }
}

/// A title as part of an address: `the-night-the-lighthouse-answered`.
pub fn slug(title: &str) -> String {
    title
        .to_ascii_lowercase()
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}
