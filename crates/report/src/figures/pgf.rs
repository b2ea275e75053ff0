//! A drawing as commands of PGF, for `\input` into a LaTeX document: its texts are set in the document's fonts.
//!
//! Commands: "TikZ and PGF, Manual for version 3.1.10", part IX, "The Basic Layer".

use super::canvas::{Anchor, Canvas, Item, Place, Rgb, Stroke, Text, hex, number};
use super::pdf::unit;
use std::collections::BTreeSet;

/// The drawing as a `pgfpicture`, with `title` in a comment.
pub(super) fn pgf(canvas: &Canvas, title: &str) -> String {
    let mut picture = Picture {
        height: canvas.height,
        // TeX has no length of 2^14 pt or more.
        scale: 1.0 / unit(canvas),
        text: format!(
            "% {}. Needs \\usepackage{{pgf}} in the preamble.\n\\begin{{pgfpicture}}\n",
            title.replace(char::is_control, " ")
        ),
    };
    for colour in colours(canvas) {
        let code = code(colour);
        picture.add(&format!(
            "\\definecolor{{slicewise{code}}}{{HTML}}{{{code}}}"
        ));
    }
    let (left, top) = (0.0, 0.0);
    let (right, bottom) = (canvas.width, canvas.height);
    picture.path([(left, top), (right, top), (right, bottom), (left, bottom)].into_iter());
    picture.add("\\pgfusepath{use as bounding box}");
    picture.add("\\pgfsetroundjoin");
    for item in &canvas.items {
        match item {
            Item::Line(points, stroke) => picture.line(points, *stroke),
            Item::Area(corners, colour) => picture.fill(corners.iter().copied(), *colour),
            Item::Marker((x, y), radius, sign) => {
                let corners = sign.marker.iter();
                let corners = corners.map(|(dx, dy)| (x + dx * radius, y + dy * radius));
                picture.fill(corners, sign.colour);
            }
            Item::Text(text) => picture.label(text),
        }
    }
    picture.text + "\\end{pgfpicture}%\n"
}

/// Commands so far.
struct Picture {
    /// Height of the drawing, whose origin is above; that of PGF is below.
    height: f64,
    scale: f64,
    text: String,
}

impl Picture {
    fn add(&mut self, command: &str) {
        self.text.push_str(command);
        self.text.push_str("%\n");
    }

    /// Length in big points, 1/72 inch.
    fn length(&self, points: f64) -> String {
        format!("{}bp", number(points * self.scale))
    }

    fn path(&mut self, points: impl Iterator<Item = Place>) {
        for (index, (x, y)) in points.enumerate() {
            let command = if index == 0 { "moveto" } else { "lineto" };
            let (x, y) = (self.length(x), self.length(self.height - y));
            self.add(&format!("\\pgfpath{command}{{\\pgfqpoint{{{x}}}{{{y}}}}}"));
        }
    }

    fn line(&mut self, points: &[Place], stroke: Stroke) {
        let (colour, width) = (code(stroke.colour), self.length(stroke.width));
        let dash = stroke.dash.map_or_else(String::new, |(on, off)| {
            format!("{{{}}}{{{}}}", self.length(on), self.length(off))
        });
        self.add(&format!(
            "\\pgfsetlinewidth{{{width}}}\\pgfsetdash{{{dash}}}{{0bp}}\\pgfsetstrokecolor{{slicewise{colour}}}"
        ));
        self.path(points.iter().copied());
        self.add("\\pgfusepath{stroke}");
    }

    fn fill(&mut self, corners: impl Iterator<Item = Place>, colour: Rgb) {
        self.add(&format!("\\pgfsetfillcolor{{slicewise{}}}", code(colour)));
        self.path(corners);
        self.add("\\pgfpathclose\\pgfusepath{fill}");
    }

    fn label(&mut self, text: &Text) {
        let (x, y) = text.at;
        let (x, y) = (self.length(x), self.length(self.height - y));
        let anchor = match text.anchor {
            Anchor::Start => ",left",
            Anchor::Middle => "",
            Anchor::End => ",right",
        };
        let turned = if text.turned { ",rotate=90" } else { "" };
        // An outline of letters would need commands of one TeX engine.
        let [edge, end] = if text.edged {
            ["\\setlength{\\fboxsep}{.75bp}\\colorbox{white}{", "}"]
        } else {
            ["", ""]
        };
        let size = text.size * self.scale;
        let (size, line) = (number(size), number(1.2 * size));
        let (colour, text) = (code(text.colour), escaped(&text.text));
        self.add(&format!(
            "\\pgftext[x={x},y={y},base{anchor}{turned}]{{\\fontsize{{{size}}}{{{line}}}\\selectfont\\color{{slicewise{colour}}}{edge}{text}{end}}}"
        ));
    }
}

fn colours(canvas: &Canvas) -> BTreeSet<Rgb> {
    let colour = |item: &Item| match item {
        Item::Line(_, stroke) => stroke.colour,
        Item::Area(_, colour) => *colour,
        Item::Marker(_, _, sign) => sign.colour,
        Item::Text(text) => text.colour,
    };
    canvas.items.iter().map(colour).collect()
}

