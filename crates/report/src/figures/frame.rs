//! A panel on the page: where its values lie.

use super::canvas::{Place, RADIUS};
use super::figure::{Panel, Point};

/// A panel on the page.
pub(super) struct Frame<'a> {
    pub(super) panel: &'a Panel,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.panel.x.place(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let part = self.panel.y.place(value);
        // Rows are read from above.
        let part = if self.panel.is_of_rows() {
            part
        } else {
            1.0 - part
        };
        self.top + part * (self.bottom - self.top)
    }

    pub(super) fn at(&self, point: &Point) -> Option<Place> {
        Some((self.x(point.x), self.y(point.y?)))
    }
}

/// An area of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Space {
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Areas around the points of a panel, which names of limits had better leave free.
pub(super) fn drawn_areas(frame: &Frame<'_>) -> Vec<Space> {
    let points = frame.panel.series.iter().flat_map(|s| &s.points);
    let places = points.filter_map(|point| frame.at(point));
    let areas = places.map(|(x, y)| Space {
        left: x - RADIUS,
        right: x + RADIUS,
        top: y - RADIUS,
        bottom: y + RADIUS,
    });
    areas.collect()
}
