//! Elements of a drawing, in points from its upper left corner, and their text as SVG.

use super::font;
use crate::signs::{self, Sign};
use std::fmt::Write as _;

/// Red, green and blue.
pub(super) type Rgb = (u8, u8, u8);
/// A place: to the right and down, pt.
pub(super) type Place = (f64, f64);

/// A drawing.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<Item>,
}

/// An element. Later ones lie on earlier ones.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Line(Vec<Place>, Stroke),
    Area(Vec<Place>, Rgb),
    /// Its centre is the value.
    Marker(Place, f64, Sign),
    Text(Text),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) colour: Rgb,
    pub(super) width: f64,
    /// Points on and off.
    pub(super) dash: Option<(f64, f64)>,
}

#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) text: String,
    /// Beginning, middle or end of its base line.
    pub(super) at: Place,
    pub(super) anchor: Anchor,
    pub(super) size: f64,
    /// Read from below.
    pub(super) turned: bool,
    pub(super) colour: Rgb,
    /// With a white edge, over lines.
    pub(super) edged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    /// Part of a text that lies before its place.
    pub(super) fn part(self) -> f64 {
        match self {
            Self::Start => 0.0,
            Self::Middle => 0.5,
            Self::End => 1.0,
        }
    }
}

impl Canvas {
    pub(super) fn line(&mut self, points: Vec<Place>, stroke: Stroke) {
        if points.len() > 1 {
            self.items.push(Item::Line(points, stroke));
        }
    }

    /// The drawing as SVG, with `title` for readers who do not see it.
    pub(super) fn svg(&self, title: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let [width_mm, height_mm] = [self.width, self.height].map(|pt| number(pt / PT_PER_MM));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width_mm}mm\" height=\"{height_mm}mm\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"{}\" fill=\"none\" stroke-linejoin=\"round\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
            font::FAMILY,
            escaped(title)
        );
        for item in &self.items {
            // Writing to a String cannot fail.
            let _ = match item {
                Item::Line(points, stroke) => write_line(&mut svg, points, *stroke),
                Item::Area(corners, colour) => {
                    writeln!(
                        svg,
                        "<path d=\"{}Z\" fill=\"{}\"/>",
                        path(corners),
                        hex(*colour)
                    )
                }
                Item::Marker((x, y), radius, sign) => writeln!(
                    svg,
                    "<path transform=\"translate({} {}) scale({})\" d=\"{}\" fill=\"{}\"/>",
                    number(*x),
                    number(*y),
                    number(*radius),
                    signs::path(sign.marker),
                    hex(sign.colour)
                ),
                Item::Text(text) => write_text(&mut svg, text),
            };
        }
        svg + "</svg>\n"
    }
}

/// Width of the line of the `index`th of `all` series: earlier ones are wider, so that none hides another that runs along
/// it.
pub(super) fn line_width(index: usize, all: usize) -> f64 {
    THIN + 0.3 * super::count(all.saturating_sub(index + 1)).min(4.0)
}

pub(super) fn label(text: String, at: Place, anchor: Anchor, size: f64) -> Text {
    Text {
        text,
        at,
        anchor,
        size,
        turned: false,
        colour: INK,
        edged: false,
    }
}

fn write_line(svg: &mut String, points: &[Place], stroke: Stroke) -> std::fmt::Result {
    let (colour, width) = (hex(stroke.colour), number(stroke.width));
    let dash = stroke.dash.map_or_else(String::new, |(on, off)| {
        format!(" stroke-dasharray=\"{} {}\"", number(on), number(off))
    });
    let points = path(points);
    writeln!(
        svg,
        "<path d=\"{points}\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}/>"
    )
}

fn write_text(svg: &mut String, text: &Text) -> std::fmt::Result {
    let (x, y) = (number(text.at.0), number(text.at.1));
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let turned = if text.turned {
        format!(" transform=\"rotate(-90 {x} {y})\"")
    } else {
        String::new()
    };
    let edge = if text.edged {
        " stroke=\"#fff\" stroke-width=\"1.5\" paint-order=\"stroke\""
    } else {
        ""
    };
    // As wide in any font: nothing is cut off or overlaps where this one is missing.
    let length = number(font::width(&text.text, text.size));
    writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\" font-size=\"{}\" fill=\"{}\"{anchor}{turned}{edge}>{}</text>",
        number(text.size),
        hex(text.colour),
        escaped(&text.text)
    )
}

fn path(points: &[Place]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        path.push(if index == 0 { 'M' } else { 'L' });
        let _ = write!(path, "{} {}", number(*x), number(*y));
    }
    path
}

pub(super) fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Hundredths: a point is a third of a millimetre.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

pub(super) const PT_PER_MM: f64 = 72.0 / 25.4;
/// Size of names, and of labels along axes and at limits, pt.
pub(super) const SIZE: f64 = 8.0;
pub(super) const SMALL: f64 = 7.0;
/// From one line of text to the next.
pub(super) const LINE: f64 = 9.5;
/// Width of lines of data, and of those of axes.
pub(super) const THIN: f64 = 0.75;
pub(super) const HAIR: f64 = 0.5;
/// Radius of signs.
pub(super) const RADIUS: f64 = 2.1;
pub(super) const GRID: Rgb = (0xE2, 0xE2, 0xE2);
pub(super) const FRAME: Rgb = (0x66, 0x66, 0x66);
pub(super) const INK: Rgb = (0x1A, 0x1A, 0x1A);
