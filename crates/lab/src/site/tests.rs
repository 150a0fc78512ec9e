//! Promises of the generated site.

use super::*;

fn site() -> Site {
    Site::generate(
        42,
        &WebAddress {
            host: "news.localhost".parse().unwrap(),
            port: 40000,
        },
    )
}

#[test]
fn the_whole_site_is_small_and_the_same_for_a_seed() {
    let site = site();
    let bytes = site.total_bytes();
    assert!((100_000..400_000).contains(&bytes), "{bytes} bytes");
    assert_eq!(site.objects, self::site().objects);
}

#[test]
fn every_image_of_a_page_exists_and_is_named_relatively() {
    let site = site();
    for page in &site.pages {
        let html = String::from_utf8(site.body(&page.path).to_vec()).unwrap();
        assert_eq!(html.matches("<img ").count(), page.images.len());
        for image in &page.images {
            assert!(html.contains(&format!("src=\"..{image}\"")));
            assert!(site.body(image).starts_with(b"\x89PNG"));
        }
    }
}

#[test]
fn the_post_shows_its_preview_at_the_origins_name() {
    let site = site();
    let html = String::from_utf8(site.body(&site.post().path).to_vec()).unwrap();
    let address = format!("content=\"http://news.localhost:40000{}\"", site.preview);
    assert!(html.contains(&address), "{html}");
}

#[test]
fn readers_want_images_about_as_often_as_in_the_trace() {
    let site = site();
    let per_page: f64 = site
        .pages
        .iter()
        .map(|page| page.share * page.images.len() as f64)
        .sum();
    let wanted = Popularity::of_nasa().images_per_page;
    assert!((per_page - wanted).abs() < 0.6, "{per_page} images a page");
    let shares: f64 = site.pages.iter().map(|page| page.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn writing_the_site_gives_one_file_for_each_object() {
    let folder = tempfile::tempdir().unwrap();
    let site = site();
    site.write(folder.path()).unwrap();
    for (path, body) in &site.objects {
        let file = folder.path().join(path.trim_start_matches('/'));
        assert_eq!(fs::read(file).unwrap(), body.as_ref());
    }
    assert!(folder.path().join("index.html").exists());
}
