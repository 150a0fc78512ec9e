//! Every setting, once: the parser, `levee explain`, and the reference page are made from this
//! table.
//!
//! A setting that is not here does not exist; one that is here is documented, because
//! `docs/reference/settings.md` is printed from it and a test compares the two.

use super::value::Kind;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Table and key, `link.rate`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its value when it is not given; empty where that means "none".
    pub default: &'static str,
    /// The range beyond what the kind says, as the paper writes it; empty where there is none.
    pub range: &'static str,
    /// Whether a reload takes it up.
    pub change: Change,
    /// One sentence.
    pub about: &'static str,
    /// An example, as it stands in the file.
    pub example: &'static str,
}

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At the next reload.
    Reload,
    /// At the next start.
    Restart,
}

impl Change {
    /// For the reference page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reload => "on reload",
            Self::Restart => "on restart",
        }
    }
}

macro_rules! settings {
    ($($name:literal, $kind:expr, $default:literal, $range:literal, $change:ident, $example:literal,
       $about:literal;)*) => {
        /// All settings, in the order of the reference page.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: $name, kind: $kind, default: $default, range: $range,
            change: Change::$change, example: $example, about: $about,
        }),*];
    };
}

settings! {
    "site.name", Kind::Host, "localhost", "", Restart, "\"www.example.org\"",
    "The site's own name, by which its visitors and its community know it.";
    "site.also", Kind::Hosts, "", "", Reload, "[\"example.org\"]",
    "Further names of the same site.";
    "site.listen", Kind::Listens, "0.0.0.0:8080", "", Restart, "[\"0.0.0.0:80\"]",
    "Where visitors are served: addresses, or `unix:/path` for a proxy on the same machine, whose connections count as coming from 127.0.0.1.";
    "site.unix_mode", Kind::Text, "666", "", Restart, "\"660\"",
    "Permission bits of such sockets; those may connect who may write.";
    "site.trusted_proxies", Kind::Blocks, "", "", Reload, "[\"10.0.0.0/8\"]",
    "Addresses of proxies whose word is believed about where a visitor comes from: X-Forwarded-For and its kin, Forwarded, and the PROXY protocol.";
    "site.proxy_protocol", Kind::Listens, "", "", Restart, "[\"0.0.0.0:80\"]",
    "Those of the listen addresses where each connection begins with a PROXY header (version 1 or 2). Only `site.trusted_proxies` may connect there.";
    "site.port", Kind::Count(0, 65535), "0", "", Restart, "80",
    "Port that visitors use, where it is not that of the first listen address; 0 means the same.";
    "site.folder", Kind::Path, "", "", Reload, "\"./public\"",
    "Folder to serve. Give this or `site.upstream`.";
    "site.upstream", Kind::Endpoints, "", "", Reload, "[\"http://10.0.0.1:3000\", \"unix:/run/app.sock\"]",
    "Application to pass requests to, in one place or several. Give this or `site.folder`.";
    "site.unknown_host", Kind::Choice(&["serve", "refuse"]), "serve", "", Reload, "\"refuse\"",
    "Whether a request for a name that is not ours gets the site, or 421.";
    "site.purge_from", Kind::Blocks, "127.0.0.0/8, ::1", "", Reload, "[\"127.0.0.1\", \"10.0.0.0/8\"]",
    "Who may remove objects by the method PURGE. Not whoever comes through a proxy or from a browser: use `levee purge` there.";
    "site.shared_cookies", Kind::Words, "", "", Reload, "[\"theme\", \"ab_*\"]",
    "Cookies that say nothing about a visitor, beside those of common programs that count visits or ask for consent: names, or beginnings that end with `*`. Whoever has another cookie is never redirected.";
    "site.cores", Kind::Count(0, 64), "0", "", Restart, "2",
    "Threads that serve visitors; 0 means one for each core, and one alone on a link below 12.5 MB/s.";

    "upstream.backup", Kind::Endpoints, "", "", Reload, "[\"http://10.0.0.9:3000\"]",
    "Upstreams that are used while none of `site.upstream` is up.";
    "upstream.connect_max", Kind::Time, "2 s", "[10 ms, 60 s]", Restart, "\"2 s\"",
    "How long a connection to an upstream or origin may take.";
    "upstream.first_byte_max", Kind::Time, "10 s", "[100 ms, 10 min]", Restart, "\"10 s\"",
    "How long an upstream or origin may take to begin its answer.";
    "upstream.between_bytes_max", Kind::Time, "10 s", "[100 ms, 10 min]", Restart, "\"10 s\"",
    "How long the body of an answer may pause.";
    "upstream.fetch_max", Kind::Time, "1 h", "[1 s, 1 day]", Restart, "\"1 h\"",
    "How long an upstream or origin may take for a whole answer that many may wait for.";
    "upstream.connections_max", Kind::Count(1, 65535), "128", "", Reload, "128",
    "Requests at one upstream at a time; more of them wait.";
    "upstream.idle_connections", Kind::Count(0, 65535), "32", "", Restart, "32",
    "Connections to one upstream or origin that are kept open for the next request.";
    "upstream.idle_time", Kind::Time, "30 s", "[1 s, 1 h]", Restart, "\"30 s\"",
    "How long a connection is kept that nobody uses. Shorter than the upstream keeps it.";
    "upstream.failures_max", Kind::Count(1, 1000), "3", "", Reload, "3",
    "Failures in a row after which an upstream is left out: for 1 s, and each time for twice as long, up to 60 s.";
    "upstream.count_server_errors", Kind::Flag, "false", "", Reload, "true",
    "Whether answers with a status of 500 to 599 are failures of their upstream.";
    "upstream.retry_share", Kind::Share, "20 %", "[0 %, 100 %]", Reload, "\"20 %\"",
    "Part of requests that may be sent to a second upstream after the first had them and failed.";
    "upstream.proxy_protocol", Kind::Choice(&["off", "v1", "v2"]), "off", "", Reload, "\"v2\"",
    "Whether upstreams are told who a visitor is by a PROXY header. Each connection then serves one request.";
    "upstream.health_path", Kind::Text, "", "", Reload, "\"/healthz\"",
    "Path by which all upstreams are checked all the time. Without it only one that was left out is, by a connection, before it is used again.";
    "upstream.health_interval", Kind::Time, "2 s", "[100 ms, 1 h]", Reload, "\"2 s\"",
    "Time between two checks of an upstream.";
    "upstream.health_failures", Kind::Count(1, 1000), "2", "", Reload, "2",
    "Failed checks in a row after which an upstream is left out.";
    "tls.listen", Kind::Listens, "0.0.0.0:443", "", Restart, "[\"0.0.0.0:443\"]",
    "Addresses for visitors who come by HTTPS. Used as soon as there is a certificate.";
    "tls.certificate", Kind::Path, "", "", Reload, "\"/etc/letsencrypt/live/www.example.org/fullchain.pem\"",
    "The certificate in PEM, followed by those that lead to a root.";
    "tls.key", Kind::Path, "", "", Reload, "\"/etc/letsencrypt/live/www.example.org/privkey.pem\"",
    "Its private key; by default it is looked for in the file of the certificate.";
    "tls.certificates", Kind::Path, "", "", Reload, "\"/etc/letsencrypt/live\"",
    "Folder with any number of certificates: `NAME.pem` with `NAME.key`, or sub-folders with `fullchain.pem` and `privkey.pem` as certbot makes them. Each visitor gets the one for the name that he asks for.";
    "tls.min_version", Kind::Choice(&["1.2", "1.3"]), "1.2", "", Reload, "\"1.3\"",
    "Oldest version of TLS that is spoken.";
    "tls.redirect", Kind::Flag, "false", "", Restart, "true",
    "Whether visitors who come by HTTP are sent to HTTPS (308). Rescue servers, and those who check a domain (ACME), are still answered.";
    "tls.port", Kind::Count(0, 65535), "0", "", Restart, "443",
    "Port to which `tls.redirect` sends visitors, where it is not that of the first address; 0 means the same.";

    "acme.agree", Kind::Flag, "false", "", Reload, "true",
    "That you agree to the terms of the certificate authority. With it, certificates for the site's names are ordered and renewed by themselves.";
    "acme.names", Kind::Words, "", "", Reload, "[\"www.example.org\", \"example.org\"]",
    "Names to get certificates for, each one of its own. By default those of the site, and `*.` of `community.alias_domain` where there is a `dns.alias_server`. Those with `*.` are always shown to be yours by a record in a zone of `[dns]`.";
    "acme.contact", Kind::Words, "", "", Reload, "[\"webmaster@example.org\"]",
    "Addresses to which the authority may write.";
    "acme.challenge", Kind::Choice(&["auto", "http-01", "tls-alpn-01", "dns-01"]), "auto", "", Reload, "\"tls-alpn-01\"",
    "How the authority is shown that a name is yours: by a page on port 80, in a handshake on port 443, or by a record in a zone of `[dns]`. `auto` takes the next when one has failed.";
    "acme.directory", Kind::Text, "https://acme-v02.api.letsencrypt.org/directory", "", Reload, "\"https://acme-staging-v02.api.letsencrypt.org/directory\"",
    "The authority: the URL of its ACME directory.";
    "acme.root", Kind::Path, "", "", Reload, "\"/etc/levee/our-root.pem\"",
    "Root certificates in PEM by which the authority itself is known; by default those of the system. For an authority of your own.";
    "acme.eab_id", Kind::Text, "", "", Reload, "\"kid-1\"",
    "Name of your account where the authority knows you already (external account binding); it gives you both.";
    "acme.eab_key", Kind::Text, "", "", Reload, "\"zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W\"",
    "Key to it, in base64url.";

    "link.rate", Kind::Rate, "", "", Restart, "\"54 kB/s\"",
    "The outbound link, B. When given, the server keeps to it: it never sends more. When not, it is measured.";
    "link.usable", Kind::Share, "80 %", "(0 %, 100 %]", Reload, "\"80 %\"",
    "Share of the link that is usable for HTTP, U.";
    "link.overhead", Kind::Count(0, 2000), "358", "", Reload, "358",
    "Bytes that one connection costs on the link beside its response.";

    "community.registry", Kind::Socket, "", "", Restart, "\"192.0.2.7:7070\"",
    "Where the members of the community find each other. Without it, `community.registries` or `community.registry_domain` the site stands alone.";
    "community.registries", Kind::Words, "", "", Restart, "[\"a.example.org:7070\", \"b.example.org:7070\"]",
    "Several registries that know the same, the preferred one first; when one dies, the next is asked.";
    "community.registry_domain", Kind::Host, "", "", Restart, "\"example.org\"",
    "Domain whose DNS names the registries, as SRV records of `_levee-registry._tcp`. They come before those of the list.";
    "community.rescue_listen", Kind::Socket, "0.0.0.0:7401", "", Restart, "\"0.0.0.0:7401\"",
    "Address on which other members ask for help.";
    "community.address", Kind::Address, "", "", Restart, "\"192.0.2.10\"",
    "Address at which other members reach this server; by default the one from which it reaches the registry.";
    "community.alias_domain", Kind::Host, "", "", Restart, "\"aliases.example.net\"",
    "Domain of the names under which this server serves others. Never under your own site's domain: strangers' pages must not share its cookies.";
    "community.alias_host", Kind::Text, "", "", Restart, "\"www\"",
    "First part of those names; by default the first label of `site.name`.";
    "community.allow_private", Kind::Flag, "false", "", Restart, "true",
    "Whether members at private and loopback addresses are believed.";
    "community.authority", Kind::Text, "", "", Restart, "\"ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"",
    "Public key of the authority of a closed community: only those on its member list take part, and everything between members is signed and goes by TLS. Without it the community is open.";
    "community.identity", Kind::Path, "", "", Restart, "\"/var/lib/levee/identity.key\"",
    "File with this site's own key, made at the first start; by default `identity.key` in `state.folder`.";
    "community.members", Kind::Path, "", "", Restart, "\"/etc/levee/members.list\"",
    "File with the authority's member list, read again when it changes. Only needed where no registry hands out the list.";
    "integrity.permit", Kind::Time, "1 h", "at most 24 h", Restart, "\"4 h\"",
    "How long rescue servers may show what they have of this site after it has died. Renewed while it lives; zero for not at all.";
    "integrity.sampling", Kind::Time, "10 s", "", Restart, "\"5 s\"",
    "Time between two looks at what rescue servers deliver for this site, and at what others deliver for sites that this one helps. Zero for none.";

    "community.drills", Kind::Flag, "true", "", Reload, "false",
    "Whether this server takes part in the rehearsals of other members, where it has time.";

    "dns.server", Kind::Socket, "", "", Restart, "\"192.0.2.53:53\"",
    "Name server that takes signed updates (RFC 2136) for the zone of `site.name`. While rescue servers help, their addresses stand in the site's name beside its own.";
    "dns.listen", Kind::Socket, "", "", Restart, "\"0.0.0.0:53\"",
    "Address of a name server of our own for the zone, instead of `dns.server`. It answers from `dns.zone_file`, by UDP and TCP.";
    "dns.zone_file", Kind::Path, "", "", Restart, "\"example.org.zone\"",
    "Zone file of our own name server. Its text is read again at each reload.";
    "dns.secondaries", Kind::Listens, "", "", Restart, "[\"192.0.2.54:53\"]",
    "Name servers that keep copies of our zone, so that names survive this server: they are told of each change, and may fetch the whole.";
    "dns.weighted", Kind::Flag, "false", "", Restart, "true",
    "Whether our own name server names those more often who have more free capacity. Otherwise all take turns.";
    "dns.zone", Kind::Host, "", "", Restart, "\"example.org\"",
    "Zone in which `site.name` lies; by default the name without its first label.";
    "dns.key", Kind::Path, "", "", Restart, "\"dns.key\"",
    "File with the key that signs: `name:algorithm:secret`, or as `tsig-keygen` writes it. Whoever has it may update our own name server, too.";
    "dns.ttl", Kind::Time, "30 s", "[1 s, 1 day]", Restart, "\"30 s\"",
    "How long resolvers may remember what we put into DNS: so long visitors still come to a rescue server that has left.";

    "dns.alias_server", Kind::Socket, "", "", Restart, "\"192.0.2.55:53\"",
    "Name server of the domain of our aliases, where each alias is registered before it is given out. Without it that domain must have a wildcard record (`*`) that leads here.";
    "dns.alias_zone", Kind::Host, "", "", Restart, "\"example.net\"",
    "Zone in which `community.alias_domain` lies; by default that domain.";
    "dns.alias_key", Kind::Path, "", "", Restart, "\"aliases.key\"",
    "File with the key for `dns.alias_server`, as `dns.key`.";

    "rescue.threshold_low", Kind::Share, "10 %", "(0 %, 20 %]", Reload, "\"10 %\"",
    "T_low: below it for `rescue.low_intervals`, help is let go.";
    "rescue.threshold_alert", Kind::Share, "50 %", "[40 %, 60 %]", Reload, "\"50 %\"",
    "T_alert: above it, the first rescue server is asked.";
    "rescue.threshold_high", Kind::Share, "75 %", "[60 %, 80 %]", Reload, "\"75 %\"",
    "T_high: above it, visitors are redirected; the load settles here.";
    "rescue.threshold_cutoff", Kind::Share, "90 %", "[80 %, 100 %)", Reload, "\"90 %\"",
    "T_coff: when all rescue servers are used to this share, one more is asked.";
    "rescue.interval", Kind::Time, "1 s", "[100 ms, 60 s]", Reload, "\"1 s\"",
    "The control interval, I_ctrl.";
    "rescue.low_intervals", Kind::Count(1, 3600), "30", "", Reload, "30",
    "Control intervals of calm before help is let go, N_low.";
    "rescue.idle_max", Kind::Time, "300 s", "[1 s, 1 day]", Reload, "\"300 s\"",
    "Idle time after which our rescue servers end a rescue.";
    "rescue.object_ttl", Kind::Time, "60 s", "[1 s, 1 day]", Reload, "\"60 s\"",
    "How long rescue servers keep those of our objects that state no lifetime.";
    "rescue.alias_keep", Kind::Time, "2 days", "[1 min, 30 days]", Reload, "\"2 days\"",
    "How long an alias still redirects back to its origin server after a rescue.";
    "rescue.large_file", Kind::Size, "100 kB", "", Reload, "\"100 kB\"",
    "Files from this size go to few rescue servers, chosen by their URL.";
    "rescue.servers_max", Kind::Count(1, 64), "16", "", Reload, "16",
    "Most rescue servers at once.";
    "rescue.redirects", Kind::Flag, "true", "", Reload, "false",
    "Whether visitors are redirected to rescue servers. Without it they come there by `dns.*` alone, as resolvers learn of it, and what finds no room here until then waits or is refused.";
    "rescue.registry_period", Kind::Time, "10 s", "[1 s, 1 h]", Reload, "\"10 s\"",
    "Time between registrations, and between searches for candidates.";
    "rescue.wait_max", Kind::Time, "5 s", "[0 s, 60 s]", Restart, "\"5 s\"",
    "How long a request may wait for capacity before it is refused with 503.";

    "help.rate", Kind::Rate, "", "[1 kB/s, any)", Reload, "\"500 kB/s\"",
    "Most of the link for others, all together. Without it half of the usable link is offered (all but `rescue.threshold_alert`).";
    "help.bytes_per_day", Kind::Size, "", "[1 MB, any)", Reload, "\"20 GB\"",
    "Most bytes for others, all together, in any 24 hours. Needs `state.folder`, so that a restart does not begin a new day.";
    "help.disk", Kind::Size, "", "", Reload, "\"200 MB\"",
    "Most disk for objects of others, a part of `cache.disk`; without it they may have all of that.";
    "help.origins_max", Kind::Count(0, 64), "16", "", Reload, "16",
    "Most origin servers helped at once; 0 helps nobody.";
    "help.member_rate", Kind::Rate, "", "[1 kB/s, any)", Reload, "\"200 kB/s\"",
    "Most of the link for one origin server.";
    "help.member_bytes_per_day", Kind::Size, "", "[1 MB, any)", Reload, "\"5 GB\"",
    "Most bytes for one origin server in any 24 hours. Needs `state.folder`.";
    "help.members", Kind::Hosts, "", "", Reload, "[\"example.org\", \"www.example.com\"]",
    "Who is helped: these names, and all that lie under them. Without it everybody is.";
    "help.never", Kind::Hosts, "", "", Reload, "[\"shop.example.org\"]",
    "Who is never helped, whatever `help.members` says: these names, and all that lie under them.";

    "hot_spots.law", Kind::Choice(&["combined", "resources", "load"]), "combined", "", Reload, "\"combined\"",
    "What drafts rescue servers and redirects visitors: the load and what is hot together; what is hot alone; or the load alone, which copies nothing.";
    "hot_spots.replication", Kind::Choice(&["home", "push", "pull"]), "home", "", Reload, "\"home\"",
    "How a hot resource comes to the rescue servers: sent to one of them, from which the others get it; sent to each; or fetched by each.";
    "hot_spots.replicas", Kind::Count(1, 64), "8", "", Reload, "8",
    "Most rescue servers under the law `resources`.";
    "hot_spots.copy_threshold", Kind::Time, "1 s", "[1 ms, 1 h]", Reload, "\"1 s\"",
    "T_C: a resource of 9 kB that is asked for this often is copied; a larger one earlier.";
    "hot_spots.redirect_threshold", Kind::Time, "500 ms", "[1 ms, `copy_threshold`]", Reload, "\"500 ms\"",
    "T_R: its visitors are redirected to the copies.";
    "hot_spots.service_threshold", Kind::Time, "10 s", "[`copy_threshold`, 1 h]", Reload, "\"10 s\"",
    "T_S: asked for more rarely than this, it is served here again.";
    "hot_spots.size_reference", Kind::Size, "1 kB", "at least 1", Reload, "\"1 kB\"",
    "k: the size against which sizes are weighed.";
    "hot_spots.size_base", Kind::Count(2, 1000), "10", "", Reload, "10",
    "b: base of the logarithm by which they are; the smaller, the earlier large resources are hot.";
    "hot_spots.size_min", Kind::Size, "1 kB", "", Reload, "\"1 kB\"",
    "Smaller answers are never hot: a redirect costs hardly less.";
    "hot_spots.paths", Kind::Words, "", "", Reload, "[\"/blog/\", \"*.jpg\"]",
    "Paths that are watched: beginnings, or patterns in which `*` stands for anything. Without it all are.";
    "hot_spots.types", Kind::Words, "", "", Reload, "[\"html\", \"image/*\"]",
    "Types that are watched: extensions or media types; a path without an extension counts as `html`. Without it all are.";
    "hot_spots.embedded", Kind::Flag, "true", "", Reload, "false",
    "Whether the objects embedded in a hot page are copied with it.";
    "hot_spots.rewriting", Kind::Flag, "false", "", Reload, "true",
    "Whether absolute links to the site's own names are made relative in pages that are copied, so that what they embed is asked for there.";

    "crawlers.recognition", Kind::Choice(&["all", "names", "off"]), "all", "", Reload, "\"names\"",
    "How crawlers are told from readers: by what they say of themselves and by what they do, by the one alone, or not at all. No neighbour is asked for help because of them, and none of them is redirected.";
    "crawlers.share", Kind::Share, "25 %", "(0 %, 100 %]", Reload, "\"10 %\"",
    "Most of the usable link, and of the places at the upstreams, that all crawlers together get. Readers come first: it ends where both together would reach `rescue.threshold_alert`.";
    "crawlers.names", Kind::Words, "", "", Reload, "[\"wget\", \"python-requests\"]",
    "Words in the User-Agent that make a crawler, beside those that are known.";
    "crawlers.allowed_names", Kind::Words, "", "", Reload, "[\"Googlebot\"]",
    "Words in the User-Agent of crawlers that are treated as readers. Anybody can say them.";
    "crawlers.allowed", Kind::Blocks, "", "", Reload, "[\"66.249.64.0/19\"]",
    "Addresses whose visitors are readers whatever they do: those of a search engine that you want, or of a reader who needs every page.";

    "cache.memory", Kind::Size, "64 MiB", "", Restart, "\"64 MiB\"",
    "Memory for objects of origins and upstreams, index included.";
    "cache.disk", Kind::Size, "1 GiB", "", Restart, "\"1 GiB\"",
    "Disk for objects larger than `cache.object_memory_max`; needs `state.folder`.";
    "cache.object_memory_max", Kind::Size, "1 MiB", "", Restart, "\"1 MiB\"",
    "Objects larger than this go to disk.";
    "cache.stale_if_error", Kind::Time, "10 min", "", Restart, "\"10 min\"",
    "How long past its lifetime an object is still served while its origin cannot be reached.";

    "cache.request_directives", Kind::Choice(&["ignore", "obey"]), "ignore", "", Restart, "\"obey\"",
    "Whether a visitor's `Cache-Control` (`no-cache`, `max-age`, `min-fresh`, `max-stale`, `no-store`) is obeyed. Browsers send it with each reload. `only-if-cached` always is.";
    "cache.refresh_hits", Kind::Count(0, 65535), "10", "", Restart, "10",
    "Requests in its lifetime that make an object hot: it is renewed before its end, so that nobody waits. 0 renews nothing early.";

    "limits.connections", Kind::Count(16, 1000000), "10000", "", Restart, "10000",
    "Most open connections of visitors. When all are in use, an idle or very slow one gives way to each newcomer.";
    "limits.head_time", Kind::Time, "10 s", "[100 ms, 10 min]", Restart, "\"10 s\"",
    "Time in which a request's head must be complete.";
    "limits.idle_time", Kind::Time, "60 s", "[100 ms, 1 h]", Restart, "\"60 s\"",
    "Time that a connection may stay open without a request.";
    "limits.head_bytes", Kind::Count(1024, 61440), "16384", "", Restart, "32768",
    "Longest head of a request in bytes; longer ones get 431. Its target may be half as long; longer ones get 414.";
    "limits.tunnels", Kind::Count(0, 100000), "1024", "", Restart, "1024",
    "Most WebSocket connections to the application at once; beyond it 503.";
    "limits.tunnel_idle_time", Kind::Time, "1 h", "[1 s, 1 day]", Restart, "\"1 h\"",
    "Time that a WebSocket connection may stand still in both directions.";

    "admin.listen", Kind::Socket, "127.0.0.1:9100", "", Restart, "\"127.0.0.1:9100\"",
    "Address of the status page, the dashboard, metrics and reload. Keep it local.";
    "admin.names", Kind::Hosts, "", "", Restart, "[\"levee.lan\"]",
    "Names by which browsers may ask the admin address, beside `localhost` and addresses. Others are refused, because a stranger can point a name of his own at it.";

    "log.access", Kind::Output, "off", "", Restart, "\"access.log\"",
    "Access log: `off`, `stdout`, or a file.";
    "log.format", Kind::Choice(&["combined", "json"]), "combined", "", Restart, "\"json\"",
    "Format of the access log.";

    "state.folder", Kind::Path, "", "", Restart, "\"/var/lib/levee\"",
    "Folder for what must outlive a crash: aliases given out, what was put into DNS, keys, certificates, the member list and who is expelled, help given today, large cached files. Without it they are forgotten.";
}

