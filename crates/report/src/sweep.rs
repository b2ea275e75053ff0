//! Verdicts over the axes of a sweep: what each point came to, and up to where it holds.

use crate::attribute::{AttributeText, attributes};
use crate::findings::Findings;
use slicewise_stats::description::Coordinate;
use slicewise_stats::sweep::Resolution;

/// An attribute of policies over all points.
#[derive(Debug)]
pub(crate) struct VerdictMap {
    /// "isolation", "reallocation".
    pub(crate) attribute: &'static str,
    /// Values of the first axis: by their numbers, or words in the order of the sweep.
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
        let unit = map.columns.first().map(|value| value.unit.clone());
        let is_number =
            |value: &Coordinate| value.number.is_some() && Some(&value.unit) == unit.as_ref();
        if map.columns.iter().all(is_number) {
            let number = |value: &Coordinate| value.number.unwrap_or(f64::NAN);
            map.columns.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        for findings in points {
            let Some((first, others)) = findings.study().coordinates.split_first() else {
                continue;
            };
            let column = map.columns.iter().position(|value| value == first);
            let verdicts = findings.main().verdicts.policies.iter();
            for verdict in verdicts.filter(|verdict| !verdict.not_run) {
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

    /// Returns true if some value of the first axis was combined with those of the others; not of a random sample.
    fn is_dense(&self) -> bool {
        self.shown().next().is_some()
    }

    /// Places of the values of the first axis that most rows have: others were added where a verdict changes.
    pub(crate) fn shown(&self) -> impl Iterator<Item = usize> {
        let has = |column: &usize| {
            let rows = self.rows.iter();
            let there = rows.filter(|row| row.cells.get(*column).is_some_and(Option::is_some));
            there.count() * 2 > self.rows.len()
        };
        (0..self.columns.len()).filter(has)
    }

    /// The attribute in words.
    pub(crate) fn title(&self) -> &'static str {
        match self.attribute {
            "isolation" => "Performance isolation",
            _ => "Resource reallocation",
        }
    }

    /// Name of the first axis.
    pub(crate) fn axis(&self) -> &str {
        self.columns.first().map_or("", |value| value.axis.as_str())
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

    /// In words: at which values of the first axis a row has the verdict `sign`; empty for none.
    pub(crate) fn extent(&self, row: &MapRow, sign: &str) -> String {
        let cells = self.columns.iter().zip(&row.cells);
        let cells = cells.filter_map(|(value, cell)| Some((value, cell.as_ref()?.sign == sign)));
        let (values, has): (Vec<&Coordinate>, Vec<bool>) = cells.unzip();
        let at = |place: Option<usize>| {
            let value = place.and_then(|place| values.get(place));
            value.map_or("", |value| value.text.as_str())
        };
        let (first, last) = (
            has.iter().position(|is| *is),
            has.iter().rposition(|is| *is),
        );
        let changes = has.windows(2).filter(|pair| pair[0] != pair[1]).count();
        match (changes, has.first()) {
            _ if first.is_none() => String::new(),
            (0, _) => "everywhere".to_owned(),
            (1, Some(true)) => format!("up to {}", at(last)),
            (1, _) => format!("from {}", at(first)),
            (2, Some(false)) if first == last => format!("at {}", at(first)),
            (2, Some(false)) => format!("{} to {}", at(first), at(last)),
            _ => "in several places".to_owned(),
        }
    }
}

/// A point between two others, and the policy whose verdict changes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointBetween {
    /// The policy.
    pub policy: String,
    /// Its value on each axis.
    pub values: Vec<String>,
}

/// Points of a sweep half way between the last value of the first axis up to which isolation holds and the next one, for
/// each policy and values of the other axes, until these are as close as `resolution`.
#[must_use]
pub fn points_between(points: &[&Findings], resolution: &Resolution) -> Vec<PointBetween> {
    let map = VerdictMap::of_attribute(points, "isolation");
    let between = |row: &MapRow| {
        let cells = map.columns.iter().zip(&row.cells);
        let cells = cells.filter_map(|(value, cell)| Some((value, cell.as_ref()?.sign == "holds")));
        let cells: Vec<(&Coordinate, bool)> = cells.collect();
        let last = cells.iter().take_while(|(_, holds)| *holds).count();
        let (lower, _) = cells.get(last.checked_sub(1)?)?;
        let (upper, _) = cells.get(last)?;
        let others = row.at.iter().map(|value| value.text.clone());
        let values = std::iter::once(resolution.between(lower, upper)?).chain(others);
        Some(PointBetween {
            policy: row.policy.clone(),
            values: values.collect(),
        })
    };
    map.rows.iter().filter_map(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the verdicts that signs stand for hold and are broken.
    fn extents(signs: &str) -> String {
        let cell = |sign: char| {
            let sign = match sign {
                '+' => "holds",
                '-' => "broken",
                ' ' => return None,
                _ => "inconclusive",
            };
            Some(AttributeText {
                key: "isolation",
                sign,
                word: String::new(),
                deciding: String::new(),
                reason: String::new(),
                published: None,
                agrees: None,
            })
        };
        let columns = (1..=signs.len()).map(|value| Coordinate {
            text: format!("{value}0 %"),
            ..Coordinate::default()
        });
        let map = VerdictMap {
            attribute: "isolation",
            columns: columns.collect(),
            rows: vec![MapRow {
                policy: "p".to_owned(),
                at: Vec::new(),
                cells: signs.chars().map(cell).collect(),
            }],
        };
        let extent = ["holds", "broken"].map(|sign| map.extent(&map.rows[0], sign));
        extent.map(|text| format!("[{text}]")).join(" ")
    }

    #[test]
    fn where_a_verdict_begins_and_ends_is_said_by_values_of_the_axis() {
        let texts = [
            "++?-", "????", "++++", "?--+", "-+?-", "-++-", "+-+-", "+ --",
        ]
        .map(extents);
        insta::assert_snapshot!(texts.join("\n"), @r"
        [up to 20 %] [from 40 %]
        [] []
        [everywhere] []
        [from 40 %] [20 % to 30 %]
        [at 20 %] [in several places]
        [20 % to 30 %] [in several places]
        [in several places] [in several places]
        [up to 10 %] [from 30 %]
        ");
    }
}
