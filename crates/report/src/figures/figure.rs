//! Description of a figure, from which come its drawings, its data and its caption.

use super::axis::{Axis, Scale};
use super::canvas::{Rgb, THIN, hex};
use crate::signs::Sign;

/// A figure of panels above each other.
#[derive(Debug)]
pub(super) struct Figure {
    /// Subject, without the study: "Throughput of slice voice".
    pub(super) subject: String,
    /// How it is drawn, in sentences; empty where that is obvious.
    pub(super) how: String,
    pub(super) panels: Vec<Panel>,
}

/// Axes, and what is drawn between them.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    pub(super) limits: Vec<Level>,
    /// Parts of the x axis that are not measured.
    pub(super) shaded: Vec<(f64, f64)>,
}

impl Panel {
    pub(super) fn new(x: Axis, y: Axis) -> Self {
        Self {
            x,
            y,
            series: Vec::new(),
            limits: Vec::new(),
            shaded: Vec::new(),
        }
    }

    /// True where values lie on the x axis, and categories on the y axis.
    pub(super) fn is_of_rows(&self) -> bool {
        matches!(self.y.scale, Scale::Categories(_))
    }
}

/// Values of one policy, slice, source or back end.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) sign: Sign,
    pub(super) shape: Shape,
    /// Width of its line, pt.
    pub(super) width: f64,
    pub(super) points: Vec<Point>,
}

/// How the points of a series are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// A line from each to the next, with gaps.
    Line,
    /// Steps of a distribution function: a point is its upper left corner.
    Steps,
    /// A sign at each, with the whisker of its interval.
    Signs,
    /// A line through signs.
    SignedLine,
    /// A short bar at each: the margin at a sign.
    Margin,
}

impl Series {
    fn kind(&self) -> &'static str {
        match self.shape {
            Shape::Line if self.width < THIN => "thin_line",
            Shape::Line => "line",
            Shape::Steps => "steps",
            Shape::Signs => "signs",
            Shape::SignedLine => "signed_line",
            Shape::Margin => "margin",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    /// `None` is a gap.
    pub(super) y: Option<f64>,
    /// Interval of the value, which lies on the x axis if there are rows.
    pub(super) interval: Option<(f64, f64)>,
}

impl Point {
    pub(super) const fn of(x: f64, y: Option<f64>) -> Self {
        Self {
            x,
            y,
            interval: None,
        }
    }
}

/// A limit: a line across the panel, or a part of it.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) value: f64,
    /// On the x axis, so that the line is vertical.
    pub(super) on_x: bool,
    /// Ends of the line on the other axis; `None` is all of it.
    pub(super) extent: Option<(f64, f64)>,
    /// Empty for one that belongs to another.
    pub(super) label: String,
    pub(super) colour: Rgb,
}

impl Figure {
    /// A caption in one to three sentences.
    pub(super) fn caption(&self, study: &str) -> String {
        let mut labels: Vec<&str> = Vec::new();
        for level in self.panels.iter().flat_map(|panel| &panel.limits) {
            if !level.label.is_empty() && !labels.contains(&level.label.as_str()) {
                labels.push(&level.label);
            }
        }
        let mut caption = format!("{}, study “{study}”.", self.subject);
        if !self.how.is_empty() {
            caption.push(' ');
            caption.push_str(&self.how);
        }
        if !labels.is_empty() {
            caption.push_str(&format!(" Dashed lines: {}.", labels.join("; ")));
        }
        caption.push('\n');
        caption
    }

    /// All that is drawn, a row a point: one form for all figures.
    pub(super) fn csv(&self) -> String {
        let mut csv =
            String::from("panel,kind,series,colour,x,y,low,high,x_axis,x_scale,y_axis,y_scale\n");
        for (index, panel) in self.panels.iter().enumerate() {
            let axes =
                [&panel.x, &panel.y].map(|axis| [quoted(&axis.name()), scale(axis).to_owned()]);
            let axes = axes.concat().join(",");
            let mut row = |kind: &str, name: &str, colour: Rgb, cells: [String; 4]| {
                let (name, colour, cells) = (quoted(name), hex(colour), cells.join(","));
                csv.push_str(&format!("{index},{kind},{name},{colour},{cells},{axes}\n"));
            };
            let none = String::new;
            for series in &panel.series {
                for point in &series.points {
                    let of = if panel.is_of_rows() {
                        &panel.x
                    } else {
                        &panel.y
                    };
                    let end = |end: f64| cell(of, end);
                    let [low, high] = point
                        .interval
                        .map_or([none(), none()], |(low, high)| [end(low), end(high)]);
                    let y = point.y.map_or_else(none, |y| cell(&panel.y, y));
                    let cells = [cell(&panel.x, point.x), y, low, high];
                    row(series.kind(), &series.name, series.sign.colour, cells);
                }
            }
            for level in &panel.limits {
                let (along, across) = if level.on_x {
                    (&panel.x, &panel.y)
                } else {
                    (&panel.y, &panel.x)
                };
                let value = cell(along, level.value);
                let [x, y] = if level.on_x {
                    [value, none()]
                } else {
                    [none(), value]
                };
                let [low, high] = level.extent.map_or([none(), none()], |(low, high)| {
                    // The end of a row is where the next one begins.
                    let last = match across.scale {
                        Scale::Categories(_) => high - 0.5,
                        _ => high,
                    };
                    [cell(across, low), cell(across, last)]
                });
                row("limit", &level.label, level.colour, [x, y, low, high]);
            }
            for (from, to) in &panel.shaded {
                row(
                    "shaded",
                    "",
                    super::SHADE,
                    [none(), none(), cell(&panel.x, *from), cell(&panel.x, *to)],
                );
            }
        }
        csv
    }
}

fn scale(axis: &Axis) -> &'static str {
    match axis.scale {
        Scale::Linear => "linear",
        Scale::Logarithmic => "log",
        Scale::Tail => "tail",
        Scale::Categories(_) => "categories",
    }
}

/// A value in the unit of the axis to twelve digits, or the name of a category.
fn cell(axis: &Axis, value: f64) -> String {
    if let Scale::Categories(names) = &axis.scale {
        let index = (0..names.len()).rfind(|index| super::count(*index) <= value);
        return index.map_or_else(String::new, |index| quoted(&names[index]));
    }
    let value = axis.in_unit(value);
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded.is_finite() {
        format!("{rounded}")
    } else {
        String::new()
    }
}

/// A text as a cell of a CSV file.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
