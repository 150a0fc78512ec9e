//! What the tools of others said, and whether it is what should be said. It runs nothing.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What a tool printed, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Whether it ended with status 0.
    pub succeeded: bool,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub complaint: String,
}

/// One question to a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was asked and what was answered.
    pub told: String,
    /// Whether the answer is the right one.
    pub is_right: bool,
}

impl Check {
    /// A question that could not be asked: there was no `what`.
    pub fn missing(what: &str) -> Self {
        Self {
            told: format!("FAILED, there was no {what} to ask"),
            is_right: false,
        }
    }

    /// A question whose answer is `told` where it is right, and the tool's own words where not.
    pub fn of(asked: &str, told: &str, is_right: bool, said: &Said) -> Self {
        let told = match is_right {
            true => format!("{asked}: {told}"),
            false => format!("{asked} FAILED, it said: {}", said.in_words()),
        };
        Self { told, is_right }
    }
}

impl Said {
    /// Its own words in one line: what it complained of, otherwise what it printed.
    pub fn in_words(&self) -> String {
        /// More does not help in a table; the first words name the cause.
        const WORDS: usize = 40;
        let told = [&self.complaint, &self.output];
        let told = told.into_iter().find(|text| !text.trim().is_empty());
        let words = told.map_or("nothing", |text| text.as_str());
        let words: Vec<&str> = words.split_whitespace().take(WORDS).collect();
        words.join(" ")
    }
}

/// Addresses that `dig +short NAME A` printed.
pub fn addresses(output: &str) -> BTreeSet<Ipv4Addr> {
    output.lines().filter_map(|it| it.parse().ok()).collect()
}

/// Serial of the zone that `dig +short ZONE SOA` printed: the third of seven words.
pub fn serial(output: &str) -> Option<u32> {
    let words: Vec<&str> = output.split_whitespace().collect();
    match words.as_slice() {
        [_, _, serial, _, _, _, _] => serial.parse().ok(),
        [] | [_, ..] => None,
    }
}

/// Whether `openssl s_client -brief` has verified a chain, and that the certificate is for `name`.
pub fn has_verified(said: &Said, name: &str) -> bool {
    let words = || said.complaint.lines().chain(said.output.lines());
    let fits = |line: &str| {
        // A wildcard is named as it stands in the certificate.
        let of = line.strip_prefix("Verified peername: ");
        of.is_some_and(|of| of == name || is_covered(name, of))
    };
    said.succeeded && words().any(|line| line == "Verification: OK") && words().any(fits)
}

fn is_covered(name: &str, wildcard: &str) -> bool {
    let parent = name.split_once('.').map(|(_, parent)| parent);
    parent.is_some() && parent == wildcard.strip_prefix("*.")
}

/// Whether `openssl s_client` has refused a certificate because it is for another name.
pub fn has_refused_name(said: &Said) -> bool {
    !said.succeeded && said.complaint.to_lowercase().contains("hostname mismatch")
}

/// The second certificate that `openssl s_client -showcerts` printed: who signed the first.
pub fn second_certificate(output: &str) -> Option<&str> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let (begin, _) = output.match_indices(BEGIN).nth(1)?;
    let length = output[begin..].find(END)? + END.len();
    Some(&output[begin..begin + length])
}

/// One page as curl fetched it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Status of the last answer.
    pub status: u16,
    /// Version of HTTP by which it came.
    pub version: String,
    /// Redirects that it followed.
    pub redirects: u32,
    /// Where it ended.
    pub url: String,
    /// How the transfer ended: 0 where all of it came.
    pub exit: u8,
}

impl Fetched {
    /// Whether it is a page, whatever stands in it. Who is refused by a server that has no room, or
    /// gives up as a visitor does, has got none.
    pub fn is_page(&self) -> bool {
        /// "Operation timeout", by curl(1).
        const LATE: u8 = 28;
        self.status == 200 && self.exit != LATE
    }
}

/// How curl tells a transfer, in a line that [`fetched`] reads.
pub const TOLD_BY_CURL: &str =
    "%{http_code} %{http_version} %{num_redirects} %{url_effective} %{exitcode}\\n";

/// What curl told of its transfer.
pub fn fetched(output: &str) -> Option<Fetched> {
    let words: Vec<&str> = output.split_whitespace().collect();
    let [status, version, redirects, url, exit] = words[..] else {
        return None;
    };
    Some(Fetched {
        status: status.parse().ok()?,
        version: version.to_owned(),
        redirects: redirects.parse().ok()?,
        url: url.to_owned(),
        exit: exit.parse().ok()?,
    })
}

/// What stands behind the address of a page that a browser is to go on from.
pub const ON: &str = "#on";

/// Script of a page that writes into it where a browser got it from, which [`came_from`] reads.
/// A browser that still asks `site` itself, and was told to go on, opens `next`.
pub fn script(site: &str, next: Option<&str>) -> String {
    let next = next.map_or_else(String::new, |next| {
        format!(
            "if (location.hash === '{ON}' && location.hostname === '{site}')\n  \
             location.replace('{next}{ON}');\n"
        )
    });
    format!(
        "<script>\ndocument.documentElement.setAttribute('data-came-from', location.href);\n\
         {next}</script>\n"
    )
}

/// What stands before that address in the page.
const CAME_FROM: &str = "data-came-from=\"";

/// Where the page came from that `chromium --dump-dom` printed; none where it is another page.
pub fn came_from(dom: &str) -> Option<&str> {
    let (_, rest) = dom.split_once(CAME_FROM)?;
    rest.split_once('"').map(|(url, _)| url)
}

