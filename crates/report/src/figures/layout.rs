//! A figure at a width: where its panels, signs and texts lie.

use super::axis::{Axis, Scale};
use super::canvas::{
    Anchor, Canvas, FRAME, GRID, HAIR, Item, LINE, PT_PER_MM, Place, RADIUS, Rgb, SIZE, SMALL,
    Stroke, THIN, Text, label,
};
use super::count;
use super::figure::{Figure, Level, Panel, Point, Series, Shape};
use super::font;
use super::frame::Frame;
use super::heat_map;
use super::labels::Labels;
use crate::signs::Sign;

/// Draw a figure `width_mm` wide.
pub(super) fn lay_out(figure: &Figure, width_mm: f64) -> Canvas {
    let width = width_mm * PT_PER_MM;
    let mut canvas = Canvas {
        width,
        ..Canvas::default()
    };
    let names = names(figure);
    let direct = direct_labels(figure, &names, width);
    let left = left_margin(figure, width);
    let right = width - right_margin(figure, direct.then_some(&names));
    let mut top = 2.0;
    if let Some(colours) = figure.panels.first().and_then(|of| of.colours.as_ref()) {
        top = heat_map::draw_scale(&mut canvas, colours, top);
    }
    if !direct {
        top = draw_legend(&mut canvas, &names, top, width);
    }
    for (index, panel) in figure.panels.iter().enumerate() {
        let mut labels = Labels::new(width);
        top += draw_title(&mut canvas, &panel.title, (left, top));
        let mut frame = Frame {
            panel,
            left,
            right,
            top,
            bottom: top,
        };
        frame.top = top + labels.stack(&frame, &panel.limits) + 3.0;
        frame.bottom = frame.top + height(panel, width, figure.panels.len());
        let is_last = index + 1 == figure.panels.len();
        draw_axes(&mut canvas, &frame, is_last);
        draw_series(&mut canvas, &frame, &panel.limits);
        if direct {
            draw_names(&mut canvas, &frame);
        }
        labels.draw(&mut canvas, &frame, &panel.limits);
        let below = BELOW + LINE * count(x_name(&frame).len() - 1);
        top = frame.bottom + if is_last { below } else { 6.0 };
    }
    canvas.height = top;
    canvas
}

/// Writes the title of a panel; returns the height that it takes.
fn draw_title(canvas: &mut Canvas, title: &str, (left, top): Place) -> f64 {
    if title.is_empty() {
        return 0.0;
    }
    let title = font::fitted(title, SIZE, canvas.width - left - 2.0);
    let at = (left, top + LINE);
    let text = label(title, at, Anchor::Start, SIZE);
    canvas.items.push(Item::Text(text));
    LINE
}

/// Names of all series, each once, in order, and their shapes.
fn names(figure: &Figure) -> Vec<(String, Sign, Shape)> {
    let mut names: Vec<(String, Sign, Shape)> = Vec::new();
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        let is_named = !series.name.is_empty()
            && !matches!(series.shape, Shape::Margin | Shape::Cell | Shape::NoValue);
        if is_named && !names.iter().any(|(name, ..)| *name == series.name) {
            names.push((series.name.clone(), series.sign, series.shape));
        }
    }
    names
}

/// True where each line has room for its name at its end.
fn direct_labels(figure: &Figure, names: &[(String, Sign, Shape)], width: f64) -> bool {
    let [panel] = figure.panels.as_slice() else {
        return false;
    };
    let is_of_lines = panel
        .series
        .iter()
        .any(|series| series.shape == Shape::SignedLine);
    let widest = widest(names.iter().map(|(name, ..)| name.as_str()), SIZE);
    let room = height(panel, width, 1);
    // Lines of percentiles end far from the edge.
    let ends_at_edge = panel.y.scale != Scale::Tail;
    is_of_lines && ends_at_edge && widest <= 0.28 * width && count(names.len()) * LINE <= room
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>, size: f64) -> f64 {
    texts
        .map(|text| font::width(text, size))
        .fold(0.0, f64::max)
}

