//! What a visitor finds in a page: its images, and the preview image of a post.

/// The `src` of every `<img>`, in the order of the page.
pub fn images(html: &str) -> Vec<String> {
    tags(html, "img")
        .filter_map(|tag| attribute(tag, "src"))
        .map(str::to_owned)
        .collect()
}

/// The address in `<meta property="og:image">`.
pub fn preview_image(html: &str) -> Option<String> {
    tags(html, "meta")
        .find(|tag| attribute(tag, "property") == Some("og:image"))
        .and_then(|tag| attribute(tag, "content"))
        .map(str::to_owned)
}

/// The inside of every tag of this name, from after the name to before the bracket.
fn tags<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.split('<').skip(1).filter_map(move |piece| {
        let (tag, _) = piece.split_once('>')?;
        let rest = tag.strip_prefix(name)?;
        rest.starts_with(char::is_whitespace).then_some(rest)
    })
}

/// The value of an attribute in double quotes, as this crate's own pages write them.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let (before, after) = rest.split_once("=\"")?;
        let (value, later) = after.split_once('"')?;
        if before.trim() == name {
            return Some(value);
        }
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_the_preview_are_found() {
        let html = "<head><meta property=\"og:title\" content=\"x\">\
            <meta property=\"og:image\" content=\"http://a.localhost/p.png\"></head>\
            <p>a < b</p><img alt=\"\" src=\"../a.png\"><image src=\"no.png\"><img src=\"b.png\" >";
        assert_eq!(images(html), ["../a.png", "b.png"]);
        assert_eq!(
            preview_image(html).as_deref(),
            Some("http://a.localhost/p.png")
        );
        assert_eq!(preview_image("<p>none"), None);
    }
}
