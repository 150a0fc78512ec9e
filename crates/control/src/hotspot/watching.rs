//! Which resources are watched at all (H6): by path, and by type.
//!
//! A type is told by the extension of the path, because that is all that is known of a resource
//! before somebody has seen it. A path without one is taken for a page.

/// What is watched. Nothing given means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watching {
    /// Paths: a beginning such as `/blog/`, or a pattern in which `*` stands for anything.
    pub paths: Vec<String>,
    /// Extensions in lower case and without a dot; `html` for a path without one.
    pub extensions: Vec<String>,
}

impl Watching {
    /// Whether the resource at `url` (host and path) is watched.
    pub fn covers(&self, url: &str) -> bool {
        let path = url.find('/').map_or("", |at| &url[at..]);
        let by_path = self.paths.is_empty() || self.paths.iter().any(|one| fits(one, path));
        by_path && (self.extensions.is_empty() || self.has_extension(path))
    }

    fn has_extension(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => extension,
            Some(_) | None => "html",
        };
        let mut wanted = self.extensions.iter();
        wanted.any(|one| one.eq_ignore_ascii_case(extension))
    }
}

/// Whether `path` begins with `pattern`, or is like it where that has a `*`.
fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return true;
    };
    // The earliest place for each part leaves the most for those that follow.
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_covers_what_is_below_and_a_star_stands_for_anything() {
        for (pattern, path, expected) in [
            ("/blog/", "/blog/one", true),
            ("/blog/", "/blogs", false),
            ("/*.jpg", "/a/b.jpg", true),
            ("/*.jpg", "/a/b.jpg.txt", false),
            ("/a*b*c", "/axxbyyc", true),
            ("/a*b*c", "/axxcyyb", false),
            ("*", "/", true),
            ("/a*a", "/a", false),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_path_without_an_extension_is_a_page() {
        let watching = Watching {
            paths: Vec::new(),
            extensions: vec!["html".into(), "jpg".into()],
        };
        for (url, expected) in [
            ("a.example/", true),
            ("a.example/post/1", true),
            ("a.example/x.JPG", true),
            ("a.example/x.tar.gz", false),
            ("a.example/.hidden", true),
            ("a.example", true),
        ] {
            assert_eq!(watching.covers(url), expected, "{url}");
        }
        assert!(Watching::default().covers("a.example/x.iso"));
    }
}