fn left_margin(figure: &Figure, width: f64) -> f64 {
    let labels = figure.panels.iter().map(|panel| {
        let ticks = panel.y.ticks(TICKS_UP);
        widest(ticks.iter().map(|(_, label)| label.as_str()), SMALL)
    });
    let names = figure.panels.iter().map(|panel| {
        let room = height(panel, width, figure.panels.len());
        count(y_name(panel, room).len())
    });
    LINE * names.fold(1.0, f64::max) + 7.0 + labels.fold(0.0, f64::max).min(0.35 * width)
}

/// Lines of the name of the vertical axis of a panel that is so high.
fn y_name(panel: &Panel, height: f64) -> Vec<String> {
    font::wrapped(&panel.y.name(), SIZE, height + 12.0)
}

/// Lines of the name of the horizontal axis.
fn x_name(frame: &Frame<'_>) -> Vec<String> {
    font::wrapped(&frame.panel.x.name(), SIZE, frame.right - frame.left)
}

/// Room for names at the ends of lines, or for half of the last label below the axis.
fn right_margin(figure: &Figure, names: Option<&Vec<(String, Sign, Shape)>>) -> f64 {
    if let Some(names) = names {
        return NAME_GAP + 3.0 + widest(names.iter().map(|(name, ..)| name.as_str()), SIZE);
    }
    let last = figure.panels.last().map(|panel| panel.x.ticks(4));
    let last = last.and_then(|mut ticks| ticks.pop());
    last.map_or(6.0, |(_, label)| 4.0 + font::width(&label, SMALL) / 2.0)
}

/// Of the area between the axes: room for each row, or a part of the width.
fn height(panel: &Panel, width: f64, panels: usize) -> f64 {
    match &panel.y.scale {
        Scale::Categories(names) => {
            let members = panel.series.iter().map(|series| series.name.as_str());
            let mut members: Vec<&str> = members.collect();
            members.sort_unstable();
            members.dedup();
            let row = (count(members.len()) + 1.0)
                * (TALLEST / count(names.len()).max(1.0) / (count(members.len()) + 1.0))
                    .clamp(4.2, 7.0);
            count(names.len()) * row.max(LINE + 1.0)
        }
        _ if panels > 1 => 44.0 + 0.12 * width,
        _ => 60.0 + 0.31 * width,
    }
}

/// Signs with names above the panels, in as many lines as it takes; returns where they end.
fn draw_legend(canvas: &mut Canvas, names: &[(String, Sign, Shape)], top: f64, width: f64) -> f64 {
    let (mut x, mut y) = (2.0, top);
    for (name, sign, shape) in names {
        let has_line = !matches!(shape, Shape::Signs | Shape::Mark);
        let key = if has_line { KEY } else { 6.0 };
        let name = font::fitted(name, SIZE, width - key - 8.0);
        let wide = key + 4.0 + font::width(&name, SIZE);
        if x > 2.0 && x + wide > width - 2.0 {
            (x, y) = (2.0, y + LINE + 1.5);
        }
        let middle = y + LINE / 2.0;
        if has_line {
            canvas.line(vec![(x, middle), (x + key, middle)], stroke(*sign, THIN));
        }
        if *shape != Shape::Line {
            let middle = (x + key / 2.0, middle);
            canvas.items.push(Item::Marker(middle, RADIUS, *sign));
        }
        let at = (x + key + 4.0, middle + 0.35 * SIZE);
        let text = label(name, at, Anchor::Start, SIZE);
        canvas.items.push(Item::Text(text));
        x += wide + 10.0;
    }
    if names.is_empty() {
        top
    } else {
        y + LINE + 2.0
    }
}

