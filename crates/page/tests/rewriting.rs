//! Links of a page that are made relative, and all that stays as it is.
#![allow(clippy::unwrap_used)]

use levee_page::{Hyperlinks, Place, Rewriter};

const PAGE: &str = "https://www.example.org/news/today.html";

fn rewrite(content_type: &str, body: &str, hyperlinks: Hyperlinks, piece_bytes: usize) -> String {
    let own = [
        "http://www.example.org",
        "https://static.example.org",
        "http://www.example.org:81",
    ];
    let place = Place::new(PAGE, &own).unwrap();
    let mut rewriter = Rewriter::new(content_type, place, hyperlinks).unwrap();
    let mut out = Vec::new();
    for piece in body.as_bytes().chunks(piece_bytes) {
        rewriter.write(piece, &mut out);
    }
    rewriter.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn check_as(content_type: &str, hyperlinks: Hyperlinks, body: &str, expected: &str) {
    for piece_bytes in [usize::MAX, 7, 1] {
        assert_eq!(
            rewrite(content_type, body, hyperlinks, piece_bytes),
            expected
        );
    }
}

fn check(body: &str, expected: &str) {
    check_as("text/html", Hyperlinks::Kept, body, expected);
}

fn check_kept(body: &str) {
    check(body, body);
}

#[test]
fn embedded_links_to_the_server_of_the_page_lose_its_name() {
    check(
        "<IMG  Src = 'https://www.example.org/a.png'   alt=x ><p>\r\n<img src=//WWW.example.org/b.png>",
        "<IMG  Src = '/a.png'   alt=x ><p>\r\n<img src=/b.png>",
    );
    check(
        "<link href=\" http://www.example.org:80/a.css\" rel=stylesheet><video poster=https://www.example.org:443/ >",
        "<link href=\" /a.css\" rel=stylesheet><video poster=/ >",
    );
    check(
        "<img srcset='https://www.example.org/a.png?x&amp;y 1x, //www.example.org/b.png 2x'>",
        "<img srcset='/a.png?x&amp;y 1x, /b.png 2x'>",
    );
}

#[test]
fn links_in_styles_that_have_the_beginning_of_markup_in_them_stay() {
    check_kept("<style>@import 'https<://www.example.org/s'</style>");
    check_kept("<style>@import 'https://www.exa</style.org/s'</style >");
    check_kept("<svg><style>@import 'https:< //www.example.org/s'</style></svg>");
}

#[test]
fn links_in_styles_lose_it_too() {
    check(
        "<style>a{b:url(https://www.example.org/a.png)}</style><p style='b:url(//www.example.org/b.png)'>",
        "<style>a{b:url(/a.png)}</style><p style='b:url(/b.png)'>",
    );
}

#[test]
fn links_that_a_visitor_follows_are_a_choice() {
    let body = "<a href=https://www.example.org/a.html>https://www.example.org/</a>";
    check_kept(body);
    check_as(
        "text/html",
        Hyperlinks::Relative,
        body,
        "<a href=/a.html>https://www.example.org/</a>",
    );
}

#[test]
fn what_leads_elsewhere_or_says_who_the_page_is_stays() {
    check_kept("<img src=https://other.example/a.png><img src=https://static.example.org/a.png>");
    check_kept("<img src=http://www.example.org:81/a.png><img src=ftp://www.example.org/a.png>");
    check_kept("<link rel=canonical href=https://www.example.org/news/today.html>");
    check_kept("<meta property=og:image content=https://www.example.org/a.png>");
    check_kept(
        "<form action=https://www.example.org/search><!-- <img src=//www.example.org/a> -->",
    );
    check_kept("<script>var x = '<img src=https://www.example.org/a.png>'</script>");
}

#[test]
fn nothing_is_cut_that_would_then_lead_to_another_server() {
    for path in [
        "//evil.example/a",
        "/\\evil.example/a",
        "/\t/evil.example",
        "/&#47;evil.example/",
        "?x",
        "",
    ] {
        check_kept(&format!("<img src=\"https://www.example.org{path}\">"));
    }
    check_kept("<img src=\"https://www.example.org&#46;evil.example/a.png\">");
    check_kept(
        "<img src=https://user@www.example.org/a.png><img src='https:/www.example.org/a.png'>",
    );
    check_kept("<img srcset='https://www.example.org/a.png&#44;https://www.example.org/b.png'>");
    check_kept("<style>a{b:url(https://www.example.org/\\2f evil.example/a.png)}</style>");
}

#[test]
fn a_base_that_leads_elsewhere_ends_it_and_one_that_leads_here_is_cut_itself() {
    check_kept("<base href=https://other.example/><img src=https://www.example.org/a.png>");
    check(
        "<base href=https://www.example.org/b/><img src=https://www.example.org/a.png><img src=c.png>",
        "<base href=/b/><img src=/a.png><img src=c.png>",
    );
}

#[test]
fn a_tag_of_any_length_goes_through_and_no_more_than_one_is_held_back() {
    let data = "A".repeat(300_000);
    let body = format!(
        "<img src=https://www.example.org/a.png alt='{data}'><img src=//www.example.org/b.png>"
    );
    let whole = rewrite("text/html", &body, Hyperlinks::Kept, usize::MAX);
    assert!(whole.starts_with("<img src=/a.png alt='AAA") && whole.ends_with("<img src=/b.png>"));
    let cut = rewrite("text/html", &body, Hyperlinks::Kept, 1000);
    assert!(cut.starts_with("<img src=https://www.example.org/a.png alt='AAA"));
    assert!(cut.ends_with("<img src=/b.png>"));
    assert_eq!(cut.len(), body.len() - "//www.example.org".len());
    check_kept("<img src='https://www.example.org/never closed");
}

#[test]
fn a_sheet_whose_digest_a_page_may_name_is_not_changed() {
    let place = Place::new("https://www.example.org/a.css", &[]).unwrap();
    assert!(Rewriter::new("text/css", place, Hyperlinks::Relative).is_none());
}

#[test]
fn after_a_policy_that_names_the_server_or_a_digest_nothing_is_changed() {
    let body = |policy: &str| {
        let meta = format!("<meta http-equiv=Content-Security-Policy content=\"{policy}\">");
        format!("{meta}<img src=https://www.example.org/a.png>")
    };
    check_kept(&body("img-src https://www.Example.org"));
    check_kept(&body("style-src &#39;SHA256-abc='"));
    let free = body("default-src 'self'");
    check(&free, &free.replace("https://www.example.org", ""));
}
