//! The web site of the demo: a post that goes around the world, and what else a small weblog has.
//!
//! Popularity and sizes follow the trace ([`Popularity`]), within limits that keep the whole site
//! under 400 kB. Pages are HTML with relative image addresses, so that a visitor who was redirected
//! stays at the rescue server; the preview image of the post has an absolute address, as link
//! previews need one, so it is asked for at the origin again. The same seed makes the same site.

mod picture;
mod prose;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use levee_vocab::{Random, WebAddress};

use crate::popularity::{Popularity, Ranked};
use picture::Picture;

/// Every object of a site, and how its readers want them.
#[derive(Clone, Debug)]
pub struct Site {
    /// Body of each object by its path.
    pub objects: BTreeMap<String, Bytes>,
    /// Pages, most wanted first; the first is the hot post.
    pub pages: Vec<Page>,
    /// Path of the post's preview image.
    pub preview: String,
}

/// One page and what it embeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its path.
    pub path: String,
    /// Paths of its images, in the order of the page.
    pub images: Vec<String>,
    /// Share of the readers that come for it; the shares of all pages make 1.
    pub share: f64,
}

impl Site {
    /// Makes the site that is reached at `address`.
    pub fn generate(seed: u64, address: &WebAddress) -> Self {
        let popularity = Popularity::of_nasa();
        let mut random = Random::from_seed(seed);
        let mut objects = BTreeMap::new();
        let pictures: Vec<(String, Picture)> = popularity.images[..IMAGES]
            .iter()
            .enumerate()
            .map(|(rank, image)| {
                let bytes = image.bytes.clamp(IMAGE_BYTES.0, IMAGE_BYTES.1) as usize;
                let path = format!("/images/harbour-{:02}.png", rank + 1);
                (path, Picture::draw(random.next_bits(), bytes))
            })
            .collect();
        let preview = format!("/images/{}.png", prose::slug(prose::TITLES[0]));
        let preview_picture = Picture::draw(random.next_bits(), PREVIEW_BYTES);
        objects.insert(preview.clone(), Bytes::from(preview_picture.png));

        let (pages, placed) = lay_out(&popularity, &pictures);
        for (rank, page) in pages.iter().enumerate() {
            let draft = Draft {
                rank,
                page,
                pictures: &placed[rank],
                preview: (rank == 0).then(|| format!("http://{address}{preview}")),
            };
            let html = draft.html(&mut random, page_bytes(&popularity.pages, rank));
            objects.insert(page.path.clone(), Bytes::from(html));
        }
        for (path, picture) in pictures {
            objects.insert(path, Bytes::from(picture.png));
        }
        Self {
            objects,
            pages,
            preview,
        }
    }

    /// The hot post.
    pub fn post(&self) -> &Page {
        &self.pages[0]
    }

    /// Bytes of all objects.
    pub fn total_bytes(&self) -> u64 {
        self.objects.values().map(|body| body.len() as u64).sum()
    }

    /// The body of the object at `path`, which must be one of this site's own paths.
    pub fn body(&self, path: &str) -> &Bytes {
        self.objects
            .get(path)
            .expect("pages name only objects of their own site")
    }

    /// Writes every object into `folder`, and an `index.html` that leads to the post.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (path, body) in &self.objects {
            let file = folder.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap_or(folder))?;
            fs::write(file, body)?;
        }
        fs::write(folder.join("index.html"), self.index())
    }

    fn index(&self) -> String {
        let mut html = format!("{HEAD}<title>Harbour lights</title>{STYLE}<h1>Harbour lights</h1>");
        html.push_str("<p>A small weblog on a thin line.</p><ul>");
        for (rank, page) in self.pages.iter().enumerate() {
            let title = prose::TITLES[rank];
            let path = page.path.trim_start_matches('/');
            let _ = write!(html, "<li><a href=\"{path}\">{title}</a></li>");
        }
        html.push_str("</ul>\n");
        html
    }
}

