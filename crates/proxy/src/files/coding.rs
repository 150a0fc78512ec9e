//! Content codings: which ones a visitor takes (RFC 9110 section 12.5.3), and which files gain by
//! them.

use std::fmt;

/// A coding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

/// The codings that a visitor takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted(u8);

impl Coding {
    /// The one that usually makes texts smallest first.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As it stands in Content-Encoding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What ends the name of a file that was compressed beforehand.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Brotli => 1,
            Self::Zstd => 2,
            Self::Gzip => 4,
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Accepted {
    /// How many different sets of codings there are.
    pub const SETS: usize = 1 << Coding::ALL.len();

    /// The number of this set, below [`Accepted::SETS`].
    pub fn index(self) -> usize {
        usize::from(self.0) % Self::SETS
    }

    /// An Accept-Encoding field that says the same as the set with this number; empty for none.
    pub fn field_of(index: usize) -> String {
        let taken = |coding: &Coding| index & usize::from(coding.bit()) != 0;
        let names: Vec<_> = Coding::ALL
            .into_iter()
            .filter(taken)
            .map(Coding::name)
            .collect();
        names.join(", ")
    }

    /// What an Accept-Encoding field says; without one a visitor gets the file as it is, although
    /// RFC 9110 would let us send anything. Weights only tell what is refused: among the codings
    /// that a visitor takes, the smallest body is best for both sides of a thin link.
    pub fn of(field: Option<&[u8]>) -> Self {
        let mut named = Self::default();
        let mut refused = Self::default();
        let mut any = None;
        for element in field.unwrap_or_default().split(|&byte| byte == b',') {
            let (name, taken) = element_of(element);
            if name == b"*" {
                any = Some(taken);
            }
            let Some(coding) = coding_of(name) else {
                continue;
            };
            match taken {
                Taken::Yes => named.0 |= coding.bit(),
                Taken::No => refused.0 |= coding.bit(),
            }
        }
        let others = match any {
            Some(Taken::Yes) => Coding::ALL
                .iter()
                .fold(0, |bits, coding| bits | coding.bit()),
            Some(Taken::No) | None => 0,
        };
        Self((named.0 | others) & !refused.0)
    }

    /// These and one more.
    pub const fn and(self, coding: Coding) -> Self {
        Self(self.0 | coding.bit())
    }

    /// Whether `coding` is among them.
    pub const fn takes(self, coding: Coding) -> bool {
        self.0 & coding.bit() != 0
    }

    /// The one that is worth making, where there is none yet.
    pub fn best(self) -> Option<Coding> {
        Coding::ALL.into_iter().find(|coding| self.takes(*coding))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    No,
}

/// Name and weight of one element. A weight that cannot be read counts as 1, as without one.
fn element_of(element: &[u8]) -> (&[u8], Taken) {
    let mut parts = element.split(|&byte| byte == b';');
    let name = parts.next().unwrap_or_default().trim_ascii();
    let weight = parts.find_map(|part| part.trim_ascii().strip_prefix(b"q="));
    let is_zero = |weight: &[u8]| {
        weight.first() == Some(&b'0') && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
    };
    match weight {
        Some(weight) if is_zero(weight) => (name, Taken::No),
        Some(_) | None => (name, Taken::Yes),
    }
}

fn coding_of(name: &[u8]) -> Option<Coding> {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let found = Coding::ALL.into_iter().find(|coding| is(coding.name()));
    //= RFC 9110 section 8.4.1.3: "a recipient SHOULD consider "x-gzip" to be equivalent to "gzip""
    found.or_else(|| is("x-gzip").then_some(Coding::Gzip))
}

/// Whether files of this type become much smaller by a coding: texts, and those formats that do
/// not compress by themselves.
pub(crate) fn gains(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("+json")
        || matches!(
            essence,
            "application/javascript"
                | "application/json"
                | "application/xml"
                | "application/wasm"
                | "application/rtf"
                | "application/vnd.ms-fontobject"
                | "font/ttf"
                | "font/otf"
                | "image/bmp"
                | "image/x-icon"
                | "image/vnd.microsoft.icon"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(field: &str, expected: &str) {
        let accepted = Accepted::of(Some(field.as_bytes()));
        let taken: Vec<&str> = Coding::ALL
            .into_iter()
            .filter(|coding| accepted.takes(*coding))
            .map(Coding::name)
            .collect();
        assert_eq!(taken.join(" "), expected, "{field:?}");
    }

    #[test]
    fn a_visitor_gets_what_it_takes_and_nothing_else() {
        check("", "");
        check("gzip", "gzip");
        check("gzip, deflate, br, zstd", "br zstd gzip");
        check("GZIP;q=0.1,  BR ; q=1.0", "br gzip");
        check("gzip;q=0, br;q=0.000, zstd", "zstd");
        check("*", "br zstd gzip");
        check("*;q=0, gzip", "gzip");
        check("*, br;q=0", "zstd gzip");
        check("identity", "");
        check("x-gzip", "gzip");
        check("gzip;q=oops;;,,,;q=0", "gzip");
        assert_eq!(Accepted::of(None), Accepted::default());
    }

    #[test]
    fn texts_gain_and_pictures_do_not() {
        for gaining in [
            "text/html; charset=utf-8",
            "image/svg+xml",
            "application/wasm",
        ] {
            assert!(gains(gaining), "{gaining}");
        }
        for full in ["image/png", "video/mp4", "application/zip", "font/woff2"] {
            assert!(!gains(full), "{full}");
        }
    }
}
