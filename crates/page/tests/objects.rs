//! What is found in pages and style sheets, and what is not.
#![allow(clippy::unwrap_used)]

use levee_page::{Extent, Finder, Found, OBJECTS_MAX, Place, URL_BYTES_MAX, Use};

const PAGE: &str = "https://www.example.org/news/today.html";

fn find(content_type: &str, body: &[u8], piece_bytes: usize) -> Found {
    let own = ["http://www.example.org", "https://static.example.org:8443"];
    let place = Place::new(PAGE, &own).unwrap();
    let mut finder = Finder::new(content_type, place).unwrap();
    body.chunks(piece_bytes)
        .for_each(|piece| finder.write(piece));
    finder.finish()
}

/// Whole and byte by byte, the same targets are found.
fn check(content_type: &str, body: &str, expected: &[&str]) {
    let whole = find(content_type, body.as_bytes(), usize::MAX);
    assert_eq!(find(content_type, body.as_bytes(), 1), whole, "{body}");
    let targets: Vec<&str> = whole.objects.iter().map(|one| &*one.target).collect();
    assert_eq!(targets, expected, "{body}");
}

fn check_page(body: &str, expected: &[&str]) {
    check("text/html", body, expected);
}

fn check_sheet(body: &str, expected: &[&str]) {
    check("text/css; charset=utf-8", body, expected);
}

#[test]
fn every_element_that_loads_something_is_known() {
    check_page(
        r#"<body background=bg.gif><img src=a.png><IMG SRC='b.png'><image src=c.png>
        <input type=image src=d.png><input type=text src=no.png>
        <video poster=e.png src=f.mp4><source src=g.webm><track src=h.vtt></video>
        <audio src=i.ogg></audio><embed src=j.pdf><object data=k.svg></object>
        <iframe src=l.html></iframe><svg><use href="m.svg#n"/><image xlink:href=o.png /></svg>
        <script src=p.js></script><script type=text/template src=no.js></script>
        <script nomodule src=no.js></script><script type=module src=q.js></script>"#,
        &[
            "/news/bg.gif",
            "/news/a.png",
            "/news/b.png",
            "/news/c.png",
            "/news/d.png",
            "/news/e.png",
            "/news/f.mp4",
            "/news/g.webm",
            "/news/h.vtt",
            "/news/i.ogg",
            "/news/j.pdf",
            "/news/k.svg",
            "/news/l.html",
            "/news/m.svg",
            "/news/o.png",
            "/news/p.js",
            "/news/q.js",
        ],
    );
}

#[test]
fn links_are_objects_if_their_relation_is_one_that_loads() {
    check_page(
        r#"<link rel=stylesheet href=a.css><link rel="stylesheet/less" href=no.less>
        <link rel="Alternate StyleSheet" href=b.css><link rel=stylesheet type=text/less href=no>
        <link rel="shortcut icon" href=/c.ico><link rel=canonical href=no.html>
        <link rel=preload as=font href=d.woff2><link rel=preload href=no.bin>
        <link rel=modulepreload href=e.js><link rel=manifest href=f.json>
        <link rel=preload as=image imagesrcset="g.png 1x, h.png 2x" href=g.png>
        <link rel=next href=no.html><a href=no.html>no</a>"#,
        &[
            "/news/a.css",
            "/news/b.css",
            "/c.ico",
            "/news/d.woff2",
            "/news/e.js",
            "/news/f.json",
            "/news/g.png",
            "/news/h.png",
        ],
    );
}

#[test]
fn all_candidates_of_a_picture_are_objects_and_each_is_told_once() {
    check_page(
        r#"<picture><source srcset="a.avif 1x, b.avif 2x"><source srcset=c.webp>
        <img loading=lazy src=d.jpg srcset="d.jpg 400w, ./e.jpg 800w" sizes=100vw></picture>
        <img src="../news/d.jpg#top"><img src=/news/x/../d.jpg>"#,
        &[
            "/news/a.avif",
            "/news/b.avif",
            "/news/c.webp",
            "/news/d.jpg",
            "/news/e.jpg",
        ],
    );
}