fn draw_axes(canvas: &mut Canvas, frame: &Frame<'_>, has_x_labels: bool) {
    let Frame {
        panel,
        left,
        right,
        top,
        bottom,
    } = *frame;
    for (from, to) in &panel.shaded {
        let [from, to] = [*from, *to].map(|at| frame.x(at));
        let corners = vec![(from, top), (to, top), (to, bottom), (from, bottom)];
        canvas.items.push(Item::Area(corners, super::SHADE));
    }
    draw_ticks_up(canvas, frame);
    draw_ticks_below(canvas, frame, has_x_labels);
    canvas.line(
        vec![(left, top), (left, bottom), (right, bottom)],
        grey(FRAME),
    );
    for (index, line) in y_name(panel, bottom - top).into_iter().enumerate() {
        let at = (SIZE + LINE * count(index), (top + bottom) / 2.0);
        canvas.items.push(Item::Text(Text {
            turned: true,
            ..label(line, at, Anchor::Middle, SIZE)
        }));
    }
    let names = x_name(frame).into_iter().enumerate();
    for (index, line) in names.filter(|_| has_x_labels) {
        let below = BELOW - 3.0 + LINE * count(index);
        let at = ((left + right) / 2.0, bottom + below);
        let line = label(line, at, Anchor::Middle, SIZE);
        canvas.items.push(Item::Text(line));
    }
}

/// Labels of the vertical axis, and lines between rows or at values.
fn draw_ticks_up(canvas: &mut Canvas, frame: &Frame<'_>) {
    let Frame {
        panel,
        left,
        right,
        top,
        bottom,
    } = *frame;
    let ticks = panel.y.ticks(TICKS_UP);
    let row = (bottom - top) / count(ticks.len().max(1));
    for (index, (value, text)) in ticks.into_iter().enumerate() {
        let y = frame.y(value);
        let line = if panel.is_of_rows() {
            top + count(index) * row
        } else {
            y
        };
        if line > top || !panel.is_of_rows() {
            canvas.line(vec![(left, line), (right, line)], grey(GRID));
        }
        let text = font::fitted(&text, SMALL, left - LINE - 6.0);
        let text = label(text, (left - 4.0, y + 0.35 * SMALL), Anchor::End, SMALL);
        canvas.items.push(Item::Text(text));
    }
    for value in panel.y.minor_ticks() {
        let y = frame.y(value);
        canvas.line(vec![(left, y), (left + 2.0, y)], grey(FRAME));
    }
}

/// Marks of the horizontal axis, with labels where it is the last panel.
fn draw_ticks_below(canvas: &mut Canvas, frame: &Frame<'_>, has_labels: bool) {
    let Frame {
        panel,
        left,
        right,
        top,
        bottom,
    } = *frame;
    for value in panel.x.minor_ticks() {
        let x = frame.x(value);
        canvas.line(vec![(x, bottom), (x, bottom - 2.0)], grey(FRAME));
    }
    for (value, text) in x_ticks(&panel.x, right - left) {
        let x = frame.x(value);
        if panel.is_of_rows() {
            canvas.line(vec![(x, top), (x, bottom)], grey(GRID));
        }
        canvas.line(vec![(x, bottom), (x, bottom - 3.0)], grey(FRAME));
        if has_labels {
            let at = (x, bottom + 4.0 + 0.75 * SMALL);
            canvas
                .items
                .push(Item::Text(label(text, at, Anchor::Middle, SMALL)));
        }
    }
}

fn grey(colour: Rgb) -> Stroke {
    Stroke {
        colour,
        width: HAIR,
        dash: None,
    }
}

/// As many labels as fit beside each other.
fn x_ticks(axis: &Axis, room: f64) -> Vec<(f64, String)> {
    for most in (1..=9).rev() {
        let ticks = axis.ticks(most);
        let widest = widest(ticks.iter().map(|(_, label)| label.as_str()), SMALL) + 5.0;
        let places: Vec<f64> = ticks
            .iter()
            .map(|(value, _)| axis.place(*value) * room)
            .collect();
        if places
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if b - a >= widest))
        {
            return ticks;
        }
    }
    axis.ticks(1).into_iter().take(1).collect()
}

