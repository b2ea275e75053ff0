//! Results folders beside each other: what is judged, told, written, and refused.

#![allow(clippy::unwrap_used)]

mod support;

use slicewise_report::layout::{Force, ResultsFolder, Unsupported};
use slicewise_report::prediction::finding;
use slicewise_report::terminal::{beside_table_text, verdict_table_text};
use slicewise_report::{Report, write, write_beside};
use std::fs;
use std::path::{Path, PathBuf};
use support::{Size, fill, fill_live, live_study, study, three_back_ends};

fn paths(folders: &[ResultsFolder]) -> Vec<PathBuf> {
    folders.iter().map(|f| f.path().to_owned()).collect()
}

fn report(root: &Path) -> Report {
    let [simulator, live @ ..] = three_back_ends(root, Size::SMALL);
    write_beside(&simulator, &paths(&live)).unwrap()
}

#[test]
#[ignore]
fn keep() {
    let root = PathBuf::from(std::env::var("BESIDE_KEEP").unwrap());
    let [simulator, live @ ..] = three_back_ends(&root, Size::FULL);
    let report = write_beside(&simulator, &paths(&live)).unwrap();
    println!("{}", beside_table_text(&report.sides, 120).unwrap());
    println!("{}", beside_table_text(&report.sides, 80).unwrap());
    for side in &report.sides {
        println!("{:?}", finding(side));
    }
    let report = write_beside(&live[1], &[]).unwrap();
    println!("{}", verdict_table_text(&report.verdicts, 120));
}