#[test]
fn only_the_sites_own_names_count_with_their_ports_and_schemes() {
    let body = br#"<img src=//www.example.org/a.png><img src=http://WWW.Example.ORG:80/b.png>
        <img src=https://static.example.org:8443/c.png><img src=https://static.example.org/no.png>
        <img src=https://www.example.org:444/no.png><img src=ftp://www.example.org/no.png>
        <img src=https://user@www.example.org/no.png><img src="data:image/png;base64,AAAA">
        <img src=https://www.example.org.evil.example/no.png><img src=""><img src="   "><img src>
        <img src=https://www.example.org@evil.example/no.png><img src=javascript:alert(1)>"#;
    let found = find("text/html", body, usize::MAX);
    let names: Vec<String> = found
        .objects
        .iter()
        .map(|one| format!("{}{}", one.authority, one.target))
        .collect();
    assert_eq!(
        names,
        [
            "www.example.org/a.png",
            "www.example.org/b.png",
            "static.example.org:8443/c.png"
        ]
    );
}

#[test]
fn urls_are_written_as_a_browser_sends_them() {
    check_page(
        "<img src=' a b.png\n'><img src='ü.png?ü&amp;x=1&copy=2'><img src='c\\d.png'>\
         <img src='%7ee.png'><img src='f.png?a=1&amp;b=2#c'><img src='&#x67;.png'><img src='?h'>",
        &[
            "/news/a%20b.png",
            "/news/%C3%BC.png?%C3%BC&x=1&copy=2",
            "/news/c/d.png",
            "/news/%7ee.png",
            "/news/f.png?a=1&b=2",
            "/news/g.png",
            "/news/today.html?h",
        ],
    );
}

#[test]
fn letters_of_a_page_in_another_encoding_are_sent_as_a_browser_sends_them() {
    let expected = |found: Found| assert_eq!(found.objects[0].target, "/news/%C3%BC.png?%FC");
    let image = b"<img src='\xfc.png?\xfc'>";
    expected(find("text/html; charset=ISO-8859-1", image, 1));
    expected(find("text/html; charset=\"latin1\"", image, 7));
    expected(find("text/html", image, 7));
    let said = [b"<meta charset=windows-1252>".as_slice(), image].concat();
    expected(find("text/html", &said, 7));
    let said = b"<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>";
    expected(find("text/html", &[said, image.as_slice()].concat(), 7));
}

#[test]
fn the_first_base_decides_from_where_it_stands() {
    check_page(
        "<img src=a.png><base target=x><base href='/b/'><base href=/no/><img src=c.png>",
        &["/news/a.png", "/b/c.png"],
    );
    check_page("<base href='https://other.example/'><img src=no.png>", &[]);
    check_page(
        "<base href='data:,x'><base href=/no/><img src=a.png>",
        &["/news/a.png"],
    );
}

#[test]
fn what_is_no_markup_names_nothing() {
    check_page(
        r#"<!-- <img src=no.png> --><!--><img src=a.png><!-- --!><img src=b.png>
        <script>"<img src=no.png>"</script><style>/* url(no.png) */</style>
        <textarea><img src=no.png></textarea><title><img src=no.png></title>
        <noscript><img src=no.png></noscript><xmp><img src=no.png></xmp>
        <!doctype "<img src=no>"><?php <img src=no?><![CDATA[<img src=no.png>]]>
        </img src=no.png><p title="<img src=no.png>"><template><img src=c.png></template>
        <script><!-- <script> </script> <img src=no.png> --></script><img src=d.png>
        <svg><title><img src=e.png></title><![CDATA[<img src=no.png>]]></svg><img src=f.png>
        <plaintext><img src=no.png></plaintext><img src=no.png>"#,
        &[
            "/news/a.png",
            "/news/b.png",
            "/news/c.png",
            "/news/d.png",
            "/news/e.png",
            "/news/f.png",
        ],
    );
}

#[test]
fn broken_tags_are_read_as_browsers_read_them() {
    check_page(
        "<img/src=a.png><img src = 'b.png'alt=x><img =src=no src=c.png><img src=d.png src=no>\
         <img\nsrc\n=\n\"e.png\"\n/><img alt='\"' src=f.png><img alt=\"'\" src=g.png>< img src=no>\
         <im\0g src=no><img src=h.png/><p<img src=no><img src='i.png'",
        &[
            "/news/a.png",
            "/news/b.png",
            "/news/c.png",
            "/news/d.png",
            "/news/e.png",
            "/news/f.png",
            "/news/g.png",
            "/news/h.png/",
        ],
    );
}

#[test]
fn what_looks_like_the_beginning_of_markup_in_a_style_sheet_is_a_part_of_it() {
    check_page(
        "<style>@import 'a<b'; @import 'c</stY-d'; @import 'e</'; @import '<!--</styles>f'</style>\
         <svg><style>@import 'g< h'; <![CDATA[ @import 'i]j'; @import 'k]]]l' ]]></style></svg>",
        &[
            "/news/a%3Cb",
            "/news/c%3C/stY-d",
            "/news/e%3C/",
            "/news/%3C!--%3C/styles%3Ef",
            "/news/g%3C%20h",
            "/news/i]j",
            "/news/k]]]l",
        ],
    );
}

