//! Tables over several cases: those of each case, below a column for the case and one for each axis of a sweep.

use super::column::{Column, Kind, Value};
use super::folder::DataFolder;
use super::{estimates, verdicts};
use crate::error::ReportError;
use crate::findings::Findings;
use slicewise_results::{SeriesFolder, make_folder};
use slicewise_stats::description::StudyDescription;
use std::borrow::Cow;

/// Write the tables of all `cases`.
pub(crate) fn write_series(folder: &SeriesFolder, cases: &[&Findings]) -> Result<(), ReportError> {
    let Some(first) = cases.first() else {
        return Ok(());
    };
    let path = folder.data_path();
    make_folder(&path)?;
    let study = StudyDescription {
        name: folder.description().name.clone(),
        ..first.study().clone()
    };
    let columns = first_columns(cases);
    let folder = DataFolder::new(path, &study).with_first_columns(columns.clone());
    let first = |case: &Findings| first_values(case.study(), &columns);
    let rows = cases.iter().map(|case| (first(case), *case));
    estimates::write_cells(&folder, rows)?;
    let rows = cases
        .iter()
        .map(|case| (first(case), &case.main().verdicts));
    verdicts::write_verdicts(&folder, rows)
}

/// The case, and its number on each axis, or its word.
fn first_columns(cases: &[&Findings]) -> Vec<Column> {
    let case = Column {
        name: Cow::Borrowed("case"),
        kind: Kind::Text,
        optional: false,
    };
    let axes = cases
        .first()
        .map_or(&[][..], |case| &case.study().coordinates);
    let axes = axes.iter().map(|axis| {
        let mut values = cases.iter().flat_map(|case| &case.study().coordinates);
        let is_number = values.all(|value| value.axis != axis.axis || value.number.is_some());
        Column {
            name: Cow::Owned(column_name(&axis.axis)),
            kind: if is_number { Kind::Real } else { Kind::Text },
            optional: false,
        }
    });
    std::iter::once(case).chain(axes).collect()
}

fn first_values(study: &StudyDescription, columns: &[Column]) -> Vec<Value<'static>> {
    let case = study.case.clone().unwrap_or_else(|| study.name.clone());
    let axes = columns.iter().skip(1).zip(&study.coordinates);
    let axes = axes.map(|(column, value)| match (column.kind, value.number) {
        (Kind::Real, Some(number)) => Value::Real(number),
        _ => Value::Text(value.text.clone().into()),
    });
    std::iter::once(Value::Text(case.into()))
        .chain(axes)
        .collect()
}

/// A name that Parquet admits, and that no other column has.
fn column_name(axis: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("axis_{}", axis.chars().map(plain).collect::<String>())
}
