//! Verdicts over the axes of a sweep: what each point came to, and up to where it holds.

use crate::attribute::{AttributeText, attributes};
use crate::findings::Findings;
use slicewise_stats::description::Coordinate;

/// An attribute of policies over all points.
#[derive(Debug)]
pub(crate) struct VerdictMap {
    /// "isolation", "reallocation".
    pub(crate) attribute: &'static str,
    /// Values of the first axis, in the order of the sweep.
    pub(crate) columns: Vec<Coordinate>,
    pub(crate) rows: Vec<MapRow>,
}

/// A policy at fixed values of all axes but the first.
#[derive(Debug)]
pub(crate) struct MapRow {
    pub(crate) policy: String,
    /// Values of the other axes.
    pub(crate) at: Vec<Coordinate>,
    /// Verdict at each value of the first axis; `None` where no point has both.
    pub(crate) cells: Vec<Option<AttributeText>>,
}

/// Where along the first axis an attribute holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// From the first value up to this place, and nowhere beyond.
    UpTo(usize),
    /// From this place to the last value, and nowhere before.
    From(usize),
    Everywhere,
    Nowhere,
    /// Here and there.
    Partly,
}

impl VerdictMap {
    /// Maps of the attributes that were judged; none of studies that are no points of a sweep.
    pub(crate) fn of(points: &[&Findings]) -> Vec<Self> {
        let maps =
            ["isolation", "reallocation"].map(|attribute| Self::of_attribute(points, attribute));
        maps.into_iter()
            .filter(|map| map.is_dense() && map.is_judged())
            .collect()
    }

    fn of_attribute(points: &[&Findings], attribute: &'static str) -> Self {
        let mut map = Self {
            attribute,
            columns: Vec::new(),
            rows: Vec::new(),
        };
        for findings in points {
            if let Some(first) = findings.study().coordinates.first()
                && !map.columns.contains(first)
            {
                map.columns.push(first.clone());
            }
        }
        for findings in points {
            let Some((first, others)) = findings.study().coordinates.split_first() else {
                continue;
            };
            let column = map.columns.iter().position(|value| value == first);
            for verdict in &findings.main().verdicts.policies {
                let text = attributes(verdict)
                    .into_iter()
                    .find(|text| text.key == attribute);
                let row = map.row(&verdict.policy, others);
                if let Some(cell) = column.and_then(|column| row.cells.get_mut(column)) {
                    *cell = text;
                }
            }
        }
        // Rows of a policy together, those of the first point first.
        let order: Vec<String> = map.rows.iter().map(|row| row.policy.clone()).collect();
        map.rows
            .sort_by_key(|row| order.iter().position(|policy| *policy == row.policy));
        map
    }

    /// Returns true if some policy was judged somewhere.
    fn is_judged(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        cells.any(|text| ["holds", "partial", "broken"].contains(&text.sign))
    }

    /// Returns true if most values of the first axis were combined with those of the others; not of a random sample.
    fn is_dense(&self) -> bool {
        let all = self.rows.len() * self.columns.len();
        let there = self
            .rows
            .iter()
            .map(|row| row.cells.iter().flatten().count());
        all > 0 && there.sum::<usize>() * 2 >= all
    }

    /// Names of the axes but the first.
    pub(crate) fn other_axes(&self) -> impl Iterator<Item = &str> {
        let first = self.rows.first();
        first
            .into_iter()
            .flat_map(|row| row.at.iter().map(|value| value.axis.as_str()))
    }

    fn row(&mut self, policy: &str, at: &[Coordinate]) -> &mut MapRow {
        let known = self
            .rows
            .iter()
            .position(|row| row.policy == policy && row.at == at);
        let place = known.unwrap_or_else(|| {
            self.rows.push(MapRow {
                policy: policy.to_owned(),
                at: at.to_vec(),
                cells: vec![None; self.columns.len()],
            });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// In words: up to which value of the first axis a row holds.
    pub(crate) fn holds(&self, row: &MapRow) -> String {
        let at = |place: usize| {
            self.columns
                .get(place)
                .map_or("", |value| value.text.as_str())
        };
        match row.holds() {
            Holds::UpTo(place) => format!("up to {}", at(place)),
            Holds::From(place) => format!("from {} on", at(place)),
            Holds::Everywhere => "everywhere".to_owned(),
            Holds::Nowhere => "nowhere".to_owned(),
            Holds::Partly => "in places".to_owned(),
        }
    }
}

impl MapRow {
    pub(crate) fn holds(&self) -> Holds {
        let holds: Vec<bool> = (self.cells.iter())
            .map(|cell| cell.as_ref().is_some_and(|text| text.sign == "holds"))
            .collect();
        let changes = holds.windows(2).filter(|pair| pair[0] != pair[1]).count();
        match (changes, holds.first(), holds.iter().position(|at| *at)) {
            (_, _, None) => Holds::Nowhere,
            (0, _, _) => Holds::Everywhere,
            (1, Some(true), _) => Holds::UpTo(holds.iter().rposition(|at| *at).unwrap_or(0)),
            (1, _, Some(first)) => Holds::From(first),
            _ => Holds::Partly,
        }
    }
}