#[test]
fn style_is_looked_at_wherever_it_stands() {
    check_page(
        "<style>@import 'a.css'; b { background: url(b.png) }</style>\
         <style type=text/less>b { background: url(no.png) }</style>\
         <p style=\"background: URL( &quot;c.png&quot; )\"><p style='color:red'>\
         <svg><style>b { fill: url(d.png) }<![CDATA[ c { fill: url(e.png) }]]></style>\
         <rect filter='url(f.svg#x)' mask='url(#no)'/></svg>",
        &[
            "/news/a.css",
            "/news/b.png",
            "/news/c.png",
            "/news/d.png",
            "/news/e.png",
            "/news/f.svg",
        ],
    );
}

#[test]
fn every_way_to_name_an_object_in_a_sheet_is_known() {
    check_sheet(
        r#"@charset "utf-8"; @import "a.css" screen; @import url(b.css); @import url('c.css');
        @namespace url(no.xml); @namespace svg "no.xml";
        d { background: url( d.png ), url("e.png") no-repeat, url(f\ g.png) }
        h { background: image-set("h.png" 1x, url(i.png) 2x, "j.png" type("image/png")) }
        k { content: "url(no.png)"; /* url(no.png) */ cursor: url(k.cur), auto }
        l { background: url(data:image/png;base64,AAAA); mask: \75rl(l.png) }
        m { background: url(no"no.png) } n { background: url(n.png }"#,
        &[
            "/news/a.css",
            "/news/b.css",
            "/news/c.css",
            "/news/d.png",
            "/news/e.png",
            "/news/f%20g.png",
            "/news/h.png",
            "/news/i.png",
            "/news/j.png",
            "/news/k.cur",
            "/news/l.png",
        ],
    );
    check_sheet("a { background: url(a.png", &["/news/a.png"]);
}

#[test]
fn of_the_sources_of_a_font_only_those_are_objects_that_a_browser_takes() {
    check_sheet(
        "@font-face { font-family: x; src: url(a.eot); src: url(a.eot?#iefix) format('eot'),\
         url(a.woff) format('woff'), url(a.woff2?v=1) format('woff2'), url(a.svg#a) }\
         @font-face { src: url(b.ttf) } c { background: url(c.svg) }",
        &["/news/a.woff2?v=1", "/news/b.ttf", "/news/c.svg"],
    );
}

#[test]
fn links_of_the_response_are_objects_too() {
    let mut finder = Finder::new("text/html", Place::new(PAGE, &[]).unwrap()).unwrap();
    finder.link("</a.css>; rel=preload; as=style, <b.js>; rel=\"modulepreload\"; x=\"a,<b>\"");
    finder.link("<https://other.example>; rel=preconnect, <c.html>; rel=next, <broken");
    let found = finder.finish();
    let found: Vec<_> = found
        .objects
        .iter()
        .map(|one| (&*one.target, one.object_use))
        .collect();
    assert_eq!(found, [("/a.css", Use::Style), ("/news/b.js", Use::Script)]);
}

#[test]
fn other_types_name_nothing() {
    for content_type in [
        "image/png",
        "text/plain",
        "",
        "application/json",
        "text/htmlx",
    ] {
        assert!(Finder::new(content_type, Place::new(PAGE, &[]).unwrap()).is_none());
    }
    assert!(Place::new("www.example.org/", &[]).is_err());
    assert!(Place::new(PAGE, &["ftp://www.example.org"]).is_err());
}

#[test]
fn no_more_is_kept_than_the_bounds_say() {
    let many: String = (0..OBJECTS_MAX + 5)
        .map(|n| format!("<img src={n}.png>"))
        .collect();
    let found = find("text/html", many.as_bytes(), 100);
    assert_eq!(
        (found.objects.len(), found.extent),
        (OBJECTS_MAX, Extent::Cut)
    );
    let long = "x".repeat(URL_BYTES_MAX);
    let body = format!("<img src={long}><style>a {{ b: url({long}) }}</style><img src=a.png>");
    check_page(&body, &["/news/a.png"]);
    let data = "A".repeat(200_000);
    check_page(
        &format!("<img srcset='data:,{data}' src=a.png><p style='b: url(data:,{data})'>"),
        &["/news/a.png"],
    );
}
