//! Description of a figure, from which come its drawings, its data and its caption.

use super::axis::{Axis, Scale};
use super::canvas::{Rgb, THIN, hex};
use crate::signs::Sign;
use crate::text_table::TextTable;
use slicewise_stats::words::digits;

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
    /// Written above it; empty for none.
    pub(super) title: String,
    /// Scale of the colours of its cells, if it is a heat map.
    pub(super) colours: Option<Axis>,
}

impl Panel {
    pub(super) fn new(x: Axis, y: Axis) -> Self {
        Self {
            x,
            y,
            series: Vec::new(),
            limits: Vec::new(),
            shaded: Vec::new(),
            title: String::new(),
            colours: None,
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
    /// A cell of a heat map, which reaches as far as the intervals of its point; the label is its value.
    Cell,
    /// A cell without a value.
    NoValue,
    /// A sign in a cell.
    Mark,
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
            Shape::Cell => "cell",
            Shape::NoValue => "no_value",
            Shape::Mark => "mark",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) x: f64,
    /// `None` is a gap.
    pub(super) y: Option<f64>,
    /// Interval of the value, which lies on the x axis if there are rows.
    pub(super) interval: Option<(f64, f64)>,
    /// Interval on the horizontal axis, where both axes have values.
    pub(super) across: Option<(f64, f64)>,
    /// Cell that it is of, where neither its series nor its place says so.
    pub(super) label: String,
}

impl Point {
    pub(super) const fn of(x: f64, y: Option<f64>) -> Self {
        Self {
            x,
            y,
            interval: None,
            across: None,
            label: String::new(),
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

    /// Values of all signs and steps with their intervals, for people.
    pub(super) fn table(&self) -> TextTable {
        let panel = self.panels.first();
        let axes = panel.map(|panel| format!("{} | {}", panel.x.name(), panel.y.name()));
        let rows = panel.into_iter().flat_map(|panel| {
            let drawn = panel.series.iter().filter(|of| of.shape != Shape::Line);
            drawn.flat_map(move |series| {
                let row = move |point: &Point| {
                    let (along, across) = match panel.is_of_rows() {
                        _ if panel.colours.is_some() => (None, None),
                        true => (point.interval, None),
                        false => (point.across, point.interval),
                    };
                    let x = text(&panel.x, point.x, along);
                    let y = point
                        .y
                        .map_or_else(String::new, |y| text(&panel.y, y, across));
                    vec![series.name.clone(), point.label.clone(), x, y]
                };
                series.points.iter().map(row)
            })
        });
        let head = format!("Line | Cell | {}", axes.unwrap_or_default());
        TextTable::new(&head, 2, rows.collect())
    }

    /// All that is drawn, a row a point: one form for all figures.
    pub(super) fn csv(&self) -> String {
        let mut csv = String::from(
            "panel,kind,series,colour,x,y,low,high,x_low,x_high,point,x_axis,x_scale,y_axis,y_scale\n",
        );
        for (index, panel) in self.panels.iter().enumerate() {
            let axes =
                [&panel.x, &panel.y].map(|axis| [quoted(&axis.name()), scale(axis).to_owned()]);
            let axes = axes.concat().join(",");
            let mut row = |kind: &str, name: &str, colour: Rgb, cells: [String; 7]| {
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
                    let [x_low, x_high] = (point.across).map_or([none(), none()], |(low, high)| {
                        [low, high].map(|end| cell(&panel.x, end))
                    });
                    let y = point.y.map_or_else(none, |y| cell(&panel.y, y));
                    let (x, label) = (cell(&panel.x, point.x), quoted(&point.label));
                    let cells = [x, y, low, high, x_low, x_high, label];
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
                let cells = [x, y, low, high, none(), none(), none()];
                row("limit", &level.label, level.colour, cells);
            }
            for (from, to) in &panel.shaded {
                let [from, to] = [*from, *to].map(|end| cell(&panel.x, end));
                let cells = [none(), none(), from, to, none(), none(), none()];
                row("shaded", "", super::SHADE, cells);
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

/// A value in the unit of the axis, and half of its interval.
fn text(axis: &Axis, value: f64, interval: Option<(f64, f64)>) -> String {
    let in_unit = |value| digits(axis.in_unit(value), 4);
    match (&axis.scale, interval) {
        (Scale::Categories(_), _) => cell(axis, value),
        (_, Some((low, high))) => format!("{} ± {}", in_unit(value), in_unit((high - low) / 2.0)),
        (_, None) => in_unit(value),
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
