//! `levee community` as a value.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use levee_trust::{PublicKey, Role};
use levee_vocab::HostName;

use super::Server;

/// What the authority of a closed community, or one of its members, wants done.
#[derive(Debug, Subcommand)]
pub enum Community {
    /// Found a closed community: make its authority's key and an empty member list.
    #[command(after_help = "levee community init mutual-aid.example")]
    Init {
        /// Name of the community.
        name: HostName,
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
        /// How long the list holds.
        #[command(flatten)]
        validity: Validity,
    },
    /// Print the public key of this site or registry; make the key first if there is none.
    #[command(
        after_help = "levee community identity -c levee.toml\nlevee community identity identity.key"
    )]
    Identity {
        /// The key file.
        #[arg(default_value = "identity.key", conflicts_with = "config")]
        file: PathBuf,
        /// Settings file of the site, which says where its key is.
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Make a site or a registry a member, or give it another key.
    #[command(after_help = "levee community add www.example.org ed25519:...")]
    Add {
        /// Name of the site, as it registers; of a registry, any.
        name: HostName,
        /// Its public key, as `levee community identity` prints it.
        key: PublicKey,
        /// `site`, or `registry`.
        #[arg(long, default_value = "site")]
        role: Role,
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
    },
    /// Take a member off the list that leaves in peace.
    Remove {
        /// Its name.
        name: HostName,
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
    },
    /// Take a member off the list and tell everybody why.
    #[command(after_help = "levee community expel www.example.net --reason \"it altered pages\"")]
    Expel {
        /// Its name.
        name: HostName,
        /// Why, in a line.
        #[arg(long)]
        reason: String,
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
    },
    /// Sign the list again, so that it goes on holding.
    Renew {
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
        /// How long it holds then.
        #[command(flatten)]
        validity: Validity,
    },
    /// Print whom the running server has expelled for altering what it delivered, and why.
    Expelled {
        /// Which server.
        #[command(flatten)]
        server: Server,
    },
    /// Let the running server ask a member for help again that it has expelled.
    #[command(after_help = "levee community forgive www.example.net")]
    Forgive {
        /// Its name.
        name: HostName,
        /// Which server.
        #[command(flatten)]
        server: Server,
    },
    /// Print the members.
    List {
        /// Where key and list are kept.
        #[command(flatten)]
        desk: Desk,
    },
    /// Check that a list is the authority's, unaltered, and still holds.
    #[command(after_help = "levee community verify members.list --authority ed25519:...")]
    Verify {
        /// The list.
        file: PathBuf,
        /// Public key of the authority.
        #[arg(long, value_name = "KEY")]
        authority: PublicKey,
    },
}

/// Where an authority keeps its things.
#[derive(Debug, Args)]
pub struct Desk {
    /// Folder with `authority.key` and `members.list`.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}

/// How long a list holds.
#[derive(Debug, Args)]
pub struct Validity {
    /// Days for which the list holds.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub days: u16,
}
