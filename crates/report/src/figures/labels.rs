//! Names of limits: beside their lines, none on another.

use super::canvas::{Anchor, Canvas, HAIR, Item, LINE, SMALL, Stroke, Text, label};
use super::figure::Level;
use super::font;
use super::frame::{Frame, Space, drawn_areas};

/// Names of vertical lines above a panel: how many rows above it, and from where to where.
#[derive(Debug)]
pub(super) struct Labels {
    width: f64,
    /// By limit; `None` for one without a name, or that is not vertical.
    stacked: Vec<Option<Stacked>>,
}

#[derive(Debug, Clone)]
struct Stacked {
    text: String,
    x: f64,
    left: f64,
    right: f64,
    row: usize,
}

impl Labels {
    pub(super) fn new(width: f64) -> Self {
        Self {
            width,
            stacked: Vec::new(),
        }
    }

    /// Find places for names of vertical lines; returns the height of their rows.
    pub(super) fn stack(&mut self, frame: &Frame<'_>, limits: &[Level]) -> f64 {
        let mut names: Vec<String> = Vec::new();
        for level in limits {
            let is_named = level.on_x && !level.label.is_empty() && !names.contains(&level.label);
            names.push(level.label.clone());
            let stacked = is_named.then(|| self.stacked_one(frame.x(level.value), &level.label));
            self.stacked.push(stacked);
        }
        let rows = self.stacked.iter().flatten().map(|one| one.row + 1).max();
        super::count(rows.unwrap_or(0)) * LINE
    }

    fn stacked_one(&self, x: f64, text: &str) -> Stacked {
        let text = font::fitted(text, SMALL, self.width - 4.0);
        let wide = font::width(&text, SMALL);
        let others = || self.stacked.iter().flatten();
        let is_free = |one: &Stacked| {
            others().all(|other| {
                let apart = one.left > other.right + 3.0 || other.left > one.right + 3.0;
                let crosses = |x: f64, row: usize, over: &Stacked| {
                    row > over.row && x > over.left - 1.0 && x < over.right + 1.0
                };
                (apart || one.row != other.row)
                    && !crosses(one.x, one.row, other)
                    && !crosses(other.x, other.row, one)
            })
        };
        // A text stands beside its line like a flag, so that two of one value have both sides.
        let place = |row: usize, is_after: bool| {
            let left = if is_after { x + 2.0 } else { x - 2.0 - wide };
            let left = left.min(self.width - 2.0 - wide).max(2.0);
            Stacked {
                text: text.clone(),
                x,
                left,
                right: left + wide,
                row,
            }
        };
        let first = x < 0.6 * self.width;
        let rows = 0..=others().count() + 1;
        let mut places = rows.flat_map(|row| [first, !first].map(|is_after| place(row, is_after)));
        let found = places.find(is_free);
        found.unwrap_or_else(|| {
            let highest = others().map(|one| one.row + 1).max();
            place(highest.unwrap_or(0), first)
        })
    }

    /// Draw the names.
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &Frame<'_>, limits: &[Level]) {
        for (one, level) in self.stacked.iter().zip(limits) {
            let Some(one) = one else { continue };
            let bottom = frame.top - 1.0 - super::count(one.row) * LINE;
            let leader = Stroke {
                colour: level.colour,
                width: HAIR,
                dash: None,
            };
            let is_beside = one.x < one.left || one.right < one.x;
            let end = if is_beside { bottom - SMALL } else { bottom };
            canvas.line(vec![(one.x, frame.top), (one.x, end)], leader);
            let text = label(
                one.text.clone(),
                (one.left, bottom - 1.5),
                Anchor::Start,
                SMALL,
            );
            canvas.items.push(Item::Text(Text {
                colour: level.colour,
                ..text
            }));
        }
        self.draw_beside(canvas, frame, limits);
    }

    /// Names of horizontal lines inside the panel: above or below the line, where nothing else is.
    fn draw_beside(&self, canvas: &mut Canvas, frame: &Frame<'_>, limits: &[Level]) {
        let drawn = drawn_areas(frame);
        let mut taken: Vec<Space> = Vec::new();
        let mut names: Vec<(&str, bool)> = Vec::new();
        for level in limits
            .iter()
            .filter(|level| !level.on_x && !level.label.is_empty())
        {
            // A promise that changes and returns has one name.
            let name = (level.label.as_str(), level.extent.is_some());
            if names.contains(&name) {
                continue;
            }
            names.push(name);
            let text = font::fitted(&level.label, SMALL, frame.right - frame.left - 4.0);
            let wide = font::width(&text, SMALL);
            let [from, to] = level
                .extent
                .map_or([frame.left, frame.right], |(low, high)| {
                    [frame.x(low), frame.x(high)]
                });
            let y = frame.y(level.value);
            let lefts = [to - wide - 2.0, from + 2.0, (from + to - wide) / 2.0];
            let lefts = lefts.map(|left| left.min(frame.right - wide - 2.0).max(frame.left + 2.0));
            let shifts = (0..40u32).map(|step| {
                let away = f64::from(step / 2) * LINE;
                if step % 2 == 0 { -away } else { away + LINE }
            });
            let mut places = shifts.flat_map(|shift| lefts.map(|left| area(left, wide, y + shift)));
            let is_inside =
                |place: &Space| place.top >= frame.top - 3.0 && place.bottom <= frame.bottom;
            let is_apart =
                |place: &Space| is_inside(place) && !taken.iter().any(|other| other.meets(place));
            let near: Vec<Space> = places.by_ref().take(6).collect();
            let is_free =
                |place: &&Space| is_apart(place) && !drawn.iter().any(|sign| sign.meets(place));
            let found = near
                .iter()
                .find(is_free)
                .or_else(|| near.iter().find(|place| is_apart(place)));
            let found = found.copied().or_else(|| places.find(is_apart));
            let place = found.unwrap_or_else(|| area(lefts[0], wide, y));
            taken.push(place);
            let text = label(text, (place.left, place.bottom - 2.2), Anchor::Start, SMALL);
            canvas.items.push(Item::Text(Text {
                colour: level.colour,
                edged: true,
                ..text
            }));
        }
    }
}

/// Area of a text that stands on `y`.
fn area(left: f64, wide: f64, y: f64) -> Space {
    Space {
        left,
        right: left + wide,
        top: y - LINE + 0.6,
        bottom: y,
    }
}
