//! A drawing as a PDF of one page, with the glyphs that it uses embedded.

use super::canvas::{Canvas, Item, Place, Rgb, Stroke, Text};
use super::font::{self, Glyphs};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, TextRenderingMode, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::io::Write as _;

/// The drawing as PDF.
///
/// # Errors
/// Where the font cannot be embedded.
pub(super) fn pdf(canvas: &Canvas) -> Result<Vec<u8>, String> {
    let mut glyphs = Glyphs::new();
    let content = compressed(&content(canvas, &mut glyphs))?;
    let mut pdf = Pdf::new();
    pdf.catalog(CATALOG).pages(PAGES);
    pdf.pages(PAGES).kids([PAGE]).count(1);
    let mut page = pdf.page(PAGE);
    let unit = unit(canvas);
    let (width, height) = (short(canvas.width / unit), short(canvas.height / unit));
    page.media_box(Rect::new(0.0, 0.0, width, height));
    if unit > 1.0 {
        page.user_unit(short(unit));
    }
    page.parent(PAGES).contents(CONTENT);
    page.resources().fonts().pair(FONT, FONT_DICTIONARY);
    page.finish();
    let mut stream = pdf.stream(CONTENT, &content);
    stream.filter(Filter::FlateDecode);
    stream.finish();
    embed(&mut pdf, &glyphs)?;
    Ok(pdf.finish())
}

/// Points of a unit of the page: a page has at most 14,400 units (ISO 32000-1, annex C).
pub(super) fn unit(canvas: &Canvas) -> f64 {
    (canvas.width.max(canvas.height) / 14_400.0).max(1.0)
}

fn content(canvas: &Canvas, glyphs: &mut Glyphs) -> Vec<u8> {
    let mut content = Content::new();
    let scale = short(1.0 / unit(canvas));
    if scale < 1.0 {
        content.transform([scale, 0.0, 0.0, scale, 0.0, 0.0]);
    }
    // Upwards, as the file has it.
    let up = |(x, y): Place| (short(x), short(canvas.height - y));
    for item in &canvas.items {
        match item {
            Item::Line(points, stroke) => {
                set_stroke(&mut content, *stroke);
                outline(&mut content, points.iter().map(|at| up(*at)));
                content.stroke();
            }
            Item::Area(corners, colour) => {
                set_fill(&mut content, *colour);
                outline(&mut content, corners.iter().map(|at| up(*at)));
                content.fill_nonzero();
            }
            Item::Marker((x, y), radius, sign) => {
                set_fill(&mut content, sign.colour);
                let corners = sign.marker.iter();
                let corners = corners.map(|(dx, dy)| up((x + dx * radius, y + dy * radius)));
                outline(&mut content, corners);
                content.fill_nonzero();
            }
            Item::Text(text) => write_text(&mut content, text, up, glyphs),
        }
    }
    content.finish().into_vec()
}

fn outline(content: &mut Content, points: impl Iterator<Item = (f32, f32)>) {
    for (index, (x, y)) in points.enumerate() {
        match index {
            0 => content.move_to(x, y),
            _ => content.line_to(x, y),
        };
    }
}

fn set_fill(content: &mut Content, colour: Rgb) {
    let [r, g, b] = parts(colour);
    content.set_fill_rgb(r, g, b);
}

fn set_stroke(content: &mut Content, stroke: Stroke) {
    let [r, g, b] = parts(stroke.colour);
    let dash = stroke.dash.map(|(on, off)| [short(on), short(off)]);
    content
        .set_stroke_rgb(r, g, b)
        .set_line_width(short(stroke.width))
        .set_dash_pattern(dash.into_iter().flatten(), 0.0);
}

