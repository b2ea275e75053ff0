//! The font of figures: widths of texts, and the part of the font that a file embeds.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use subsetter::GlyphRemapper;
use ttf_parser::{Face, GlyphId};

/// Name for SVG, with fonts of the same widths for readers who do not have it.
pub(super) const FAMILY: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(FONT, 0).ok());

/// Width of `text` in `size`, in the unit of `size`.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars()
        .map(|c| f64::from(advance(glyph(c))))
        .sum::<f64>()
        * size
        / UNITS
}

/// `text`, cut to `most` with an ellipsis where it is wider.
pub(super) fn fitted(text: &str, size: f64, most: f64) -> String {
    let mut text = printable(text);
    if width(&text, size) > most {
        while !text.is_empty() && width(&text, size) + width("…", size) > most {
            text.pop();
        }
        text.push('…');
    }
    text
}

/// `text` in one line, or at the space nearest to its middle in two where it is wider than `most`; each is cut to that.
pub(super) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let text = printable(text);
    let halves = text.match_indices(' ').map(|(at, _)| text.split_at(at));
    let widest = |(one, other): &(&str, &str)| width(one, size).max(width(other.trim(), size));
    let halves = halves.min_by(|a, b| widest(a).total_cmp(&widest(b)));
    match halves.filter(|_| width(&text, size) > most) {
        Some((one, other)) => vec![fitted(one, size, most), fitted(other.trim(), size, most)],
        None => vec![fitted(&text, size, most)],
    }
}

/// `text` without the superscripts that the font does not have: "3·10⁻⁶" is "3e−6".
fn printable(text: &str) -> String {
    let powers = text.replace("·10⁻", "e−");
    if powers == text {
        return powers;
    }
    let digit = |c| {
        "⁰¹²³⁴⁵⁶⁷⁸⁹"
            .chars()
            .position(|superscript| superscript == c)
    };
    let digit = |c| digit(c).and_then(|d| char::from_digit(u32::try_from(d).ok()?, 10));
    powers.chars().map(|c| digit(c).unwrap_or(c)).collect()
}

fn glyph(c: char) -> GlyphId {
    FACE.as_ref()
        .and_then(|face| face.glyph_index(c))
        .unwrap_or_default()
}

fn advance(glyph: GlyphId) -> u16 {
    FACE.as_ref()
        .and_then(|face| face.glyph_hor_advance(glyph))
        .unwrap_or_default()
}

/// Glyphs of one file.
#[derive(Debug)]
pub(super) struct Glyphs {
    remapper: GlyphRemapper,
    /// By their number in the file: character and width.
    used: BTreeMap<u16, (char, u16)>,
}

impl Glyphs {
    pub(super) fn new() -> Self {
        Self {
            remapper: GlyphRemapper::new(),
            used: BTreeMap::new(),
        }
    }

    /// `text` in two bytes a glyph.
    pub(super) fn encode(&mut self, text: &str) -> Vec<u8> {
        let bytes = text.chars().flat_map(|c| {
            let glyph = glyph(c);
            let number = self.remapper.remap(glyph.0);
            self.used.insert(number, (c, advance(glyph)));
            number.to_be_bytes()
        });
        bytes.collect()
    }

    /// Number in the file, character and width in thousandths of the size, by number.
    pub(super) fn used(&self) -> impl Iterator<Item = (u16, char, f64)> {
        let used = self.used.iter();
        used.map(|(number, (c, width))| (*number, *c, f64::from(*width) * 1e3 / UNITS))
    }

    /// The font with these glyphs only.
    pub(super) fn subset(&self) -> Result<Vec<u8>, String> {
        subsetter::subset(FONT, 0, &self.remapper).map_err(|error| error.to_string())
    }
}

const FONT: &[u8] = include_bytes!("../../assets/font/LiberationSans-Regular.ttf");
/// Units of the font in its size.
const UNITS: f64 = 2048.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_arial() {
        // Adobe's metrics of Helvetica: 556 a digit, 278 a space, in thousandths.
        assert!((width("0 0", 1000.0) - 1390.0).abs() < 1.0);
        assert_eq!(
            FACE.as_ref().map(|face| f64::from(face.units_per_em())),
            Some(UNITS)
        );
    }

    #[test]
    fn every_character_of_labels_has_a_glyph() {
        for c in "µ−≤≥∞…·\u{202f}“”–%".chars() {
            assert_ne!(glyph(c), GlyphId(0), "{c}");
        }
        assert_eq!(fitted("loss ≤ 3·10⁻⁶", 7.0, 99.0), "loss ≤ 3e−6");
        assert!(width(&fitted("a long name of a policy", 7.0, 40.0), 7.0) <= 40.0);
    }

    #[test]
    fn a_name_wider_than_its_axis_takes_two_lines_of_about_one_length() {
        let name = "99th percentile of completion time of web (s)";
        let lines = ["99th percentile of", "completion time of web (s)"];
        assert_eq!(wrapped(name, 8.0, 147.0), lines);
        assert_eq!(wrapped(name, 8.0, 200.0), [name]);
        assert_eq!(wrapped("throughput", 8.0, 20.0), ["thr…"]);
    }
}
