//! What of a changed file takes effect while the server runs, and what waits for the next start.
//!
//! What waits is told by what the operator has written, and not by what follows from it: another
//! `site.name` has another zone and other aliases too, but nobody has changed those.

use super::types::Settings;
use crate::settings::table::{Change, Setting, parts};

macro_rules! keep {
    ($new:ident, $running:ident, $($($field:ident).+;)*) => {{
        $($new.$($field).+.clone_from(&$running.$($field).+);)*
    }};
}

impl Settings {
    /// Puts back what takes effect only at the next start, so that these are the settings in force
    /// when a server that runs with `running` has read them. Gives the names of what waits, of the
    /// settings that are `changed` since the start.
    pub fn wait_for_restart(
        &mut self,
        running: &Self,
        changed: &[&'static Setting],
    ) -> Vec<&'static str> {
        // Without a listener, there is none at which certificates could be shown; and with one,
        // there is something to show as long as it runs.
        let waits_for_listener = self.tls.is_some() != running.tls.is_some();
        let is_of_https = |name| ["tls", "acme"].contains(&parts(name).0);
        let waits = |setting: &Setting| {
            setting.change == Change::Restart || (waits_for_listener && is_of_https(setting.name))
        };
        let later = changed.iter().filter(|setting| waits(setting));
        self.keep_fixed(running);
        self.order_for_what_is_in_force();
        self.upstream.group.check.host = self.site.name.to_string();
        later.map(|setting| setting.name).collect()
    }

    fn keep_fixed(&mut self, running: &Self) {
        keep! { self, running,
            site.name;
            site.listen;
            site.proxied;
            site.unix_mode;
            site.port;
            site.cores;
            upstream.times;
            upstream.idle_connections;
            link.rate;
            trust;
            rescue.wait_max;
            cache;
            limits;
            admin;
            admin_names;
            dns;
            alias_zone;
            log;
            integrity;
            state_folder;
        }
        let mut community = running.community.clone();
        // The only thing of a community that can change at any time.
        if let (Some(new), Some(old)) = (&self.community, &mut community) {
            old.drills = new.drills;
        }
        self.community = community;
        match (&mut self.tls, &running.tls) {
            (Some(new), Some(old)) => new.keep_fixed(old),
            (new, old) => {
                new.clone_from(old);
                self.acme.clone_from(&running.acme);
            }
        }
    }
}