/// The setting called `name`.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The section and the key of `name`.
pub fn parts(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("", name))
}

/// The settings of `section`.
pub fn section(section: &str) -> impl Iterator<Item = &'static str> {
    let names = SETTINGS.iter().map(|setting| setting.name);
    names.filter(move |name| parts(name).0 == section)
}

/// Whether there are settings in `name`.
pub fn is_section(name: &str) -> bool {
    section(name).next().is_some()
}

/// The section nearest to `name`, for a suggestion.
pub fn nearest_section(name: &str) -> Option<&'static str> {
    let sections = SETTINGS.iter().map(|setting| parts(setting.name).0);
    let near = sections.filter_map(|section| Some((edits(section, name)?, section)));
    near.min().map(|(_, section)| section)
}

/// The setting nearest to `name`, for a suggestion: of the same section, or the only one in all the
/// others whose key is near.
pub fn nearest(name: &str) -> Option<&'static str> {
    let (section, key) = parts(name);
    let near = SETTINGS.iter().filter_map(|setting| {
        let edits = edits(parts(setting.name).1, key)?;
        Some((edits, setting.name))
    });
    let (here, elsewhere): (Vec<_>, Vec<_>) = near.partition(|(_, near)| parts(near).0 == section);
    match (here.iter().min(), elsewhere.as_slice()) {
        (Some((_, name)), _) | (None, [(_, name)]) => Some(name),
        (None, _) => None,
    }
}