/// "5A3FFC".
fn code(colour: Rgb) -> String {
    hex(colour).split_off(1)
}

/// `text` as LaTeX sets it in any encoding of fonts, with no command and no ligature of punctuation in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let command = match character {
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => "\\",
            '\\' => "\\textbackslash{}",
            '~' => "\\textasciitilde{}",
            '^' => "\\textasciicircum{}",
            '<' => "\\textless{}",
            '>' => "\\textgreater{}",
            '|' => "\\textbar{}",
            // A shorthand of languages of babel.
            '"' => "\\char34{}",
            '−' => "\\ensuremath{-}",
            '≤' => "\\ensuremath{\\leq}",
            '≥' => "\\ensuremath{\\geq}",
            '≠' => "\\ensuremath{\\neq}",
            '≈' => "\\ensuremath{\\approx}",
            '∞' => "\\ensuremath{\\infty}",
            '→' => "\\ensuremath{\\rightarrow}",
            '·' => "\\ensuremath{\\cdot}",
            '×' => "\\ensuremath{\\times}",
            '±' => "\\ensuremath{\\pm}",
            '²' => "\\ensuremath{^2}",
            '³' => "\\ensuremath{^3}",
            '…' => "\\ldots{}",
            '\u{202f}' => "\\,",
            '\u{a0}' => "\\nobreakspace{}",
            other if other.is_control() => " ",
            _ => "",
        };
        escaped.push_str(command);
        if command.len() < 2 && !character.is_control() {
            escaped.push(character);
        }
        let joins = |c: &char| LIGATURES.contains(*c);
        if joins(&character) && characters.peek().is_some_and(joins) {
            escaped.push_str("{}");
        }
    }
    escaped
}

/// Characters that fonts of TeX join with each other: "--" is a dash.
const LIGATURES: &str = "-,'`!?";

#[cfg(test)]
mod tests {
    use super::super::canvas::{INK, SIZE, label};
    use super::*;
    use crate::signs;
    use proptest::prelude::*;

    #[test]
    fn a_drawing_becomes_commands_of_pgf() {
        let dashed = Stroke {
            colour: (0xC6, 0x1B, 0x00),
            width: 0.75,
            dash: Some((3.0, 2.0)),
        };
        let at = |text: &str, anchor| label(text.to_owned(), (50.0, 20.0), anchor, SIZE);
        let canvas = Canvas {
            width: 100.0,
            height: 40.0,
            items: vec![
                Item::Area(vec![(0.0, 0.0), (10.0, 0.0), (10.0, 40.0)], INK),
                Item::Line(vec![(0.0, 10.0), (100.0, 10.5)], dashed),
                Item::Line(
                    vec![(0.0, 10.0), (0.0, 0.0)],
                    Stroke {
                        dash: None,
                        ..dashed
                    },
                ),
                Item::Marker((50.0, 10.0), 2.0, signs::policy(3)),
                Item::Text(at("loss (%)", Anchor::Start)),
                Item::Text(Text {
                    turned: true,
                    ..at("delay (µs)", Anchor::Middle)
                }),
                Item::Text(Text {
                    edged: true,
                    ..at("≤ 10 ms", Anchor::End)
                }),
            ],
        };
        insta::assert_snapshot!(pgf(&canvas, "Loss of\na slice"));
    }

    #[test]
    fn a_drawing_larger_than_tex_has_lengths_is_made_smaller() {
        let canvas = Canvas {
            width: 100.0,
            height: 28_800.0,
            items: vec![Item::Text(label(
                "a".to_owned(),
                (50.0, 0.0),
                Anchor::Start,
                8.0,
            ))],
        };
        let text = pgf(&canvas, "");
        assert!(
            text.contains("\\pgftext[x=25bp,y=14400bp,base,left]{\\fontsize{4}{4.8}"),
            "{text}"
        );
    }

    #[test]
    fn punctuation_stays_as_it_is_written() {
        assert_eq!(escaped("a_b--c{100 %}"), "a\\_b-{}-c\\{100 \\%\\}");
        assert_eq!(
            escaped("1\u{202f}000 “x” \"y\""),
            "1\\,000 “x” \\char34{}y\\char34{}"
        );
    }

    proptest! {
        #[test]
        fn no_text_holds_a_command_or_an_open_group(text in "[ -~\\n≤−·]{0,20}") {
            let mut rest = escaped(&text);
            let commands = [
                "textbackslash{}", "textasciitilde{}", "textasciicircum{}", "textless{}", "textgreater{}", "textbar{}",
                "char34{}", "ensuremath{-}", "ensuremath{\\leq}", "ensuremath{\\cdot}", "#", "$", "%", "&", "_", "{", "}",
            ];
            for command in commands {
                rest = rest.replace(&format!("\\{command}"), "");
            }
            let rest = rest.replace("{}", "");
            prop_assert!(!rest.contains(['\\', '#', '$', '%', '&', '_', '{', '}', '~', '^', '<', '>', '|', '"', '\n']), "{rest}");
        }
    }
}
