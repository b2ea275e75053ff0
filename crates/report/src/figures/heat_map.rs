//! Cells of a heat map and its scale of colours.
//!
//! Colours are those of viridis, which grows evenly in lightness and so can be read in grey and by the colour-blind
//! (van der Walt and Smith, "A better default colormap for Matplotlib", SciPy 2015).

use super::axis::Axis;
use super::canvas::{
    Anchor, Canvas, HAIR, Item, LINE, Place, RADIUS, Rgb, SIZE, SMALL, Stroke, label,
};
use super::count;
use super::figure::Point;
use super::font;
use super::frame::Frame;
use crate::signs::Sign;

/// Colour of a value at `place` between the ends of its scale, 0 to 1, in 64 steps.
pub(super) fn colour(place: f64) -> Rgb {
    let step = (0..STEPS).find(|step| count(*step) + 0.5 >= place * count(STEPS));
    let step = step.unwrap_or(STEPS);
    let (index, part) = (step / PER_STOP, step % PER_STOP);
    let lower = STOPS[index];
    let upper = STOPS.get(index + 1).copied().unwrap_or(lower);
    let mixed = |from: u8, to: u8| {
        let sum = usize::from(from) * (PER_STOP - part) + usize::from(to) * part;
        u8::try_from(sum / PER_STOP).unwrap_or(u8::MAX)
    };
    (
        mixed(lower.0, upper.0),
        mixed(lower.1, upper.1),
        mixed(lower.2, upper.2),
    )
}

/// Draws the scale of colours below its quantity, from `top`; returns where it ends.
pub(super) fn draw_scale(canvas: &mut Canvas, axis: &Axis, top: f64) -> f64 {
    let name = font::fitted(&axis.name(), SIZE, canvas.width - 4.0);
    let at = (2.0, top + 0.75 * LINE);
    let name = label(name, at, Anchor::Start, SIZE);
    canvas.items.push(Item::Text(name));
    let (left, right) = (SCALE_INDENT, (0.7 * canvas.width).min(MAX_SCALE));
    let (top, bottom) = (top + LINE + 1.0, top + LINE + 7.0);
    let x = |place: f64| left + place * (right - left);
    for step in 0..STEPS {
        let [from, to] = [step, step + 1].map(|step| count(step) / count(STEPS));
        // Each reaches below the next: no gap shows between them.
        let end = (to + 1.0 / count(STEPS)).min(1.0);
        let area = corners((x(from), top), (x(end), bottom));
        let middle = (from + to) / 2.0;
        canvas.items.push(Item::Area(area, colour(middle)));
    }
    let mut end = f64::NEG_INFINITY;
    for (value, text) in axis.ticks(SCALE_TICKS) {
        let (at, half) = (x(axis.place(value)), font::width(&text, SMALL) / 2.0);
        if at - half < end + 3.0 {
            continue;
        }
        end = at + half;
        let text = label(text, (at, bottom + 0.9 * SMALL), Anchor::Middle, SMALL);
        canvas.items.push(Item::Text(text));
    }
    bottom + LINE + 1.0
}

/// Draws a cell in `colour`; hatched without one, so that no value is read where none was measured.
pub(super) fn draw_cell(canvas: &mut Canvas, frame: &Frame<'_>, point: &Point, fill: Option<Rgb>) {
    let (Some((left, right)), Some((low, high))) = (point.across, point.interval) else {
        return;
    };
    let (left, right) = (frame.x(left), frame.x(right));
    let (top, bottom) = (frame.y(high), frame.y(low));
    if let Some(fill) = fill {
        // Cells that are drawn later cover the edge: no gap shows between them.
        let top = (top - OVERLAP).max(frame.top);
        let right = (right + OVERLAP).min(frame.right);
        let area = corners((left, top), (right, bottom));
        canvas.items.push(Item::Area(area, fill));
        return;
    }
    let stroke = Stroke {
        colour: HATCH,
        width: HAIR,
        dash: None,
    };
    // Lines x + y = sum, at the same places in all cells.
    let first = ((left + top) / HATCH_GAP).ceil();
    let sums = (0..MAX_HATCHES).map(|number| (first + count(number)) * HATCH_GAP);
    for sum in sums.take_while(|sum| *sum < right + bottom) {
        let (from, to) = (left.max(sum - bottom), right.min(sum - top));
        canvas.line(vec![(from, sum - from), (to, sum - to)], stroke);
    }
}

