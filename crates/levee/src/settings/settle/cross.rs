//! What only several settings together can get wrong.

use std::net::{IpAddr, SocketAddr};

use levee_net::ListenAddress;
use levee_vocab::{ByteRate, HostName};

use super::dns::DnsSettings;
use super::types::Settings;
use crate::settings::read::{Complaint, SettingsFile};

impl Settings {
    /// Complains of listeners that expect a PROXY header and can never have one.
    fn check_proxied(&self, file: &SettingsFile, complaints: &mut Vec<Complaint>) {
        let line = file.line("site.proxy_protocol");
        let mut complain = |text| complaints.push(Complaint { line, text });
        for proxied in &self.site.proxied {
            let tls = self.tls.iter().flat_map(|tls| &tls.listen);
            if !self
                .site
                .listen
                .iter()
                .chain(tls)
                .any(|listen| listen == proxied)
            {
                complain(format!(
                    "site.proxy_protocol: {proxied} is not listened on; name it in site.listen or tls.listen too"
                ));
            }
        }
        if !self.site.proxied.is_empty() && self.site.trusted.is_empty() {
            let text = "site.proxy_protocol: nobody may connect there without \
                        site.trusted_proxies, the addresses of your proxies";
            complain(text.into());
        }
    }

    /// Complains of what does not fit together.
    pub(super) fn cross_check(&self, file: &SettingsFile, complaints: &mut Vec<Complaint>) {
        let mut taken: Vec<(ListenAddress, &str)> = vec![];
        let community = self.community.as_ref();
        let rescue = community.map(|community| community.rescue_listen);
        let listeners = self.site.listen.iter().cloned();
        let listeners = listeners.map(|socket| (socket, "site.listen"));
        let tls = self.tls.iter().flat_map(|tls| &tls.listen);
        let tls = tls.map(|socket| (socket.clone(), "tls.listen"));
        let others = [
            (
                self.dns.as_ref().and_then(DnsSettings::listen),
                "dns.listen",
            ),
            (Some(self.admin), "admin.listen"),
            (rescue, "community.rescue_listen"),
        ];
        let others = others
            .into_iter()
            .filter_map(|(socket, name)| Some((socket?.into(), name)));
        for (socket, name) in listeners.chain(tls).chain(others) {
            let clash = taken.iter().find(|(other, _)| clashes(other, &socket));
            if let Some((other, by)) = clash {
                let text =
                    format!("{name}: {socket} is taken by `{by}` ({other}); choose another port");
                complaints.push(Complaint {
                    line: file.line(name),
                    text,
                });
            }
            taken.push((socket, name));
        }
        self.check_proxied(file, complaints);
        // The ranges of rescue control stand in one place, with the decisions that rely on them.
        let link = self.link.rate.unwrap_or(ByteRate::from_kilobytes(1000));
        let checked = self
            .parameters(self.site.port, IpAddr::from([192, 0, 2, 1]), link)
            .check();
        for error in checked.err().unwrap_or_default() {
            let line = file.line(error.setting);
            complaints.push(Complaint {
                line,
                text: error.to_string(),
            });
        }
        if let Some(community) = &self.community {
            let below = &community.alias_domain;
            let mut names = [&self.site.name].into_iter().chain(&self.site.also);
            if let Some(own) = names.find_map(|name| shared_domain(below, name)) {
                let text = format!(
                    "community.alias_domain: {below} lies under this site's own domain {own}, so strangers' \
                     pages would share its cookies; use a domain of its own"
                );
                complaints.push(Complaint {
                    line: file.line("community.alias_domain"),
                    text,
                });
            }
        }
    }
}

/// The domain whose cookies pages of `site` and those of names below `aliases` share, if there is
/// one: what is registered below a public suffix, as browsers see it (record 0040).
fn shared_domain<'a>(aliases: &HostName, site: &'a HostName) -> Option<&'a str> {
    let own = psl::domain_str(site.as_str())?;
    let alias = format!("alias.{aliases}");
    (psl::domain_str(&alias) == Some(own)).then_some(own)
}

/// Whether two sockets want the same place. Those for IPv6 do not speak for IPv4, so that a site
/// on all addresses has one of each.
fn clashes(left: &ListenAddress, right: &ListenAddress) -> bool {
    match (left.tcp(), right.tcp()) {
        (Some(left), Some(right)) => ports_clash(left, right),
        (Some(_) | None, _) => left == right,
    }
}

fn ports_clash(left: SocketAddr, right: SocketAddr) -> bool {
    let all = left.ip().is_unspecified() || right.ip().is_unspecified();
    let same_host = left.ip() == right.ip() || (all && left.is_ipv4() == right.is_ipv4());
    left.port() != 0 && left.port() == right.port() && same_host
}