fn draw_series(canvas: &mut Canvas, frame: &Frame<'_>, limits: &[Level]) {
    for level in limits {
        let (low, high) = level.extent.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let ends = match level.on_x {
            true => [low, high].map(|end| (frame.x(level.value), frame.y(end))),
            false => [low, high].map(|end| (frame.x(end), frame.y(level.value))),
        };
        canvas.line(
            ends.to_vec(),
            Stroke {
                colour: level.colour,
                width: THIN,
                dash: Some((3.0, 2.0)),
            },
        );
    }
    for series in &frame.panel.series {
        draw_lines(canvas, frame, series);
    }
    for series in &frame.panel.series {
        if matches!(series.shape, Shape::Signs | Shape::SignedLine) {
            for point in &series.points {
                draw_sign(canvas, frame, series, point);
            }
        }
    }
}

fn draw_lines(canvas: &mut Canvas, frame: &Frame<'_>, series: &Series) {
    match series.shape {
        Shape::Signs => {}
        Shape::Cell | Shape::NoValue => {
            let fill = (series.shape == Shape::Cell).then_some(series.sign.colour);
            for point in &series.points {
                heat_map::draw_cell(canvas, frame, point, fill);
            }
        }
        Shape::Mark => {
            for at in series.points.iter().filter_map(|point| frame.at(point)) {
                heat_map::draw_mark(canvas, at, series.sign);
            }
        }
        Shape::Margin => {
            for (x, y) in series.points.iter().filter_map(|point| frame.at(point)) {
                let stroke = Stroke {
                    colour: series.sign.colour,
                    width: 1.5,
                    dash: None,
                };
                let (dx, dy) = if frame.panel.is_of_rows() {
                    (0.0, RADIUS + 1.2)
                } else {
                    (RADIUS + 1.5, 0.0)
                };
                canvas.line(vec![(x - dx, y - dy), (x + dx, y + dy)], stroke);
            }
        }
        Shape::Line | Shape::SignedLine => {
            for part in series.points.split(|point| point.y.is_none()) {
                let mut points: Vec<_> = part.iter().filter_map(|point| frame.at(point)).collect();
                if let [(x, y)] = points[..] {
                    // A value between two gaps is a dot.
                    points = vec![(x - THIN, y), (x + THIN, y)];
                }
                canvas.line(points, stroke(series.sign, series.width));
            }
        }
        Shape::Steps => draw_steps(canvas, frame, series),
    }
}

/// Steps from the left edge to the right one, with signs on them: those of lines along each other do not coincide.
fn draw_steps(canvas: &mut Canvas, frame: &Frame<'_>, series: &Series) {
    let mut points = vec![(frame.left, frame.bottom)];
    for (x, y) in series.points.iter().filter_map(|point| frame.at(point)) {
        let below = points.last().map_or(frame.bottom, |(_, y)| *y);
        points.extend([(x, below), (x, y)]);
        if y <= frame.top {
            break;
        }
    }
    let end = points.last().map_or(frame.bottom, |(_, y)| *y);
    if end > frame.top {
        points.push((frame.right, end));
    }
    let all = &frame.panel.series;
    let place = all
        .iter()
        .position(|other| other.name == series.name)
        .unwrap_or(0);
    let offset = (count(place) + 0.5) / count(all.len());
    let markers = (0..MARKERS_ON_A_LINE).filter_map(|n| {
        let part = (count(n) + offset) / count(MARKERS_ON_A_LINE);
        let y = frame.bottom - part * (frame.bottom - frame.top);
        let riser = points
            .windows(2)
            .find(|pair| matches!(pair, [a, b] if a.1 >= y && b.1 <= y))?;
        Some(Item::Marker((riser[1].0, y), RADIUS, series.sign))
    });
    let markers: Vec<Item> = markers.collect();
    canvas.line(points, stroke(series.sign, series.width));
    canvas.items.extend(markers);
}