fn write_text(
    content: &mut Content,
    text: &Text,
    up: impl Fn(Place) -> (f32, f32),
    glyphs: &mut Glyphs,
) {
    let before = font::width(&text.text, text.size) * text.anchor.part();
    let (x, y) = text.at;
    let (at, [a, b, c, d]) = if text.turned {
        ((x, y + before), [0.0, 1.0, -1.0, 0.0])
    } else {
        ((x - before, y), [1.0, 0.0, 0.0, 1.0])
    };
    let (x, y) = up(at);
    let encoded = glyphs.encode(&text.text);
    content.begin_text().set_font(FONT, short(text.size));
    content.set_text_matrix([a, b, c, d, x, y]);
    if text.edged {
        content.set_stroke_rgb(1.0, 1.0, 1.0).set_line_width(1.5);
        content.set_dash_pattern([], 0.0);
        content.set_text_rendering_mode(TextRenderingMode::Stroke);
        content.show(Str(&encoded));
        content.set_text_rendering_mode(TextRenderingMode::Fill);
        content.set_text_matrix([a, b, c, d, x, y]);
    }
    set_fill(content, text.colour);
    content.show(Str(&encoded)).end_text();
}

/// The font as a CID font of the glyphs of this file, whose texts can be searched and copied.
fn embed(pdf: &mut Pdf, glyphs: &Glyphs) -> Result<(), String> {
    let subset = glyphs.subset()?;
    let name = format!("{}+LiberationSans", tag(glyphs));
    let name = Name(name.as_bytes());
    pdf.type0_font(FONT_DICTIONARY)
        .base_font(name)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(CID_FONT)
        .to_unicode(TO_UNICODE);
    let mut font = pdf.cid_font(CID_FONT);
    font.subtype(CidFontType::Type2)
        .base_font(name)
        .system_info(IDENTITY)
        .font_descriptor(DESCRIPTOR)
        .default_width(0.0)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = font.widths();
    let mut map = UnicodeCmap::new(Name(b"Custom"), IDENTITY);
    for (number, character, width) in glyphs.used() {
        widths.consecutive(number, [short(width)]);
        map.pair(number, character);
    }
    widths.finish();
    font.finish();
    // Of the font's tables head, hhea and OS/2.
    pdf.font_descriptor(DESCRIPTOR)
        .name(name)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(-544.0, -303.0, 1302.0, 980.0))
        .italic_angle(0.0)
        .ascent(905.0)
        .descent(-212.0)
        .cap_height(688.0)
        .stem_v(84.0)
        .font_file2(FONT_FILE);
    let file = compressed(&subset)?;
    let mut stream = pdf.stream(FONT_FILE, &file);
    stream.filter(Filter::FlateDecode);
    stream.pair(Name(b"Length1"), i32::try_from(subset.len()).unwrap_or(0));
    stream.finish();
    pdf.cmap(TO_UNICODE, map.finish().as_slice());
    Ok(())
}

/// Six letters that two subsets have in common only by chance.
fn tag(glyphs: &Glyphs) -> String {
    let characters = glyphs.used().map(|(_, character, _)| u32::from(character));
    let hash = characters.fold(0x811C_9DC5_u32, |hash, character| {
        (hash ^ character).wrapping_mul(0x0100_0193)
    });
    let letter = |place: u32| char::from(b'A' + (hash / 26u32.pow(place) % 26).to_le_bytes()[0]);
    (0..6).map(letter).collect()
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(bytes);
    let finished = written.and_then(|()| encoder.finish());
    finished.map_err(|error| error.to_string())
}

fn parts((red, green, blue): Rgb) -> [f32; 3] {
    [red, green, blue].map(|part| f32::from(part) / 255.0)
}

/// Thousandths of a point: more would only be longer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "places on a page are small"
)]
fn short(value: f64) -> f32 {
    ((value * 1e3).round() / 1e3) as f32
}

const FONT: Name<'static> = Name(b"F");
const IDENTITY: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};
const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
const PAGE: Ref = Ref::new(3);
const CONTENT: Ref = Ref::new(4);
const FONT_DICTIONARY: Ref = Ref::new(5);
const CID_FONT: Ref = Ref::new(6);
const DESCRIPTOR: Ref = Ref::new(7);
const FONT_FILE: Ref = Ref::new(8);
const TO_UNICODE: Ref = Ref::new(9);
