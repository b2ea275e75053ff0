//! Tables over several cases: those of each case, below a column for the case and one for each axis of a sweep.

use super::column::{Column, Kind, Value};
use super::folder::DataFolder;
use super::table::Tables;
use super::{applications, estimates, verdicts};
use crate::error::ReportError;
use crate::findings::Findings;
use slicewise_results::{SeriesFolder, make_folder};
use slicewise_stats::description::StudyDescription;
use slicewise_stats::record::RunRecord;
use std::borrow::Cow;

/// Tables over several cases, filled case by case.
pub(crate) struct SeriesTables {
    folder: DataFolder,
    columns: Vec<Column>,
    /// Tables that only cases with applications have.
    of_applications: Tables,
}

impl SeriesTables {
    /// Tables of the cases that are these studies.
    pub(crate) fn create(
        folder: &SeriesFolder,
        studies: &[&StudyDescription],
    ) -> Result<Self, ReportError> {
        let path = folder.data_path();
        make_folder(&path)?;
        let origin = StudyDescription {
            name: folder.description().name.clone(),
            ..studies.first().copied().cloned().unwrap_or_default()
        };
        let columns = first_columns(studies);
        let folder = DataFolder::new(path, &origin).with_first_columns(columns.clone());
        Ok(Self {
            of_applications: Tables::create(&folder, [])?,
            folder,
            columns,
        })
    }

    /// Begin with the runs of the next case.
    pub(crate) fn begin_case(&mut self, study: &StudyDescription) {
        let first = first_values(study, &self.columns);
        self.of_applications.begin_rows(first);
    }

    /// Write the results of applications in a run of the case.
    pub(crate) fn on_run(&mut self, record: &RunRecord) -> Result<(), ReportError> {
        applications::sources(&mut self.of_applications, record)
    }

    /// Write the estimates and verdicts of all `cases`, and give all files their names.
    pub(crate) fn finish(mut self, cases: &[&Findings]) -> Result<(), ReportError> {
        let schema = applications::Cells::SCHEMA;
        for case in cases {
            self.begin_case(case.study());
            let rows = applications::cells(&case.main().summary);
            self.of_applications.rows(schema, rows)?;
        }
        let all = [schema, applications::Applications::SCHEMA];
        self.of_applications.remove_others(all)?;
        self.of_applications.finish()?;
        let first = |case: &Findings| first_values(case.study(), &self.columns);
        let rows = cases.iter().map(|case| (first(case), *case));
        estimates::write_cells(&self.folder, rows)?;
        let rows = cases
            .iter()
            .map(|case| (first(case), &case.main().verdicts));
        verdicts::write_verdicts(&self.folder, rows)
    }
}

/// The case, and its number on each axis, or its word.
fn first_columns(studies: &[&StudyDescription]) -> Vec<Column> {
    let case = Column {
        name: Cow::Borrowed("case"),
        kind: Kind::Text,
        optional: false,
    };
    let axes = studies.first().map_or(&[][..], |study| &study.coordinates);
    let axes = axes.iter().map(|axis| {
        let mut values = studies.iter().flat_map(|study| &study.coordinates);
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
