//! The table `[acme]`: who gives us certificates, and for which names.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use levee_vocab::HostName;

use super::dns::{AliasZone, DnsSettings, lies_in};
use super::types::Settings;
use super::values::Values;
use crate::acme::CertificateName;
use crate::settings::read::Complaint;
use crate::settings::table::SETTINGS;

/// Certificates that are ordered and renewed by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// URL of the authority's directory.
    pub directory: String,
    /// Addresses for the authority.
    pub contact: Vec<String>,
    /// How it is shown that a name is ours.
    pub challenge: ChallengeChoice,
    /// Names, each of which gets a certificate of its own.
    pub names: Vec<CertificateName>,
    /// Who chose them.
    pub choice: NameChoice,
    /// Zones in which we may put records.
    pub zones: Vec<HostName>,
    /// Roots of the authority itself, in PEM, where they are not those of the system.
    pub root: Option<PathBuf>,
    /// The account that it knows already.
    pub external: Option<ExternalAccount>,
}

impl AcmeSettings {
    /// Whether a record in DNS can show that `name` is ours.
    pub fn can_record(&self, name: &CertificateName) -> bool {
        self.zones.iter().any(|zone| lies_in(name.host(), zone))
    }

    /// Whether nothing else may.
    fn must_record(&self, name: &CertificateName) -> bool {
        name.is_wildcard() || self.challenge == ChallengeChoice::Dns01
    }
}

impl Settings {
    /// Has `self.acme` go by what the rest of the settings says now.
    pub(super) fn order_for_what_is_in_force(&mut self) {
        let alias_domain = self.community.as_ref().map(|own| &own.alias_domain);
        let records = Records {
            site: self.dns.as_ref(),
            aliases: self.alias_zone.as_ref().zip(alias_domain),
        };
        let Some(acme) = &mut self.acme else { return };
        acme.zones = records.zones();
        if acme.choice == NameChoice::Ours {
            let names = default_names([&self.site.name], &self.site.also, &records);
            acme.names = each_once(names.filter_map(|(_, name)| name.parse().ok()));
        }
    }
}

/// Who chose the names to get certificates for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChoice {
    /// The operator.
    Operator,
    /// They follow from the names of the site, and where its aliases are.
    Ours,
}

/// What is known of the zones that we may change.
pub(super) struct Records<'a> {
    /// That of the site's name.
    pub site: Option<&'a DnsSettings>,
    /// That of our aliases, and their domain.
    pub aliases: Option<(&'a AliasZone, &'a HostName)>,
}

/// How an authority is shown that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeChoice {
    /// By whatever can work, one after another.
    Auto,
    /// By a page.
    Http01,
    /// In a handshake.
    TlsAlpn01,
    /// By a record in DNS.
    Dns01,
}

/// An account that the authority knows already (RFC 8555 section 7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Its name.
    pub id: String,
    /// Its key.
    pub key: Vec<u8>,
}

/// The key is nobody's business.
impl std::fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalAccount")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

pub(super) fn acme(
    values: &Values<'_>,
    records: &Records<'_>,
    complaints: &mut Vec<Complaint>,
) -> Option<AcmeSettings> {
    if !values.flag("acme.agree") {
        complain_of_silence(values, complaints);
        return None;
    }
    let mut complain = |name: &str, text: String| {
        let line = values.file.line(name);
        complaints.push(Complaint { line, text });
    };
    if values.path("state.folder").is_none() {
        let text = "acme.agree: certificates and their keys are kept in state.folder, which is \
                    not set, e.g. folder = \"/var/lib/levee\" below [state]";
        complain("acme.agree", text.into());
    }
    let directory = values.text("acme.directory");
    if !directory.starts_with("https://") {
        let text = format!("acme.directory: `{directory}` does not begin with https://");
        complain("acme.directory", text);
    }
    let settings = AcmeSettings {
        directory,
        contact: contacts(values, &mut complain),
        challenge: match values.text("acme.challenge").as_str() {
            "http-01" => ChallengeChoice::Http01,
            "tls-alpn-01" => ChallengeChoice::TlsAlpn01,
            "dns-01" => ChallengeChoice::Dns01,
            _ => ChallengeChoice::Auto,
        },
        names: names(values, records, &mut complain),
        choice: match values.file.given("acme.names") {
            Some(_) => NameChoice::Operator,
            None => NameChoice::Ours,
        },
        zones: records.zones(),
        root: values.path("acme.root"),
        external: external(values, &mut complain),
    };
    check_records(values, &settings, &mut complain);
    Some(settings)
}

impl Records<'_> {
    fn zones(&self) -> Vec<HostName> {
        let site = self.site.map(|dns| dns.zone.clone());
        let aliases = self.aliases.map(|(aliases, _)| aliases.zone.clone());
        site.into_iter().chain(aliases).collect()
    }

    /// All aliases of ours, where we can show that their domain is ours and an authority may know
    /// it.
    fn all_aliases(&self) -> Option<String> {
        let (_, domain) = self.aliases?;
        let all = CertificateName::below(domain).to_string();
        all.parse::<CertificateName>().is_ok().then_some(all)
    }
}

/// Complains of names that only a record could show to be ours, where we may not put any.
fn check_records(
    values: &Values<'_>,
    settings: &AcmeSettings,
    complain: &mut impl FnMut(&str, String),
) {
    let setting = match values.file.given("acme.names") {
        Some(_) => "acme.names",
        None => "acme.challenge",
    };
    for name in &settings.names {
        // A name elsewhere may lead into a zone that is there; who orders looks it up.
        if settings.must_record(name) && settings.zones.is_empty() {
            let text = format!(
                "{setting}: `{name}` is shown to be yours by a record in DNS, which needs \
                 dns.server or dns.listen, for names of the site, or dns.alias_server, for those \
                 of aliases"
            );
            complain(setting, text);
        }
    }
}