/// Pages and images of the site: the head of the trace's popularity, which is also what makes up
/// most of its requests. More would cost the origin's link more fetches than its crowd needs.
const PAGES: usize = 12;
const IMAGES: usize = 16;
/// No page shows more images than this.
const IMAGES_PER_PAGE_MAX: usize = 6;
/// Limits to the sizes of the trace, whose largest page alone has 170 kB.
const PAGE_BYTES: (u64, u64) = (1_500, 9_000);
const IMAGE_BYTES: (u64, u64) = (240, 6_000);
/// The preview image: small for a card of 1200 pixels, large for the line it must pass.
const PREVIEW_BYTES: usize = 18_000;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n";
const STYLE: &str = "\n<style>body{font:18px/1.6 Georgia,serif;max-width:40em;margin:2em auto;\
    padding:0 1em;color:#1c2833}img{max-width:100%;min-width:6em;border-radius:6px;margin:.3em}\
    a{color:#1a5276}</style></head><body>\n";

fn page_bytes(pages: &[Ranked], rank: usize) -> usize {
    pages[rank].bytes.clamp(PAGE_BYTES.0, PAGE_BYTES.1) as usize
}

type Placed<'a> = Vec<Vec<&'a (String, Picture)>>;

/// Decides which page shows which image, so that images are wanted as often as in the trace: an
/// image goes onto the most wanted pages first, until their readers make up its share.
fn lay_out<'a>(
    popularity: &Popularity,
    pictures: &'a [(String, Picture)],
) -> (Vec<Page>, Placed<'a>) {
    let page_whole: f64 = popularity.pages[..PAGES]
        .iter()
        .map(|page| page.share)
        .sum();
    let image_whole: f64 = popularity.images[..IMAGES]
        .iter()
        .map(|image| image.share)
        .sum();
    let share = |rank: usize| popularity.pages[rank].share / page_whole;
    let mut placed: Placed<'a> = vec![Vec::new(); PAGES];
    for (rank, picture) in pictures.iter().enumerate() {
        let wanted = popularity.images[rank].share / image_whole * popularity.images_per_page;
        let mut given = 0.0;
        for (page, images) in placed.iter_mut().enumerate() {
            // The first page may take an image somewhat beyond its share: else the one page that
            // has a third of all readers would show hardly any.
            let slack = if given == 0.0 { 1.4 } else { 1.1 };
            let fits = given + share(page) <= wanted * slack;
            if fits && images.len() < IMAGES_PER_PAGE_MAX {
                images.push(picture);
                given += share(page);
            }
        }
        if given == 0.0 {
            // Less wanted than any page: it goes to the least wanted one that has room.
            let last = (0..PAGES)
                .rev()
                .find(|&page| placed[page].len() < IMAGES_PER_PAGE_MAX);
            placed[last.unwrap_or(PAGES - 1)].push(picture);
        }
    }
    let pages = (0..PAGES)
        .map(|rank| Page {
            path: format!("/posts/{}.html", prose::slug(prose::TITLES[rank])),
            images: placed[rank].iter().map(|(path, _)| path.clone()).collect(),
            share: share(rank),
        })
        .collect();
    (pages, placed)
}

/// A page before it is text.
struct Draft<'a> {
    rank: usize,
    page: &'a Page,
    pictures: &'a [&'a (String, Picture)],
    preview: Option<String>,
}

impl Draft<'_> {
    /// The page in about `bytes_wanted` bytes.
    fn html(&self, random: &mut Random, bytes_wanted: usize) -> String {
        let title = prose::TITLES[self.rank];
        let mut html = format!("{HEAD}<title>{title}</title>\n");
        if let Some(preview) = &self.preview {
            let _ = writeln!(html, "<meta property=\"og:title\" content=\"{title}\">");
            let _ = writeln!(html, "<meta property=\"og:image\" content=\"{preview}\">");
        }
        let _ = writeln!(html, "{STYLE}<h1>{title}</h1>");
        for (path, picture) in self.pictures {
            // Relative on purpose: the image is then asked for where the page came from.
            let _ = writeln!(
                html,
                "<img src=\"..{path}\" width=\"{}\" height=\"{}\" alt=\"The harbour\">",
                picture.width * 2,
                picture.height * 2
            );
        }
        let close = "<p><a href=\"../index.html\">All posts</a></p></body></html>\n";
        let left = bytes_wanted.saturating_sub(html.len() + close.len());
        html.push_str(&prose::paragraphs(random, left));
        html.push_str(close);
        debug_assert!(self.page.path.starts_with("/posts/"));
        html
    }
}

#[cfg(test)]
mod tests;
