//! Crawlers that say what they are.
//!
//! Almost all that do say so with the same few words, so a list of every crawler there is would
//! grow old without finding many more. Those that have a name without such a word are listed.
//! A second list has those who use the words and look at a page because somebody named it.
//!
//! One automaton finds all words in one pass over a User-Agent, without allocating.

use aho_corasick::AhoCorasick;

/// The words, ready to be looked for.
#[derive(Clone, Debug)]
pub struct CrawlerNames {
    automaton: AhoCorasick,
    meanings: Box<[Meaning]>,
}

/// What a User-Agent says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// It is a crawler.
    Crawler,
    /// The operator wants it to be treated as a reader, whatever it does.
    Allowed,
    /// Nothing in particular.
    Nobody,
}

/// What a word means where it is found. The largest of those that are found counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// A crawler, unless a letter follows: `bot`, but not `bottle`.
    CrawlerIfEnding,
    Crawler,
    /// Not a crawler in our sense.
    OnDemand,
    /// The operator says that it is one.
    Listed,
    /// The operator says that it is none.
    Allowed,
}

/// Words of which no letter may follow.
const ENDINGS: &[&str] = &["bot", "bots"];

/// Words, and names that have none of them.
const CRAWLERS: &[&str] = &[
    "crawl",
    "spider",
    "scraper",
    "scraping",
    "scrapy",
    "harvester",
    "indexer",
    "slurp",
    "nutch",
    "heritrix",
    "httrack",
    "ia_archiver",
    "meta-externalagent",
    "meta-webindexer",
    "googleother",
    "anthropic-ai",
    "claude-web",
    "cohere-ai",
    "img2dataset",
    "omgili",
    "webzio",
    "barkrowler",
    "bubing",
    "coccoc",
    "ltx71",
    "megaindex",
    "panscient",
    "proximic",
    "qwantify",
    "screaming frog",
    "sitebulb",
    "teoma",
    "turnitin",
];

/// Those that look at one page because somebody named it, watch one page, or are a telephone.
const ON_DEMAND: &[&str] = &[
    // Servers of the fediverse.
    "activitypub",
    "akkoma",
    "bookwyrm",
    "fediverse",
    "friendica",
    "gotosocial",
    "hubzilla",
    "iceshrimp",
    "lemmy",
    "mastodon",
    "mbin",
    "misskey",
    "mobilizon",
    "peertube",
    "pixelfed",
    "pleroma",
    "sharkey",
    "writefreely",
    // Networks and programs in which people show pages to each other.
    "bluesky",
    "cardyb",
    "discordbot",
    "embedly",
    "facebookexternalhit",
    "facebot",
    "iframely",
    "linkedinbot",
    "mattermost",
    "nextcloud",
    "preview",
    "redditbot",
    "rocket.chat",
    "slack-imgproxy",
    "slackbot",
    "superfeedr",
    "synapse",
    "telegrambot",
    "twitterbot",
    "viber",
    "whatsapp",
    // Programs that look something up for a person; one has `openai.com/bot` as its address.
    "chatgpt-user",
    "claude-user",
    "mistralai-user",
    "perplexity-user",
    // One page again and again, to see whether it is there.
    "pingdom",
    "uptime",
    // A telephone.
    "cubot",
];

impl CrawlerNames {
    /// The words that we know; beside them `listed` make a crawler, and `allowed` make none,
    /// whatever else is said. Large and small letters are the same. Empty words are left out.
    ///
    /// # Panics
    /// If the words are too many for the memory of any machine.
    pub fn new(listed: &[String], allowed: &[String]) -> Self {
        let own = |words: &'static [&str], meaning| words.iter().map(move |&word| (word, meaning));
        let given = |words, meaning| move_all(words, meaning);
        let (words, meanings): (Vec<&str>, Vec<Meaning>) = own(ENDINGS, Meaning::CrawlerIfEnding)
            .chain(own(CRAWLERS, Meaning::Crawler))
            .chain(own(ON_DEMAND, Meaning::OnDemand))
            .chain(given(listed, Meaning::Listed))
            .chain(given(allowed, Meaning::Allowed))
            .unzip();
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(words)
            .expect("a page of words is not too large");
        Self {
            automaton,
            meanings: meanings.into(),
        }
    }

    /// What `agent`, a User-Agent, says of itself.
    pub fn judge(&self, agent: &[u8]) -> Named {
        let found = self.automaton.find_overlapping_iter(agent);
        let counts = found.filter_map(|found| {
            let meaning = self.meanings[found.pattern().as_usize()];
            let follows = agent.get(found.end());
            let ends = !follows.is_some_and(u8::is_ascii_alphabetic);
            (ends || meaning != Meaning::CrawlerIfEnding).then_some(meaning)
        });
        match counts.max() {
            Some(Meaning::CrawlerIfEnding | Meaning::Crawler | Meaning::Listed) => Named::Crawler,
            Some(Meaning::Allowed) => Named::Allowed,
            Some(Meaning::OnDemand) | None => Named::Nobody,
        }
    }
}

fn move_all(words: &[String], meaning: Meaning) -> impl Iterator<Item = (&str, Meaning)> {
    let words = words.iter().filter(|word| !word.is_empty());
    words.map(move |word| (word.as_str(), meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(agent: &str) -> Named {
        CrawlerNames::new(&[], &[]).judge(agent.as_bytes())
    }

    #[test]
    fn crawlers_are_known_by_their_words() {
        for agent in [
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; \
             +https://openai.com/gptbot)",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com) AppleWebKit/537.36",
            "CCBot/2.0 (https://commoncrawl.org/faq/)",
            "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
            "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
            "Scrapy/2.11.0 (+https://scrapy.org)",
            "my little BOT",
        ] {
            assert_eq!(named(agent), Named::Crawler, "{agent}");
        }
    }

    #[test]
    fn readers_and_those_who_look_at_one_page_are_not() {
        for agent in [
            "",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/120 Mobile",
            "curl/8.14.1",
            "http.rb/5.2.0 (Mastodon/4.3.2; +https://social.example/) Bot",
            "Synapse (bot; +https://github.com/matrix-org/synapse)",
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ChatGPT-User/1.0; \
             +https://openai.com/bot)",
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            "Mozilla/5.0 (compatible; Bottle/1.0)",
            "Slack-ImgProxy (+https://api.slack.com/robots)",
            "Superfeedr bot/2.0 http://superfeedr.com - Make your feeds realtime",
            "Mozilla/5.0 (compatible; Nextcloud Server Crawler)",
            "Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
            "Better Uptime Bot Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)",
            "HetrixTools Uptime Monitoring Bot. https://hetrix.tools/uptime-monitoring-bot.html",
            "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
        ] {
            assert_eq!(named(agent), Named::Nobody, "{agent}");
        }
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let names = CrawlerNames::new(&words(&["curl/", "mastodon", ""]), &words(&["googlebot"]));
        assert_eq!(names.judge(b"curl/8.14.1"), Named::Crawler);
        assert_eq!(names.judge(b"Mastodon/4"), Named::Crawler);
        assert_eq!(names.judge(b"Googlebot/2.1 curl/8"), Named::Allowed);
        assert_eq!(names.judge(b"Firefox"), Named::Nobody);
    }
}
