//! What of a changed file takes effect while the server runs, and what waits for the next start.

use super::types::{Settings, TlsSettings};

macro_rules! waiting {
    ($new:ident, $running:ident, $($name:literal: $($field:ident).+;)*) => {{
        let mut later = vec![];
        $(if $new.$($field).+ != $running.$($field).+ {
            later.push($name);
            $new.$($field).+.clone_from(&$running.$($field).+);
        })*
        later
    }};
}

impl Settings {
    /// Puts back what takes effect only at the next start, so that these are the settings in force
    /// when a server that runs with `running` has read them. Gives the names of what waits.
    pub fn wait_for_restart(&mut self, running: &Self) -> Vec<&'static str> {
        let mut later = waiting! { self, running,
            "site.name": site.name;
            "site.listen": site.listen;
            "site.proxy_protocol": site.proxied;
            "site.unix_mode": site.unix_mode;
            "site.port": site.port;
            "site.cores": site.cores;
            "upstream.connect_max": upstream.times.connect;
            "upstream.first_byte_max": upstream.times.first_byte;
            "upstream.between_bytes_max": upstream.times.between_bytes;
            "upstream.fetch_max": upstream.times.whole;
            "upstream.idle_time": upstream.times.idle;
            "upstream.idle_connections": upstream.idle_connections;
            "link.rate": link.rate;
            "community.identity, community.authority, community.members": trust;
            "rescue.wait_max": rescue.wait_max;
            "[cache]": cache;
            "[limits]": limits;
            "admin.listen": admin;
            "admin.names": admin_names;
            "[dns]": dns;
            "dns.alias_server": alias_zone;
            "[log]": log;
            "[integrity]": integrity;
            "state.folder": state_folder;
        };
        let mut community = running.community.clone();
        // The only thing of a community that can change at any time.
        if let (Some(new), Some(old)) = (&self.community, &mut community) {
            old.drills = new.drills;
        }
        if self.community != community {
            later.push("[community]");
            self.community = community;
        }
        if self.tls.as_ref().map(TlsSettings::fixed) != running.tls.as_ref().map(TlsSettings::fixed)
        {
            later.push("[tls]");
            match (&mut self.tls, &running.tls) {
                (Some(new), Some(old)) => new.keep_fixed(old),
                (new, old) => new.clone_from(old),
            }
        }
        // There is no listener yet at which its certificates could be shown.
        if self.tls.is_none() && self.acme.take().is_some() {
            later.push("[acme]");
        }
        later
    }
}
