//! Cookies that say nothing about a visitor: those of programs that count visits, and of banners
//! that ask whether they may.
//!
//! A visitor with a cookie is served by us alone, because only we know whether the page is his own.
//! But many sites give everybody a cookie on the first page, from a script that counts visits, and
//! a crowd of such visitors could not be helped with. Their servers never read these cookies; the
//! names of the common ones are here, and a site names its own (`site.shared_cookies`).

/// Names of cookies that no server reads, or their beginnings: Google Analytics and Ads, Matomo,
/// Meta, Microsoft Clarity, Hotjar, HubSpot, Plausible, Cloudflare, and banners of consent.
const KNOWN: [&str; 32] = [
    "_ga*",
    "_gid",
    "_gat*",
    "_gcl_*",
    "__utm*",
    "__gads",
    "__gpi",
    "_dc_gtm_*",
    "_pk_*",
    "mtm_*",
    "_fbp",
    "_fbc",
    "_clck",
    "_clsk",
    "_hj*",
    "__hstc",
    "__hssc",
    "__hssrc",
    "hubspotutk",
    "plausible_*",
    "_uetsid",
    "_uetvid",
    "_ym_*",
    "__cf_bm",
    "_cfuvid",
    "cf_clearance",
    "CookieConsent",
    "cookieconsent_status",
    "OptanonConsent",
    "OptanonAlertBoxClosed",
    "euconsent-v2",
    "_tt_*",
];

/// Which cookies these are for a site.
#[derive(Clone, Debug)]
pub struct SharedCookies(Vec<Pattern>);

#[derive(Clone, Debug)]
enum Pattern {
    Name(Box<[u8]>),
    Beginning(Box<[u8]>),
}

impl SharedCookies {
    /// Those that are known, and `more`: names, or beginnings that end with `*`.
    pub fn with(more: &[String]) -> Self {
        let more = more.iter().map(String::as_str);
        Self(KNOWN.into_iter().chain(more).map(Pattern::of).collect())
    }

    /// Whether all cookies of a Cookie field are such. What is no name and value is not: who knows
    /// what the application makes of it.
    pub(crate) fn are_all(&self, cookies: &[u8]) -> bool {
        let mut pairs = cookies.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        pairs.all(|pair| {
            let equals = pair.iter().position(|&byte| byte == b'=');
            pair.is_empty() || equals.is_some_and(|equals| self.covers(&pair[..equals]))
        })
    }

    fn covers(&self, name: &[u8]) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Name(own) => **own == *name,
            Pattern::Beginning(beginning) => name.starts_with(beginning),
        })
    }
}

impl Default for SharedCookies {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Pattern {
    fn of(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(beginning) => Self::Beginning(beginning.as_bytes().into()),
            None => Self::Name(text.as_bytes().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_is_known_by_any_cookie_that_is_not_shared() {
        let shared = SharedCookies::with(&["theme".into(), "ab_*".into()]);
        for (cookies, are_all) in [
            ("", true),
            ("_ga=GA1.2.3.4; _ga_ABC=x", true),
            ("theme=dark;ab_7=2; _pk_id.1.2=x", true),
            ("themes=dark", false),
            ("_ga=1; sessionid=5", false),
            ("Theme=dark", false),
            ("sessionid", false),
            ("_gadget=5; PHPSESSID=7", false),
            ("=x", false),
        ] {
            assert_eq!(shared.are_all(cookies.as_bytes()), are_all, "{cookies}");
        }
    }
}