/// Whether `dom` shows all of `page`: its title, and each of its paragraphs, in order.
pub fn shows(dom: &str, page: &str) -> bool {
    let mut rest = dom;
    let mut lines = page.lines().filter(|line| !line.starts_with("<!"));
    let has_all = lines.all(|line| match rest.split_once(line) {
        None => false,
        Some((_, after)) => {
            rest = after;
            true
        }
    });
    has_all && !page.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(succeeded: bool, output: &str, complaint: &str) -> Said {
        Said {
            succeeded,
            output: output.to_owned(),
            complaint: complaint.to_owned(),
        }
    }

    #[test]
    fn dig_tells_addresses_and_the_serial() {
        let told = addresses("10.80.2.2\n10.80.4.2\n;; communications error\n");
        assert_eq!(
            told,
            [[10, 80, 2, 2], [10, 80, 4, 2]].map(Into::into).into()
        );
        let soa = "ns.example. admin.example. 12 60 30 3600 1\n";
        assert_eq!(serial(soa), Some(12));
        assert_eq!(serial(";; no servers could be reached"), None);
        assert_eq!(serial(""), None);
    }

    #[test]
    fn openssl_has_verified_where_chain_and_name_are_right() {
        let check =
            |succeeded, told: &str, name: &str| has_verified(&said(succeeded, "", told), name);
        let fits = "Verification: OK\nVerified peername: *.alice.test\n";
        assert!(check(true, fits, "vh1.alice.test"));
        assert!(!check(false, fits, "vh1.alice.test"));
        assert!(!check(true, fits, "vh1.bob.test"));
        assert!(!check(true, fits, "a.vh1.alice.test"));
        assert!(!check(true, "Verification: OK\n", "vh1.alice.test"));
        let shop = "Verification: OK\nVerified peername: shop.example\n";
        assert!(check(true, shop, "shop.example"));
        let bad = "Verification error: self-signed\nVerified peername: shop.example\n";
        assert!(!check(true, bad, "shop.example"));
    }

    #[test]
    fn openssl_refuses_a_name_and_nothing_else_counts_as_that() {
        let refusal = "verify error:num=62:hostname mismatch";
        assert!(has_refused_name(&said(false, "", refusal)));
        assert!(!has_refused_name(&said(true, "", refusal)));
        assert!(!has_refused_name(&said(false, "", "connect:errno=111")));
    }

    #[test]
    fn who_signed_is_the_second_certificate() {
        let pem =
            |word: &str| format!("-----BEGIN CERTIFICATE-----\n{word}\n-----END CERTIFICATE-----");
        let chain = format!("0 s:\n{}\n1 s:\n{}\n---\n", pem("leaf"), pem("signer"));
        assert_eq!(second_certificate(&chain), Some(pem("signer").as_str()));
        assert_eq!(second_certificate(&pem("leaf")), None);
        assert_eq!(second_certificate("CONNECTED"), None);
    }

    #[test]
    fn curl_tells_a_transfer_in_a_line() {
        let expected = Fetched {
            status: 200,
            version: "2".to_owned(),
            redirects: 1,
            url: "https://vh1.alice.test/page-0.html".to_owned(),
            exit: 0,
        };
        let told = fetched("200 2 1 https://vh1.alice.test/page-0.html 0\n");
        assert_eq!(told, Some(expected));
        assert_eq!(fetched("curl: (28) late\n"), None);
        assert_eq!(fetched(""), None);
    }

    #[test]
    fn who_is_refused_or_gives_up_has_got_no_page_and_who_gets_half_has() {
        let is_page = |told: &str| fetched(told).unwrap().is_page();
        assert!(is_page("200 2 0 https://shop.test/ 0"));
        assert!(!is_page("503 1.1 0 https://shop.test/ 0"));
        assert!(!is_page("200 1.1 0 https://shop.test/ 28"));
        assert!(!is_page("000 0 0 https://shop.test/ 28"));
        // The connection ended in the middle of it.
        assert!(is_page("200 1.1 0 https://shop.test/ 18"));
    }

    #[test]
    fn a_browser_shows_a_page_where_all_of_it_is_there() {
        let page = "<!doctype html>\n<title>Page 1</title>\n<p>One.\n<p>Two.\n";
        let dom = "<html data-came-from=\"https://vh1.alice.test/page-1.html\"><head>\
                   <title>Page 1</title>\n</head><body><p>One.\n</p><p>Two.\n</p></body></html>";
        assert!(shows(dom, page));
        assert!(!shows(&dom.replace("Two", "Lies"), page));
        assert!(!shows(dom, ""));
        assert_eq!(came_from(dom), Some("https://vh1.alice.test/page-1.html"));
        // The script alone says nothing.
        assert_eq!(came_from(&script("shop.example", None)), None);
    }

    #[test]
    fn a_browser_goes_on_where_there_is_a_next_page() {
        let next = "if (location.hash === '#on' && location.hostname === 'shop.example')\n  \
                    location.replace('/page-2.html#on');\n";
        let (on, last) = (
            script("shop.example", Some("/page-2.html")),
            script("shop.example", None),
        );
        assert_eq!(on.replace(next, ""), last);
        assert_ne!(on, last);
    }

    #[test]
    fn a_failure_says_the_words_of_the_tool() {
        let said = said(false, "told\n", "update failed: REFUSED\n");
        let check = Check::of("no key", "refused", false, &said);
        assert_eq!(check.told, "no key FAILED, it said: update failed: REFUSED");
        assert_eq!(Said::default().in_words(), "nothing");
        assert_eq!(
            Check::of("no key", "refused", true, &said).told,
            "no key: refused"
        );
    }
}
