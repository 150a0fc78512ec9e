//! The servers: ours, the bare loops, and the peers, each with its configuration and its package.
//!
//! A server's configuration is one readable file in `bench/peers/`, filled in by `fleet`. A server
//! that needs two shapes of configuration (files; cache of an application) is two processes, so
//! that neither pays for the other.

/// Where a server is asked: what it must be configured to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    /// Files of a folder, and redirects. Of a server that cannot read a folder: the same from its
    /// cache, in front of the origin.
    Files,
    /// What an application behind it said, kept in its cache.
    Cached,
    /// The same as `Files`, over TLS, with HTTP/1.1 and HTTP/2.
    Tls,
    /// The same as `Files`, on a link whose rate is set: every byte passes the pacer.
    Paced,
}

/// One server.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its name on the command line, in the table and in the JSON.
    pub name: &'static str,
    /// Who made it.
    pub maker: Maker,
    /// Its processes.
    pub setups: &'static [Setup],
}

/// Who made a server, and so where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// We: the server that this repository is about.
    Ours,
    /// We: a yardstick.
    Bare,
    /// Others: a package of Debian.
    Debian(&'static str),
}

/// One process of a server.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The doors that it opens.
    pub doors: &'static [Door],
    /// What to run; a program of ours is built for release first.
    pub program: &'static str,
    /// Files that its configuration needs and its own package lacks, and the packages that have
    /// them: Debian parts the modules of some servers off.
    pub parts: &'static [(&'static str, &'static str)],
    /// Its arguments. `@CONF@` is the path of the first file; the other words are those of
    /// `fleet`.
    pub arguments: &'static [&'static str],
    /// Files below `bench/peers/`, and where they go in the process's own folder.
    pub files: &'static [(&'static str, &'static str)],
    /// Words of the template that this setup alone has.
    pub words: &'static [(&'static str, &'static str)],
    /// Programs that keep its log beside it where bookkeeping is on: what they spend is its own,
    /// too.
    pub loggers: &'static [&'static [&'static str]],
    /// Folders of its own that it expects.
    pub folders: &'static [&'static str],
    /// The Host by which the workload `redirect` asks; empty where any will do.
    pub redirect_host: &'static str,
}

const PLAIN: Setup = Setup {
    doors: &[Door::Files],
    program: "",
    parts: &[],
    arguments: &[],
    files: &[],
    words: &[],
    loggers: &[],
    folders: &[],
    redirect_host: "",
};

/// Of a server that has one configuration for everything: it can only answer from its cache.
const CACHE_ONLY: &[Door] = &[Door::Files, Door::Cached, Door::Tls];
const CACHE_WITHOUT_TLS: &[Door] = &[Door::Files, Door::Cached];
/// What the bare loops stand beside: bytes from memory, however others come by them.
const YARDSTICK: &[Door] = &[Door::Files, Door::Cached, Door::Paced];
const FILES_AND_TLS: &[Door] = &[Door::Files, Door::Tls];

const NGINX_CACHE: Setup = Setup {
    doors: &[Door::Cached],
    program: "nginx",
    arguments: &["-c", "@CONF@", "-e", "@DIR@/error.log"],
    files: &[("nginx-cache.conf", "nginx.conf")],
    ..PLAIN
};

/// Name of our server.
pub const OURS: &str = "levee";
/// Name of the yardstick.
pub const BARE: &str = "bare";

