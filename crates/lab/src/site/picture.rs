//! Small pictures of the sea, as PNG files of about a wanted size.
//!
//! The demo needs images that a browser really shows, and whose sizes follow the trace. Each is
//! drawn from a seed and encoded here: a PNG is little more than a deflate stream with checksums.

use std::io::Write;

use flate2::Compression;
use flate2::Crc;
use flate2::write::ZlibEncoder;
use levee_vocab::Random;

/// One drawn and encoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The PNG file.
    pub png: Vec<u8>,
}

impl Picture {
    /// Draws the picture of `seed` as large as fits into `bytes_max`, which should be over 200.
    pub fn draw(seed: u64, bytes_max: usize) -> Self {
        let scene = Scene::from_seed(seed);
        let (mut low, mut high) = (4, 256);
        let mut best = encode(&scene, low);
        // The file grows with the width, so halving finds the widest that fits.
        while low + 1 < high {
            let width = u32::midpoint(low, high);
            let picture = encode(&scene, width);
            if picture.png.len() <= bytes_max {
                (low, best) = (width, picture);
            } else {
                high = width;
            }
        }
        best
    }
}

/// What is to be seen: evening sky, sun, sea.
struct Scene {
    sky: [u8; 3],
    sea: [u8; 3],
    sun: (f64, f64),
    wave: f64,
    grain: Random,
}

impl Scene {
    fn from_seed(seed: u64) -> Self {
        let mut random = Random::from_seed(seed);
        let mut shade = |from: u64| random.within(from..from + 70) as u8;
        Self {
            sky: [shade(150), shade(110), shade(120)],
            sea: [shade(10), shade(50), shade(90)],
            sun: (
                0.2 + 0.6 * random.fraction(),
                0.15 + 0.25 * random.fraction(),
            ),
            wave: 4.0 + 10.0 * random.fraction(),
            grain: random.fork(),
        }
    }

    /// The colour at `x` and `y`, each from 0 to 1.
    fn colour(&self, x: f64, y: f64) -> [f64; 3] {
        let horizon = 0.62 + 0.01 * (x * 9.0).sin();
        let (dx, dy) = ((x - self.sun.0) * 1.5, y - self.sun.1);
        let glow = (1.0 - 3.5 * dx.hypot(dy)).max(0.0);
        let (base, light) = if y < horizon {
            let disc = if dx.hypot(dy) < 0.07 { 1.0 } else { glow * 0.6 };
            (self.sky, disc + 0.35 * y)
        } else {
            let depth = (y - horizon) / (1.0 - horizon);
            let ripple = (self.wave * 40.0 * depth.sqrt() + (x * 12.0).sin()).sin();
            let path = (1.0 - 6.0 * dx.abs() / (0.6 + depth)).max(0.0);
            (self.sea, 0.08 * ripple + 0.4 * path * (0.5 + 0.5 * ripple))
        };
        base.map(|part| f64::from(part) + light * (250.0 - f64::from(part)))
    }
}

/// The scene in `width` pixels, three wide to two high.
fn encode(scene: &Scene, width: u32) -> Picture {
    let height = (width * 2 / 3).max(2);
    let mut grain = scene.grain.clone();
    let mut rows = Vec::with_capacity(((width * 3 + 1) * height) as usize);
    for y in 0..height {
        // Filter type 0: the row as it is.
        rows.push(0);
        for x in 0..width {
            let at = |value: u32, whole: u32| (f64::from(value) + 0.5) / f64::from(whole);
            let colour = scene.colour(at(x, width), at(y, height));
            // A little grain, as a camera has: without it the file would be too small to matter.
            let noise = grain.fraction() * 6.0 - 3.0;
            rows.extend(colour.map(|part| (part + noise).clamp(0.0, 255.0) as u8));
        }
    }
    Picture {
        width,
        height,
        png: png(width, height, &rows),
    }
}

/// A PNG file of 8-bit RGB rows, each with its filter byte.
fn png(width: u32, height: u32, rows: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(13);
    head.extend(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    // 8 bits a channel, RGB, deflate, the standard filters, not interlaced.
    head.extend([8, 2, 0, 0, 0]);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed
        .write_all(rows)
        .expect("writing to memory cannot fail");
    let packed = packed.finish().expect("writing to memory cannot fail");
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &head);
    chunk(&mut file, b"IDAT", &packed);
    chunk(&mut file, b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).expect("a demo picture is smaller than 4 GB");
    let mut checksum = Crc::new();
    checksum.update(name);
    checksum.update(content);
    file.extend(length.to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(checksum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_comes_close_to_the_wanted_size_from_below() {
        for wanted in [300, 1_200, 5_800, 18_000] {
            let picture = Picture::draw(7, wanted);
            let bytes = picture.png.len();
            assert!(bytes <= wanted, "{bytes} of {wanted}");
            assert!(bytes * 10 >= wanted * 6, "{bytes} of {wanted}");
        }
    }

    #[test]
    fn the_file_has_the_parts_of_a_png() {
        let picture = Picture::draw(1, 2_000);
        assert!(picture.png.starts_with(b"\x89PNG\r\n\x1a\n"));
        assert_eq!(&picture.png[12..16], b"IHDR");
        assert_eq!(picture.png[16..20], picture.width.to_be_bytes());
        // The checksum that closes every PNG.
        assert!(picture.png.ends_with(&[0xae, 0x42, 0x60, 0x82]));
    }
}
