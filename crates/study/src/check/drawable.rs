//! Studies that figures draw.

use crate::cases::SweepAxis;
use crate::study::Study;
use slicewise_stats::description::Coordinate;

/// A study that figures may draw: the only one of its file, or a case.
pub(crate) struct Drawable<'a> {
    pub(crate) study: &'a Study,
    /// Number that the case states, and its unit.
    pub(crate) x: Option<&'a str>,
}

impl<'a> Drawable<'a> {
    pub(super) fn case(&self) -> &'a str {
        self.study.case.as_deref().unwrap_or_default()
    }

    /// Its place on an axis of the sweep.
    pub(super) fn coordinate(&self, axis: &SweepAxis) -> Option<&'a Coordinate> {
        let mut coordinates = self.study.coordinates.iter();
        coordinates.find(|coordinate| coordinate.axis == axis.name)
    }

    /// "case `p1`", or "the study".
    pub(super) fn named(&self) -> String {
        match &self.study.case {
            Some(case) => format!("case `{case}`"),
            None => "the study".to_owned(),
        }
    }
}

pub(super) fn slices(study: &Study) -> Vec<&str> {
    study.slices.iter().map(|s| s.name.as_str()).collect()
}

pub(super) fn policies(study: &Study) -> Vec<&str> {
    study.policies.iter().map(|p| p.name.as_str()).collect()
}

pub(super) fn scenarios(study: &Study) -> Vec<&str> {
    study.scenarios.iter().map(|s| s.name.as_str()).collect()
}
