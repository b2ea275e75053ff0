//! Verdicts over the axes of a sweep: what each point came to, and up to where it holds.

use crate::findings::Findings;
use crate::matrix::{Cell, Matrix, Row};
use slicewise_stats::description::Coordinate;
use slicewise_stats::sweep::Resolution;
use slicewise_stats::verdict::Outcome;

/// Values at the points of a sweep, over its first axis.
#[derive(Debug)]
pub(crate) struct AxisMap<T> {
    /// Values of the first axis: by their numbers, or words in the order of the sweep.
    pub(crate) columns: Vec<Coordinate>,
    pub(crate) rows: Vec<MapRow<T>>,
}

/// A policy at fixed values of all axes but the first.
#[derive(Debug)]
pub(crate) struct MapRow<T> {
    pub(crate) policy: String,
    /// Values of the other axes.
    pub(crate) at: Vec<Coordinate>,
    /// Value at each value of the first axis; `None` where no point has both.
    pub(crate) cells: Vec<Option<T>>,
}

/// Coordinates of a point, and a value of each policy.
pub(crate) type PointValues<'a, T> = (&'a [Coordinate], Vec<(&'a str, T)>);

impl<T> AxisMap<T> {
    /// The values of policies at each point, which is at these coordinates; studies that are no points have none.
    pub(crate) fn of(points: Vec<PointValues<'_, T>>) -> Self {
        let mut map = Self {
            columns: Vec::new(),
            rows: Vec::new(),
        };
        for (coordinates, _) in &points {
            if let Some(first) = coordinates.first()
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
        for (coordinates, values) in points {
            let Some((first, others)) = coordinates.split_first() else {
                continue;
            };
            let column = map.columns.iter().position(|value| value == first);
            for (policy, value) in values {
                let row = map.row(policy, others);
                if let Some(cell) = column.and_then(|column| row.cells.get_mut(column)) {
                    *cell = Some(value);
                }
            }
        }
        // Rows of a policy together, those of the first point first.
        let order: Vec<String> = map.rows.iter().map(|row| row.policy.clone()).collect();
        map.rows
            .sort_by_key(|row| order.iter().position(|policy| *policy == row.policy));
        map
    }

    /// Returns true if some value of the first axis was combined with those of the others; not of a random sample.
    pub(crate) fn is_dense(&self) -> bool {
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

    /// Name of the first axis.
    pub(crate) fn axis(&self) -> &str {
        self.columns.first().map_or("", |value| value.axis.as_str())
    }

    /// Unit of all values of the first axis; `None` where they have none in common.
    pub(crate) fn unit(&self) -> Option<&str> {
        let unit = self.columns.first()?.unit.as_str();
        let is_common = self.columns.iter().all(|value| value.unit == unit);
        (is_common && !unit.is_empty()).then_some(unit)
    }

    /// Names of the axes but the first.
    pub(crate) fn other_axes(&self) -> impl Iterator<Item = &str> {
        let first = self.rows.first();
        first
            .into_iter()
            .flat_map(|row| row.at.iter().map(|value| value.axis.as_str()))
    }

    fn row(&mut self, policy: &str, at: &[Coordinate]) -> &mut MapRow<T> {
        let known = self
            .rows
            .iter()
            .position(|row| row.policy == policy && row.at == at);
        let place = known.unwrap_or_else(|| {
            self.rows.push(MapRow {
                policy: policy.to_owned(),
                at: at.to_vec(),
                cells: self.columns.iter().map(|_| None).collect(),
            });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }
}

/// An attribute of policies over all points.
#[derive(Debug)]
pub(crate) struct VerdictMap {
    /// The attribute in words, and what its numbers are of, where that is the same everywhere.
    pub(crate) title: String,
    pub(crate) map: AxisMap<Cell>,
}

/// Attributes over which there are maps, in the order of the first cells of a [`Matrix`].
const ATTRIBUTES: [&str; 2] = ["Performance isolation", "Resource reallocation"];

impl VerdictMap {
    /// Maps of the attributes that were judged; none of studies that are no points of a sweep.
    pub(crate) fn of(points: &[&Findings]) -> Vec<Self> {
        let maps = ATTRIBUTES.into_iter().enumerate();
        let maps = maps.map(|(attribute, title)| Self {
            title: title.to_owned(),
            map: Self::of_attribute(points, attribute),
        });
        let maps = maps.filter(|map| map.map.is_dense() && map.is_judged());
        maps.map(Self::with_common_subject).collect()
    }

    /// "692 ms completion" in every cell is 692 ms, of completion.
    fn with_common_subject(mut self) -> Self {
        let rows = self.map.rows.iter_mut();
        let cells = rows.flat_map(|row| row.cells.iter_mut().flatten());
        let mut numbers: Vec<&mut String> = cells
            .filter(|cell| cell.number != cell.word)
            .map(|cell| &mut cell.number)
            .collect();
        let subject = |number: &str| Some(number.rsplit_once(' ')?.1.to_owned());
        let Some(common) = numbers.first().and_then(|number| subject(number)) else {
            return self;
        };
        let is_word = common.chars().all(char::is_alphabetic) && common.len() > 3;
        let is_common = |number: &&mut String| subject(number).as_ref() == Some(&common);
        if is_word && numbers.iter().all(is_common) {
            for number in &mut numbers {
                number.truncate(number.len() - common.len() - 1);
            }
            self.title = format!("{}: {common}", self.title);
        }
        self
    }

    fn of_attribute<'a>(points: &[&'a Findings], attribute: usize) -> AxisMap<Cell> {
        let at_point = |findings: &&'a Findings| {
            let verdicts = &findings.main().verdicts;
            let rows = Matrix::of(verdicts).rows.into_iter();
            let run = verdicts.policies.iter().zip(rows);
            let run = run.filter(|(verdict, _)| !verdict.not_run);
            let cell = |row: Row| row.cells.into_iter().nth(attribute);
            let cells = run.filter_map(|(it, row)| Some((it.policy.as_str(), cell(row)?)));
            (findings.study().coordinates.as_slice(), cells.collect())
        };
        AxisMap::of(points.iter().map(at_point).collect())
    }

    /// Returns true if some policy was judged somewhere.
    fn is_judged(&self) -> bool {
        let rows = self.map.rows.iter();
        let mut cells = rows.flat_map(|row| row.cells.iter().flatten());
        cells.any(is_judged)
    }

    /// In words: at which values of the first axis a row has the verdict `sign`; empty for none.
    pub(crate) fn extent(&self, row: &MapRow<Cell>, sign: &str) -> String {
        let cells = self.map.columns.iter().zip(&row.cells);
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

/// Returns true of a verdict, decided or not; not where nothing was tested.
fn is_judged(cell: &Cell) -> bool {
    ["holds", "partial", "broken"].contains(&cell.sign) || is_undecided(cell)
}

/// Returns true if a verdict needs more runs.
fn is_undecided(cell: &Cell) -> bool {
    cell.word == Outcome::Inconclusive.to_string()
}

/// Lines on the values of the first axis at which isolation is undecided, and what would decide.
pub(crate) fn undecided(points: &[&Findings]) -> Vec<String> {
    let map = VerdictMap::of_attribute(points, 0);
    let line = |row: &MapRow<Cell>| {
        let cells = map.columns.iter().zip(&row.cells);
        let open = cells.filter(|(_, cell)| cell.as_ref().is_some_and(is_undecided));
        let open: Vec<&Coordinate> = open.map(|(value, _)| value).collect();
        if open.is_empty() {
            return None;
        }
        let needed = points.iter().filter_map(|point| {
            let (value, others) = point.study().coordinates.split_first()?;
            let verdict = point.main().verdict(&row.policy)?;
            let needed = verdict.isolation.repetitions_needed()?;
            (others == row.at && open.contains(&value)).then_some(needed)
        });
        let needed = needed.max().map_or_else(String::new, |needed| {
            format!(" (about {needed} repetitions would decide)")
        });
        let at = row
            .at
            .iter()
            .map(|value| format!(", {} {}", value.axis, value.text));
        let values: Vec<&str> = open.iter().map(|value| value.text.as_str()).collect();
        Some(format!(
            "{}{}: undecided at {}{needed}",
            row.policy,
            at.collect::<String>(),
            values.join(", ")
        ))
    };
    map.rows.iter().filter_map(line).collect()
}

/// A point between two others, and the policy whose verdict changes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointBetween {
    /// The policy.
    pub policy: String,
    /// Its value on each axis.
    pub values: Vec<String>,
}

/// Points of a sweep half way between two neighbouring values of the first axis of which isolation holds at one alone, for
/// each policy and values of the other axes, until these are as close as `resolution`.
#[must_use]
pub fn points_between(points: &[&Findings], resolution: &Resolution) -> Vec<PointBetween> {
    let map = VerdictMap::of_attribute(points, 0);
    let of_row = |row: &MapRow<Cell>| {
        let cells = map.columns.iter().zip(&row.cells);
        let cells = cells.filter_map(|(value, cell)| {
            let cell = cell.as_ref().filter(|cell| is_judged(cell))?;
            Some((value, cell.sign == "holds"))
        });
        let cells: Vec<(&Coordinate, bool)> = cells.collect();
        let between = |pair: &[(&Coordinate, bool)]| {
            let &[(lower, one), (upper, other)] = pair else {
                return None;
            };
            let value = (one != other).then(|| resolution.between(lower, upper))??;
            let others = row.at.iter().map(|value| value.text.clone());
            Some(PointBetween {
                policy: row.policy.clone(),
                values: std::iter::once(value).chain(others).collect(),
            })
        };
        cells.windows(2).filter_map(between).collect::<Vec<_>>()
    };
    map.rows.iter().flat_map(of_row).collect()
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
            Some(Cell {
                sign,
                word: String::new(),
                number: String::new(),
                reason: String::new(),
                published: None,
            })
        };
        let columns = (1..=signs.len()).map(|value| Coordinate {
            text: format!("{value}0 %"),
            ..Coordinate::default()
        });
        let map = VerdictMap {
            title: "Performance isolation".to_owned(),
            map: AxisMap {
                columns: columns.collect(),
                rows: vec![MapRow {
                    policy: "p".to_owned(),
                    at: Vec::new(),
                    cells: signs.chars().map(cell).collect(),
                }],
            },
        };
        let extent = ["holds", "broken"].map(|sign| map.extent(&map.map.rows[0], sign));
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