/// Draws a mark in a cell: black with a white edge, which shows on every colour.
pub(super) fn draw_mark(canvas: &mut Canvas, at: Place, sign: Sign) {
    for (colour, radius) in [(WHITE, 1.6 * RADIUS), (BLACK, RADIUS)] {
        canvas
            .items
            .push(Item::Marker(at, radius, Sign { colour, ..sign }));
    }
}

fn corners((left, top): Place, (right, bottom): Place) -> Vec<Place> {
    vec![(left, top), (right, top), (right, bottom), (left, bottom)]
}

/// Of viridis, at equal distances.
const STOPS: [Rgb; 9] = [
    (0x44, 0x01, 0x54),
    (0x47, 0x2D, 0x7B),
    (0x3B, 0x52, 0x8B),
    (0x2C, 0x72, 0x8E),
    (0x21, 0x91, 0x8C),
    (0x28, 0xAE, 0x80),
    (0x5E, 0xC9, 0x62),
    (0xAD, 0xDC, 0x30),
    (0xFD, 0xE7, 0x25),
];
const PER_STOP: usize = 8;
const STEPS: usize = PER_STOP * (STOPS.len() - 1);
const SCALE_TICKS: usize = 5;
/// Room for half of the first label, pt.
const SCALE_INDENT: f64 = 10.0;
const MAX_SCALE: f64 = 250.0;
/// Of neighbouring cells, pt.
const OVERLAP: f64 = 0.4;
const HATCH: Rgb = (0x8C, 0x8C, 0x8C);
/// Between two lines, along the axis, pt.
const HATCH_GAP: f64 = 4.0;
const MAX_HATCHES: usize = 10_000;
/// Not the ink of the page, which is light in the dark.
const BLACK: Rgb = (0, 0, 0);
const WHITE: Rgb = (255, 255, 255);

#[cfg(test)]
mod tests {
    use super::super::figure::Panel;
    use super::*;

    #[test]
    fn larger_values_are_lighter_in_grey() {
        // Rec. 709 luma, in ten-thousandths.
        let luma = |(red, green, blue): Rgb| {
            2126 * u32::from(red) + 7152 * u32::from(green) + 722 * u32::from(blue)
        };
        let lumas: Vec<u32> = (0..=STEPS)
            .map(|step| luma(colour(count(step) / count(STEPS))))
            .collect();
        assert!(lumas.is_sorted_by(|a, b| a < b), "{lumas:?}");
        assert_eq!(
            [0.0, 0.5, 1.0, 7.0].map(colour),
            [STOPS[0], STOPS[4], STOPS[8], STOPS[8]]
        );
    }

    #[test]
    fn hatches_stay_within_their_cell_and_fill_it() {
        let (axis, edges) = Axis::of_cells("x", &[1.0, 2.0, 3.0]);
        let panel = Panel::new(axis.clone(), axis);
        let frame = Frame {
            panel: &panel,
            left: 1.0,
            right: 91.0,
            top: 0.0,
            bottom: 30.0,
        };
        let cell = Point {
            interval: Some((edges[1], edges[2])),
            across: Some((edges[1], edges[2])),
            ..Point::of(2.0, Some(2.0))
        };
        let mut canvas = Canvas::default();
        draw_cell(&mut canvas, &frame, &cell, None);
        let ends = canvas.items.iter().filter_map(|item| match item {
            Item::Line(points, _) => Some(points),
            _ => None,
        });
        for (x, y) in ends.flatten() {
            assert!(
                (x - 46.0).abs() < 15.01 && (y - 15.0).abs() < 5.01,
                "{x} {y}"
            );
        }
        assert_eq!(canvas.items.len(), 10);
    }
}
