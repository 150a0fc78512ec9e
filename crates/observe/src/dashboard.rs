//! The live dashboard and the files that it loads, all built into the binary.
//!
//! The page is static; its script reads `/history.json` once and `/status.json` each second, and
//! puts texts from outside into the page as text nodes only, never as markup. Charts are drawn by
//! uPlot 1.6.32 (MIT, Leon Sorokin), as released on the npm registry; its licence is beside it.

use crate::page::STYLE_CSS;

/// The page itself.
pub const DASHBOARD_HTML: &str = include_str!("../assets/dashboard.html");

/// A file that pages load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its content type.
    pub content_type: &'static str,
    /// Its bytes.
    pub body: &'static str,
}

/// The file at `path`, for example `/assets/style.css`.
pub fn asset(path: &str) -> Option<Asset> {
    const CSS: &str = "text/css; charset=utf-8";
    const JS: &str = "text/javascript; charset=utf-8";
    let (content_type, body) = match path {
        "/assets/style.css" => (CSS, STYLE_CSS),
        "/assets/icon.svg" => ("image/svg+xml", include_str!("../assets/icon.svg")),
        "/assets/dashboard.js" => (JS, include_str!("../assets/dashboard.js")),
        "/assets/stage.js" => (JS, include_str!("../assets/stage.js")),
        "/assets/uplot.js" => (JS, include_str!("../assets/uplot-1.6.32.min.js")),
        "/assets/uplot.css" => (CSS, include_str!("../assets/uplot-1.6.32.min.css")),
        "/assets/uplot-LICENSE" => (
            "text/plain; charset=utf-8",
            include_str!("../assets/uplot-LICENSE"),
        ),
        _ => return None,
    };
    Some(Asset { content_type, body })
}
