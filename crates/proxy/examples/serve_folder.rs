//! Serves a folder with nothing around it: the data plane alone, to look at and to measure.
//!
//! `cargo run --release -p levee-proxy --example serve_folder -- <folder> <port> [cores]`

use std::path::Path;
use std::sync::Arc;

use levee_net::Inherited;
use levee_proxy::{
    Content, Folder, Front, FrontParts, FrontSettings, Site, SiteTable, UnknownHost,
};
use levee_vocab::WebAddress;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let folder = words.first().map_or(".", String::as_str);
    let port: u16 = words.get(1).map_or(Ok(0), |word| word.parse())?;
    let mut settings = FrontSettings::listening_on(vec![([127, 0, 0, 1], port).into()]);
    settings.cores = words.get(2).map_or(Ok(1), |word| word.parse())?;
    let bound = Front::bind(settings, &Inherited::default())?;
    let site = Site {
        name: WebAddress {
            host: "localhost".parse()?,
            port: bound.local_addresses()[0].port(),
        },
        other_names: Vec::new(),
        content: Content::Folder(Arc::new(Folder::open(Path::new(folder))?)),
    };
    let sites = SiteTable::new(vec![site], UnknownHost::Serve);
    let front = bound.start(FrontParts {
        plan: Arc::default(),
        sites: Arc::new(sites),
        fetcher: None,
        tls: None,
        link: None,
        log: None,
        handed_over: None,
        purge: None,
    })?;
    println!("ready on http://{}", front.local_addresses()[0]);
    loop {
        std::thread::park();
    }
}