/// Every server: ours, then the yardsticks, then the others by name.
pub const SERVERS: &[Server] = &[
    Server {
        name: OURS,
        maker: Maker::Ours,
        setups: &[
            Setup {
                doors: FILES_AND_TLS,
                program: "levee",
                arguments: &["serve", "-c", "@CONF@"],
                files: &[
                    ("levee.toml", "levee.toml"),
                    ("levee.aliases", "state/aliases"),
                ],
                words: &[("PACING", "")],
                redirect_host: "www-vh1.aliases.example.org",
                ..PLAIN
            },
            Setup {
                doors: &[Door::Paced],
                program: "levee",
                arguments: &["serve", "-c", "@CONF@"],
                files: &[("levee.toml", "levee.toml")],
                // More than a core can send, so that pacing costs its work and no waiting.
                words: &[("PACING", "[link]\nrate = \"10 GB/s\"")],
                ..PLAIN
            },
            Setup {
                doors: &[Door::Cached],
                program: "levee",
                arguments: &["serve", "-c", "@CONF@"],
                files: &[("levee-proxy.toml", "levee.toml")],
                ..PLAIN
            },
        ],
    },
    Server {
        name: BARE,
        maker: Maker::Bare,
        setups: &[Setup {
            doors: YARDSTICK,
            program: "levee-lab",
            arguments: &[
                "bare",
                "--folder",
                "@FOLDER@",
                "--listen",
                "127.0.0.1:@PORT@",
            ],
            ..PLAIN
        }],
    },
    Server {
        name: "bare-uring",
        maker: Maker::Bare,
        setups: &[Setup {
            doors: YARDSTICK,
            program: "examples/bare_uring",
            arguments: &["@FOLDER@", "127.0.0.1:@PORT@"],
            ..PLAIN
        }],
    },
    Server {
        name: "h2o",
        maker: Maker::Debian("h2o"),
        setups: &[Setup {
            doors: FILES_AND_TLS,
            program: "h2o",
            arguments: &["-m", "worker", "-c", "@CONF@"],
            files: &[("h2o.conf", "h2o.conf")],
            ..PLAIN
        }],
    },
    Server {
        name: "haproxy",
        maker: Maker::Debian("haproxy"),
        setups: &[Setup {
            doors: CACHE_ONLY,
            program: "haproxy",
            arguments: &["-db", "-f", "@CONF@"],
            files: &[("haproxy.cfg", "haproxy.cfg")],
            ..PLAIN
        }],
    },
    Server {
        name: "lighttpd",
        maker: Maker::Debian("lighttpd"),
        setups: &[Setup {
            doors: FILES_AND_TLS,
            program: "lighttpd",
            parts: &[("/usr/lib/lighttpd/mod_openssl.so", "lighttpd-mod-openssl")],
            arguments: &["-D", "-f", "@CONF@"],
            files: &[("lighttpd.conf", "lighttpd.conf")],
            ..PLAIN
        }],
    },
    Server {
        name: "nginx",
        maker: Maker::Debian("nginx"),
        setups: &[
            Setup {
                doors: FILES_AND_TLS,
                program: "nginx",
                arguments: &["-c", "@CONF@", "-e", "@DIR@/error.log"],
                files: &[("nginx.conf", "nginx.conf")],
                words: &[("SENDFILE", "off")],
                ..PLAIN
            },
            NGINX_CACHE,
        ],
    },
    Server {
        name: "nginx-sendfile",
        maker: Maker::Debian("nginx"),
        setups: &[Setup {
            doors: FILES_AND_TLS,
            program: "nginx",
            arguments: &["-c", "@CONF@", "-e", "@DIR@/error.log"],
            files: &[("nginx.conf", "nginx.conf")],
            words: &[("SENDFILE", "on")],
            ..PLAIN
        }],
    },
    Server {
        name: "trafficserver",
        maker: Maker::Debian("trafficserver"),
        setups: &[Setup {
            doors: CACHE_ONLY,
            program: "traffic_server",
            arguments: &["--run-root=@DIR@/runroot.yaml"],
            files: &[
                ("trafficserver-runroot.yaml", "runroot.yaml"),
                ("trafficserver-records.config", "etc/records.config"),
                ("trafficserver-remap.config", "etc/remap.config"),
                ("trafficserver-ip_allow.yaml", "etc/ip_allow.yaml"),
                (
                    "trafficserver-ssl_multicert.config",
                    "etc/ssl_multicert.config",
                ),
                ("trafficserver-storage.config", "etc/storage.config"),
                ("trafficserver-logging.yaml", "etc/logging.yaml"),
                ("trafficserver-plugin.config", "etc/plugin.config"),
            ],
            folders: &["cache", "run"],
            ..PLAIN
        }],
    },
    Server {
        name: "varnish",
        maker: Maker::Debian("varnish"),
        setups: &[Setup {
            doors: CACHE_WITHOUT_TLS,
            program: "varnishd",
            arguments: &[
                "-F",
                "-j",
                "none",
                "-n",
                "@DIR@",
                "-f",
                "@CONF@",
                "-a",
                "127.0.0.1:@PORT@",
                "-s",
                "malloc,256m",
                "-p",
                "thread_pools=1",
                "-p",
                "thread_pool_min=100",
                "-p",
                "thread_pool_max=300",
                "-p",
                "timeout_idle=600",
            ],
            files: &[("varnish.vcl", "varnish.vcl")],
            loggers: &[&["varnishncsa", "-n", "@DIR@", "-w", "@LOGS@/varnish.log"]],
            ..PLAIN
        }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_file_is_there() {
        let workspace = crate::workspace::Workspace::find().unwrap();
        for (index, server) in SERVERS.iter().enumerate() {
            assert!(!server.setups.is_empty());
            let before = &SERVERS[..index];
            assert!(!before.iter().any(|other| other.name == server.name));
            for (file, _) in server.setups.iter().flat_map(|setup| setup.files) {
                assert!(workspace.has(&format!("bench/peers/{file}")), "{file}");
            }
        }
    }
}