/// What means nothing while nobody has agreed.
fn complain_of_silence(values: &Values<'_>, complaints: &mut Vec<Complaint>) {
    let of_acme = SETTINGS.iter().map(|setting| setting.name);
    let of_acme = of_acme.filter(|name| name.starts_with("acme.") && *name != "acme.agree");
    for name in of_acme.filter(|name| values.file.given(name).is_some()) {
        complaints.push(Complaint {
            line: values.file.line(name),
            text: format!(
                "{name} does nothing without acme.agree = true, by which you agree to the terms \
                 of the authority"
            ),
        });
    }
}

fn names(
    values: &Values<'_>,
    records: &Records<'_>,
    complain: &mut impl FnMut(&str, String),
) -> Vec<CertificateName> {
    let given = values.words("acme.names");
    let (setting, wanted): (_, Vec<_>) = match given.is_empty() {
        false => {
            let wanted = given.into_iter().map(|name| ("acme.names", name));
            ("acme.names", wanted.collect())
        }
        true => {
            let (site, also) = (values.hosts("site.name"), values.hosts("site.also"));
            ("acme.agree", default_names(&site, &also, records).collect())
        }
    };
    each_once(wanted.into_iter().filter_map(|(source, text)| {
        let named = match source == setting {
            true => String::new(),
            false => format!("{source} "),
        };
        let flawed = |flaw| complain(setting, format!("{setting}: {named}`{text}`: {flaw}"));
        text.parse().map_err(flawed).ok()
    }))
}

/// A certificate for each name is enough.
fn each_once(all: impl Iterator<Item = CertificateName>) -> Vec<CertificateName> {
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The names of a site that names none for its certificates, each with the setting it comes from.
fn default_names<'a>(
    site: impl IntoIterator<Item = &'a HostName>,
    also: impl IntoIterator<Item = &'a HostName>,
    records: &Records<'_>,
) -> impl Iterator<Item = (&'static str, String)> {
    let site = site.into_iter().map(|name| ("site.name", name.to_string()));
    let also = also.into_iter().map(|name| ("site.also", name.to_string()));
    let aliases = records.all_aliases().into_iter();
    let aliases = aliases.map(|all| ("community.alias_domain", all));
    site.chain(also).chain(aliases)
}

/// Whom the authority may write to, as URLs.
fn contacts(values: &Values<'_>, complain: &mut impl FnMut(&str, String)) -> Vec<String> {
    let mut urls = Vec::new();
    for text in values.words("acme.contact") {
        match contact(&text) {
            Ok(url) => urls.push(url),
            Err(flaw) => complain("acme.contact", format!("acme.contact: `{text}` {flaw}")),
        }
    }
    urls
}

/// The protocol wants a URL; people give addresses.
//= RFC 8555 section 7.3: "Servers MUST NOT accept contact URLs that contain hfields in the URL or
//= more than one addr-spec."
fn contact(text: &str) -> Result<String, &'static str> {
    const NO_ADDRESS: &str = "is no mail address such as \"webmaster@example.org\"";
    let address = match text.split_once(':') {
        None => text,
        Some((scheme, address)) if scheme.eq_ignore_ascii_case("mailto") => address,
        Some((scheme, rest)) if is_scheme(scheme) && is_of_url(rest) => {
            return Ok(text.to_owned());
        }
        Some(_) => return Err(NO_ADDRESS),
    };
    if address.contains(['?', ',']) {
        return Err("must be one mail address and nothing else; give several as a list");
    }
    let (person, host) = address.rsplit_once('@').ok_or(NO_ADDRESS)?;
    let is_person = is_of_url(person) && !person.contains('@');
    match is_person && host.parse::<HostName>().is_ok() {
        true => Ok(format!("mailto:{address}")),
        false => Err(NO_ADDRESS),
    }
}

//= RFC 3986 section 3.1: "Scheme names consist of a sequence of characters beginning with a letter
//= and followed by any combination of letters, digits, plus ("+"), period ("."), or hyphen ("-")."
fn is_scheme(text: &str) -> bool {
    let may_follow = |letter: u8| letter.is_ascii_alphanumeric() || b"+.-".contains(&letter);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(may_follow)
}

fn is_of_url(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_graphic())
}

fn external(
    values: &Values<'_>,
    complain: &mut impl FnMut(&str, String),
) -> Option<ExternalAccount> {
    let (id, key) = (values.text("acme.eab_id"), values.text("acme.eab_key"));
    match (id.is_empty(), key.is_empty()) {
        (true, true) => return None,
        (false, false) => {}
        (true, false) => complain(
            "acme.eab_key",
            "acme.eab_key: acme.eab_id is missing; the authority gives you both".into(),
        ),
        (false, true) => complain(
            "acme.eab_id",
            "acme.eab_id: acme.eab_key is missing; the authority gives you both".into(),
        ),
    }
    // Some authorities write it in the other alphabet of base64, some with padding.
    let text = key.replace('+', "-").replace('/', "_");
    match URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')) {
        Ok(key) => Some(ExternalAccount { id, key }),
        Err(error) => {
            let text = format!("acme.eab_key is not in base64url: {error}");
            complain("acme.eab_key", text);
            None
        }
    }
}