/// How many slips of a pen are between `known` and `written`; none where they are too many for one
/// to be meant by the other.
fn edits(known: &str, written: &str) -> Option<usize> {
    let edits = strsim::osa_distance(known, written);
    // A third of what was written: `foldr`, `nmae`, and not `level` for `never`.
    (edits <= (known.len() / 3).max(1)).then_some(edits)
}

/// The reference page, made from the table.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Settings\n\nPrinted by `levee explain --reference`; a test keeps it true.\n\
         A value carries its unit. A relative path is seen from the settings file's folder.\n",
    );
    let mut group = "";
    for setting in SETTINGS {
        let (table, key) = parts(setting.name);
        if table != group {
            group = table;
            page.push_str(&format!(
                "\n## [{group}]\n\n| key | takes | default | range | takes effect | meaning | example |\n\
                 |---|---|---|---|---|---|---|\n"
            ));
        }
        page.push_str(&format!(
            "| `{key}` | {} | {} | {} | {} | {} | `{key} = {}` |\n",
            setting.kind.name(),
            setting.default,
            setting.range,
            setting.change.name(),
            setting.about,
            setting.example,
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_and_example_is_one_that_the_setting_takes() {
        for setting in SETTINGS {
            if !setting.default.is_empty() {
                setting
                    .kind
                    .read(setting.default)
                    .unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            }
            for part in setting.example.trim_matches(['[', ']']).split(',') {
                let part = part.trim().trim_matches('"');
                setting
                    .kind
                    .read(part)
                    .unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            }
        }
    }

    #[test]
    fn a_misspelt_setting_is_recognised() {
        assert_eq!(nearest("link.rte"), Some("link.rate"));
        assert_eq!(nearest("site.usable"), Some("link.usable"));
        assert_eq!(nearest("completely.different"), None);
        assert_eq!(nearest("site.nmae"), Some("site.name"));
        assert_eq!(nearest("log.level"), None);
        assert_eq!(nearest("log.folder"), None, "there are two");
        assert_eq!(nearest_section("hotspots"), Some("hot_spots"));
        assert_eq!(nearest_section("web"), None);
    }
}
