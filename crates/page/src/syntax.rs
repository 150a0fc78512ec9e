//! What a response is written in, if it is something that names objects.

/// What a response is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A page.
    Page(Markup),
    /// A style sheet.
    Css,
}

/// By which rules a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// HTML: what stands in `script`, `style` and their like is no markup.
    Html,
    /// XHTML: every element is markup.
    Xml,
}

impl Syntax {
    /// That of a content type. None for all that names no objects.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        match () {
            () if is("text/html") => Some(Self::Page(Markup::Html)),
            () if is("application/xhtml+xml") => Some(Self::Page(Markup::Xml)),
            () if is("text/css") => Some(Self::Css),
            () => None,
        }
    }
}