/// A sign with the whiskers of its intervals.
fn draw_sign(canvas: &mut Canvas, frame: &Frame<'_>, series: &Series, point: &Point) {
    let sign = series.sign;
    let Some((x, y)) = frame.at(point) else {
        return;
    };
    let is_of_rows = frame.panel.is_of_rows();
    let whiskers = [(point.interval, is_of_rows), (point.across, true)];
    for (interval, is_level) in whiskers {
        let Some((low, high)) = interval else {
            continue;
        };
        let stroke = Stroke {
            colour: sign.colour,
            width: THIN,
            dash: None,
        };
        let end = |value| {
            if is_level {
                (frame.x(value), y)
            } else {
                (x, frame.y(value))
            }
        };
        let ends = [end(low), end(high)];
        canvas.line(ends.to_vec(), stroke);
        let axis = if is_level {
            &frame.panel.x
        } else {
            &frame.panel.y
        };
        // Only an end that is on the axis has a cap.
        for ((x, y), _) in (ends.into_iter().zip([low, high])).filter(|(_, end)| axis.holds(*end)) {
            let (dx, dy) = if is_level { (0.0, CAP) } else { (CAP, 0.0) };
            canvas.line(vec![(x - dx, y - dy), (x + dx, y + dy)], stroke);
        }
    }
    // Signs of lines that run along each other: the first is the largest.
    let radius = RADIUS + (series.width - THIN);
    canvas.items.push(Item::Marker((x, y), radius, sign));
}

/// Names at the ends of lines, pushed apart where lines end close to each other.
fn draw_names(canvas: &mut Canvas, frame: &Frame<'_>) {
    let lines = frame
        .panel
        .series
        .iter()
        .filter(|series| series.shape == Shape::SignedLine);
    let mut ends: Vec<(&Series, Place, f64)> = lines
        .filter_map(|series| {
            let end = series
                .points
                .iter()
                .rev()
                .find_map(|point| frame.at(point))?;
            Some((series, end, end.1))
        })
        .collect();
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut above = frame.top - LINE / 2.0;
    for (_, _, y) in &mut ends {
        *y = y.max(above + LINE);
        above = *y;
    }
    let mut below = frame.bottom + LINE / 2.0;
    for (_, _, y) in ends.iter_mut().rev() {
        *y = y.min(below - LINE);
        below = *y;
    }
    for (series, (x, end), y) in ends {
        let leader = Stroke {
            colour: series.sign.colour,
            width: HAIR,
            dash: None,
        };
        let to = frame.right + NAME_GAP;
        canvas.line(vec![(x + RADIUS + 1.0, end), (to - 1.5, y)], leader);
        let text = label(
            series.name.clone(),
            (to, y + 0.35 * SIZE),
            Anchor::Start,
            SIZE,
        );
        canvas.items.push(Item::Text(Text {
            colour: series.sign.colour,
            ..text
        }));
    }
}

fn stroke(sign: Sign, width: f64) -> Stroke {
    let dash = sign
        .dash
        .map(|(on, off)| (f64::from(on) * 0.4, f64::from(off) * 0.5));
    Stroke {
        colour: sign.colour,
        width,
        dash,
    }
}

/// Below a panel: labels and name of its axis.
const BELOW: f64 = 26.0;
/// Half the width of a whisker's cap.
const CAP: f64 = 1.6;
/// Length of a line in the legend.
const KEY: f64 = 20.0;
/// From the end of a panel to names of lines.
const NAME_GAP: f64 = 12.0;
/// Labels on a vertical axis.
const TICKS_UP: usize = 5;
/// All rows together, if they can be lower.
const TALLEST: f64 = 420.0;
const MARKERS_ON_A_LINE: usize = 5;
