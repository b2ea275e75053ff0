use std::fs;
use std::path::Path;

/// The header and the rows of a CSV file.
pub fn csv_rows(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let header = texts(reader.headers().unwrap());
    let rows = reader.records().map(|record| texts(&record.unwrap()));
    (header, rows.collect())
}

/// The values of one column of a CSV file.
pub fn column(path: &Path, name: &str) -> Vec<String> {
    let (header, rows) = csv_rows(path);
    let place = header.iter().position(|h| h == name).unwrap();
    rows.into_iter().map(|mut row| row.remove(place)).collect()
}

/// Returns true if there are figures of `kind`, and every figure is of a kind that a results folder recognises as its own.
pub fn has_known_figures(folder: &Path, kind: &str) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let is_of = |name: &String, kind: &str| name.starts_with(&format!("{kind}-"));
    let mut kinds = slicewise_results::FIGURE_KINDS.into_iter();
    let is_known = |name: &String| {
        name == slicewise_results::FIGURE_SCRIPT || kinds.clone().any(|kind| is_of(name, kind))
    };
    names.iter().any(|name| is_of(name, kind))
        && names.iter().all(is_known)
        && kinds.any(|known| known == kind)
}
